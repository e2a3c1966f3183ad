"""What is wrong with a pipeline file or with a pipeline that runs.

    SpecError       the file: which key, on which line, and the way out; a person mends it
    PipelineError   the run: waiting may help when `retriable`, otherwise somebody must act

Every text is one sentence.
"""

from barnabas.base.errors import ConfigFault
from barnabas.spark.errors import SparkPartError

__all__ = ["PipelineError", "SpecError"]


class SpecError(SparkPartError, ConfigFault):
    """A pipeline file says something that is not understood."""


class PipelineError(SparkPartError):
    """A pipeline cannot start or cannot go on."""

    def __init__(self, text: str, *, retriable: bool = False) -> None:
        super().__init__(text)
        self.retriable = retriable
