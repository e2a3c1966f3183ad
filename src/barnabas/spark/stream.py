"""The driver's side of a stream: where it starts, how far a batch goes, what it has read.

One reader lives in a Python process of its own for the life of a query run; Spark calls one method at a
time, and any exception ends the query.  The checkpoint alone decides where a query goes on; whatever this
object remembers may be forgotten at any time.  Releases of PySpark ask for the end of a batch in two ways:
`stream_limited` and `stream_plain`.

T1  A batch with offsets in the checkpoint is planned from them alone (offsets.O3).
T2  With Trigger.AvailableNow the end is fixed at the first question and never passed.
T3  The end of a batch is asked for only when everything below its start is committed by Spark, so the start
    is what the progress group is told.  That telling fails quietly: lag tools are not worth a query.
"""

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from barnabas.base.types import TopicPartition
from barnabas.spark.errors import SparkPartError
from barnabas.spark.lookup import Lookup
from barnabas.spark.offsets import (
    Positions,
    StreamOffset,
    backlog,
    clamp,
    judge,
    ranges_between,
    report,
    share,
)
from barnabas.spark.options import Edge, SourceOptions
from barnabas.spark.planning import ReadTask
from barnabas.spark.progress import Progress, leave_name
from barnabas.spark.source import plan, read_ranges

__all__ = ["StreamReader"]

log = logging.getLogger(__name__)

_SIZES_AGE_S: Final = 30.0  # how long the average sizes of records may be taken for true


class StreamReader(DataSourceStreamReader):
    """Reads partitions as they grow."""

    def __init__(
        self,
        options: SourceOptions,
        *,
        lookup: Lookup | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._monotonic_s = monotonic_s
        self._lookup = lookup or Lookup(options)
        self._initial: StreamOffset | None = None
        self._latest: Positions = {}
        self._is_available_now = False
        self._frozen: Positions | None = None
        self._last_trigger_s = float("-inf")
        self._progress = Progress(self._lookup, options.group, wanted=options.commit_progress)
        self._bytes_per_offset: dict[TopicPartition, float] = {}
        self._sized_at_s = float("-inf")

    def __reduce__(self) -> tuple[Any, ...]:
        """Executors get the options; connections and what was seen stay here."""
        return type(self), (self._options,)

    # --- what Spark asks

    def initialOffset(self) -> dict[str, Any]:
        """Where a query without a checkpoint starts; the same at every call."""
        if self._initial is None:
            self._initial = StreamOffset(self._starting_positions(), initial=True)
        return self._initial.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        ranges = ranges_between(StreamOffset.from_json(start), StreamOffset.from_json(end))
        tasks = plan(self._options, ranges)
        if tasks and (token := self._token_for_batch()) is not None:
            tasks[0] = ReadTask(tasks[0].ranges, token)
        return list(tasks)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, ReadTask), "planned by `partitions`"
        if partition.token is not None:
            leave_name(partition.token, partition.ranges, self._options.client)
        return read_ranges(partition.ranges, self._options)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: Spark calls it late and not at all for the last batch; see T3."""

    def stop(self) -> None:
        self._lookup.close()

    # --- start and end

    def end_of_batch(self, start: dict[str, Any], *, limited: bool) -> dict[str, Any]:
        """Where the next batch ends; `start` itself when there is none to run."""
        stands = StreamOffset.from_json(start)
        self._progress.tell(stands.positions, stands.batch)
        known = stands.positions
        latest = self._ends(known)
        earliest = self._first_offsets(known, latest)
        begins, losses = judge(known, earliest, latest)
        for warning in report(losses, fail=self._options.fail_on_data_loss):
            log.warning("%s", warning)
        if limited and self._waits(begins, latest):
            return start
        ends = self._limited(begins, latest) if limited else dict(latest)
        base = begins if stands.initial else {w: at for w, at in begins.items() if known.get(w) != at}
        end = StreamOffset(ends, base, stands.batch + 1)
        if dict(ends) == dict(known) and not base:
            return start
        if stands.initial and dict(ends) == dict(begins) and not self._must_keep_start():
            return start
        return end.to_json()

    def _token_for_batch(self) -> str | None:
        """What a task needs to tell the name of the query; None when nobody waits for it."""
        return self._progress.token_for_batch()

    def _starting_positions(self) -> Positions:
        partitions = self._lookup.partitions()
        bound = self._options.starting
        if isinstance(bound, Edge):
            return self._lookup.resolve(bound, partitions, starting=True)
        # The log grows and ages meanwhile: what is looked up in between lies inside of its bounds.
        earliest = self._lookup.earliest(partitions)
        found = self._lookup.resolve(bound, partitions, starting=True)
        inside, losses = clamp(found, earliest, self._lookup.latest(partitions))
        for warning in report(losses, fail=self._options.fail_on_data_loss):
            log.warning("%s", warning)
        return inside

    def _must_keep_start(self) -> bool:
        """Whether a restart could find another start: then an empty batch makes this one durable."""
        return self._options.starting is not Edge.EARLIEST

    def _ends(self, known: Positions) -> Positions:
        """The ends of the partitions there are now, or those fixed for Trigger.AvailableNow."""
        partitions = self._lookup.partitions(gone_is_fine=True)
        now = self._lookup.ends(partitions, known)
        self._latest = now
        if not self._is_available_now:
            return now
        if self._frozen is None:
            self._frozen = now
        for where, end in sorted(self._frozen.items()):
            if now.get(where, -1) < end:
                what = f"ends at {now[where]} now" if where in now else "is gone"
                raise SparkPartError(
                    f"{where} {what}, but this run (Trigger.AvailableNow) was to read it up to {end}; "
                    "start the query again"
                )
        return self._frozen

    def _first_offsets(self, known: Positions, latest: Positions) -> Positions:
        """First offsets where they can matter: new partitions, and those that something is read from."""
        return self._lookup.earliest(where for where, end in latest.items() if known.get(where, -1) != end)

    # --- limits

    def _waits(self, begins: Positions, latest: Positions) -> bool:
        """Whether to skip this trigger because little has come and not much time has passed."""
        low = self._options.min_offsets_per_trigger
        if low is None or self._is_available_now:
            return False
        now = self._monotonic_s()
        waited_ms = (now - self._last_trigger_s) * 1000
        if waited_ms < self._options.max_trigger_delay_ms and backlog(begins, latest) < low:
            return True
        self._last_trigger_s = now
        return False

    def _limited(self, begins: Positions, latest: Positions) -> dict[TopicPartition, int]:
        options = self._options
        ends = dict(latest)
        if options.max_offsets_per_trigger is not None:
            ends = share(options.max_offsets_per_trigger, begins, ends)
        if options.max_bytes_per_trigger is not None:
            ends = share(self._offsets_for_bytes(options.max_bytes_per_trigger, begins, ends), begins, ends)
        return ends

    def _offsets_for_bytes(self, limit: int, begins: Positions, ends: Positions) -> int:
        """How many offsets of this backlog make so many bytes, by what the logs have per offset."""
        wanted = {where: end for where, end in ends.items() if end > begins[where]}
        is_old = self._monotonic_s() - self._sized_at_s >= _SIZES_AGE_S
        if is_old or any(where not in self._bytes_per_offset for where in wanted):
            self._sized_at_s = self._monotonic_s()
            earliest = self._lookup.earliest(wanted)
            self._bytes_per_offset = self._lookup.bytes_per_offset(earliest, self._lookup.latest(wanted))
        total = backlog(begins, wanted)
        size = sum((end - begins[w]) * self._bytes_per_offset.get(w, 0.0) for w, end in wanted.items())
        return total if size <= limit else max(1, int(total * limit / size))
