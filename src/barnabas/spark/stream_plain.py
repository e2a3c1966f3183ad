"""The stream reader for PySpark 4.0 and 4.1, whose question for the end of a batch has no arguments.

So this reader keeps where the next batch starts:

P1  It starts where the last answer ended: Spark runs a batch for each answer that differs from the start, and
    ends the run when that fails.
P2  Before the first answer of a run it starts at the newest offset of the checkpoint, which Spark shows by
    `partitions(offset, offset)`, or, when nothing is shown, at the initial offset.
P3  The first batch of a query runs in any case, so that its end always says where it starts (offsets.O2).
P4  Nothing is taken on trust: a batch that Spark starts elsewhere than its end was made for is refused.

Trigger.AvailableNow is one batch with all there is, and is not told from other triggers.  A limit would end
it early, so limits are taken only when the option trigger says that it is another one (`versions`).  As no
question follows that batch, the name of a query without the option queryName is asked of its tasks only from
the second question on.
"""

from typing import Any

from pyspark.sql.datasource import InputPartition

from barnabas.spark.errors import SparkPartError
from barnabas.spark.stream import StreamReader

__all__ = ["PlainStreamReader"]


class PlainStreamReader(StreamReader):
    """Keeps its place from batch to batch."""

    _stands: dict[str, Any] | None = None
    _made_from: dict[str, Any] | None = None
    _answers = 0

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # as these releases have it
        start = self.initialOffset() if self._stands is None else self._stands
        end = self.end_of_batch(start, limited=True)
        if end != start:
            self._made_from = start
        self._stands = end
        self._answers += 1
        return end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        if start == end:
            self._take_place(end)
            return []
        if self._answers and end == self._stands and start != self._made_from:
            raise SparkPartError(f"Spark starts a batch at {start} that was made for {self._made_from}")
        return super().partitions(start, end)

    def _take_place(self, shown: dict[str, Any]) -> None:
        if self._answers and shown != self._stands:
            raise SparkPartError(
                "Spark says where the query stands after it has asked how far to go; leave out the setting "
                "spark.sql.streaming.triggerAvailableNowWrapper.enabled, or use PySpark 4.2 or newer"
            )
        self._stands = shown

    def _must_keep_start(self) -> bool:
        return True

    def _token_for_batch(self) -> str | None:
        return super()._token_for_batch() if self._answers > 1 else None
