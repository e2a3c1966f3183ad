"""Blocking or long work in threads, so that the event loop never waits for a disk or a large batch."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["Offload"]

Result = TypeVar("Result")

THREADS = 2


class Offload:
    """A few threads.  What runs there touches no state that the loop also touches."""

    __slots__ = ("_pool",)

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="barnabas-work")

    async def run(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Waits for what is running; what has not begun is dropped."""
        self._pool.shutdown(wait=True, cancel_futures=True)
