"""The Python workers of Spark, between two tasks.

Before a worker waits for its next task it collects garbage, all of it.  With PySpark, Arrow and this package
loaded that is 15 to 25 ms of processor time, and a micro-batch has four such workers (the reader's and the
writer's, and two on the driver), while the rest of the batch wants the same cores.
"""

import gc
import os
from typing import Final

__all__ = ["settle"]

_REUSED: Final = "SPARK_REUSE_WORKER"  # what Spark tells workers that get more than one task
_tasks = 0


def settle() -> None:
    """Called when a task begins: exempts what outlives tasks from the collections to come.

    A collection has just ended, so what is exempt is alive: modules, caches, connections, and this one task.
    At the 2nd, 4th, 8th, … task only: a cycle among the task's own objects is kept for good.
    Does nothing outside of Spark's workers.
    """
    global _tasks
    if _REUSED not in os.environ:
        return
    _tasks += 1
    if _tasks > 1 and _tasks & (_tasks - 1) == 0:
        gc.freeze()
