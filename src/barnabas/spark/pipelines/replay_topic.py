"""A range of a topic, back into a topic: looked up once, then copied piece by piece as the pace allows.

T1  The offsets of a replay are decided the first time its id is used, and committed under `<group>:plan` at
    the target; every later start takes them from there.
T2  Copying is the mirror's (`mirror_task`): how far a partition is is committed with its records, so that a
    replay that was killed goes on without losing or doubling a record.

Blocking; one thread, and as many as there are partitions for copying.
"""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.base.types import TopicPartition
from barnabas.client.admin_types import NewTopic, OffsetSpec
from barnabas.client.bulk_fetch import BulkFetcher
from barnabas.client.config import CONSUMER, settings_for
from barnabas.client.errors import TopicExists, UnknownTopic
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.records.batch import iter_batches
from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.mirror_settings import MirrorPlan, Names
from barnabas.spark.pipelines.mirror_task import Copied, MirrorLinks, Work, copy
from barnabas.spark.pipelines.replay_pace import Extent, due_ms, duration_s, ends_by_count, in_records
from barnabas.spark.pipelines.replay_plan import Edge, ReplayPlan
from barnabas.spark.pipelines.two_clusters import TwoClusters

__all__ = ["Estimate", "TopicReplay"]

_ROUND_S: Final = 0.2
_SAMPLE_BYTES: Final = 1 << 20
_THREADS_MAX: Final = 8


class Estimate(NamedTuple):
    """What a replay would do."""

    partitions: Mapping[int, Extent]
    records: int
    size_bytes: int
    seconds: float | None
    is_exact: bool
    """Whether the counts are; offsets of a topic may have no record."""


@dataclass(frozen=True, slots=True)
class _Sample:
    bytes_per_offset: float
    first_ms: int


class TopicReplay(TwoClusters):
    """One replay of a topic.  `close` it."""

    def __init__(self, plan: ReplayPlan) -> None:
        self._plan = plan
        super().__init__(plan.source, plan.target)

    # --- what there is

    def extents(self) -> dict[int, Extent]:
        """Which offsets are replayed: those of an earlier start (T1), else looked up.  Raises KafkaError."""
        return self._planned() or self._looked_up()

    def estimate(self) -> Estimate:
        """What would be done; writes nothing."""
        extents, plan = self._looked_up(), self._plan
        count = sum(extent.size for extent in extents.values())
        samples = self._samples(extents)
        size = sum(int(extents[number].size * sample.bytes_per_offset) for number, sample in samples.items())
        span_ms = self._last_ms(extents) - min((s.first_ms for s in samples.values()), default=0)
        seconds = duration_s(plan.rate, count, size, max(span_ms, 0)) if count else 0.0
        return Estimate(extents, count, size, seconds, is_exact=False)

    def _looked_up(self) -> dict[int, Extent]:
        plan = self._plan
        count = len(self._source.describe_topic(plan.topic).partitions)
        chosen = plan.partitions or tuple(range(count))
        if wrong := [number for number in chosen if not 0 <= number < count]:
            raise PipelineError(f"topic {plan.topic} has no partition {wrong[0]}, only 0 to {count - 1}")
        starts = self._offsets(Edge("earliest"), chosen)
        ends = self._offsets(Edge("latest"), chosen)
        begin, end = self._offsets(plan.begin, chosen), self._offsets(plan.end, chosen)
        found = {}
        for number in chosen:
            first = min(max(begin.get(number, ends[number]), starts[number]), ends[number])
            last = min(max(end.get(number, ends[number]), first), ends[number])
            found[number] = Extent(first, last)
        return found

    def _offsets(self, edge: Edge, partitions: tuple[int, ...]) -> dict[int, int]:
        if edge.kind == "offset":
            return dict.fromkeys(partitions, edge.amount)
        if edge.kind == "offsets":
            return {number: offset for number, offset in edge.offsets.items() if number in partitions}
        when: OffsetSpec | int = edge.amount
        if edge.kind != "time":
            when = OffsetSpec.EARLIEST if edge.kind == "earliest" else OffsetSpec.LATEST
        asked = {TopicPartition(self._plan.topic, number): when for number in partitions}
        found = self._source.list_offsets(asked, read_committed=True).check()
        return {tp.partition: at.offset for tp, at in found.items() if at.offset >= 0}

    def _samples(self, at: Mapping[int, Extent]) -> dict[int, _Sample]:
        """The first batches of each partition: how large records are, and when it begins."""
        found: dict[int, _Sample] = {}
        wanted = {number: extent for number, extent in at.items() if extent.size}
        with BulkFetcher(
            {**settings_for(CONSUMER, self._plan.source), "max.partition.fetch.bytes": str(_SAMPLE_BYTES)}
        ) as fetcher:
            for number, extent in wanted.items():
                one = (self._plan.topic, number, extent.start, extent.end)
                for chunk in fetcher.read([one], timeout_ms=self._plan.timeout_ms):
                    batches = [] if chunk.lost is not None else list(iter_batches(chunk.records))
                    if batches:
                        offsets = max(batches[-1].next_offset - max(batches[0].base_offset, extent.start), 1)
                        size = sum(batch.size_bytes for batch in batches)
                        found[number] = _Sample(size / offsets, batches[0].base_timestamp)
                        break
        return found

    def _last_ms(self, extents: Mapping[int, Extent]) -> int:
        asked = {
            TopicPartition(self._plan.topic, number): OffsetSpec.MAX_TIMESTAMP
            for number, extent in extents.items()
            if extent.size
        }
        if self._plan.end.kind == "time":
            return self._plan.end.amount
        found = self._source.list_offsets(asked).succeeded
        return max((at.timestamp for at in found.values()), default=0)

    # --- the state at the target

    def _tps(self, partitions: Mapping[int, Extent] | range) -> list[TopicPartition]:
        return [TopicPartition(self._plan.into, number) for number in partitions]

    def _planned(self) -> dict[int, Extent]:
        group = f"{self._plan.group}:plan"
        try:
            count = len(self._target.describe_topic(self._plan.into).partitions)
        except UnknownTopic:
            return {}
        found = self._target.list_group_offsets(group, self._tps(range(count))).succeeded
        extents = {}
        for tp, at in found.items():
            if at is not None:
                start, _, topic = at.metadata.partition(" ")
                if topic != self._plan.topic or not start.isdecimal():
                    raise PipelineError(
                        f"the replay {self._plan.id} was one of topic {topic}; choose another id"
                    )
                extents[tp.partition] = Extent(int(start), at.offset)
        return extents

    def prepare(self) -> dict[int, Extent]:
        """Makes the target topic if it is not there, and decides the offsets (T1)."""
        extents = self._planned()
        if extents:
            return extents
        extents = self._looked_up()
        self._make_topic(max(extents, default=-1) + 1)
        plans = {
            TopicPartition(self._plan.into, number): OffsetAndMetadata(
                extent.end, f"{extent.start} {self._plan.topic}"
            )
            for number, extent in extents.items()
        }
        if plans:
            self._target.alter_group_offsets(f"{self._plan.group}:plan", plans).check()
        return extents

    def _make_topic(self, partitions: int) -> None:
        into = self._plan.into
        try:
            there = len(self._target.describe_topic(into).partitions)
        except UnknownTopic:
            try:
                self._target.create_topics([NewTopic(into, max(partitions, 1))]).check()
            except TopicExists:
                there = len(self._target.describe_topic(into).partitions)
            else:
                return
        if there < partitions:
            raise PipelineError(
                f"topic {into} has {there} partitions and {self._plan.topic} has records in {partitions}: "
                "add partitions, or replay into another topic"
            )

    def positions(self, extents: Mapping[int, Extent]) -> dict[int, int]:
        """How far each partition is, by the target's word."""
        found = self._target.list_group_offsets(self._plan.group, self._tps(extents), require_stable=True)
        marks = {tp.partition: at.offset for tp, at in found.succeeded.items() if at is not None}
        return {number: marks.get(number, extent.start) for number, extent in extents.items()}

    # --- doing it

    def run(
        self, stop: threading.Event | None = None, on_copied: Callable[[list[Copied]], None] | None = None
    ) -> dict[int, int]:
        """Replays until all is done or `stop` is set; how far each partition is.  Raises as `copy`."""
        stop = stop or threading.Event()
        extents = self.prepare()
        done = self.positions(extents)
        ends = self._ends(extents, done)
        copier = MirrorPlan(
            self._plan.source,
            self._plan.target,
            Names(()),
            self._plan.group,
            skip_lost=True,
            timeout_ms=self._plan.timeout_ms,
        )
        threads = max(1, min(len(extents), _THREADS_MAX))
        links = [MirrorLinks(copier) for _ in range(threads)]
        try:
            with ThreadPoolExecutor(threads) as pool:
                while not stop.is_set() and any(done[n] < extents[n].end for n in extents):
                    began = time.monotonic()
                    copied = self._round(extents, done, ends(), links, pool)
                    if copied and on_copied is not None:
                        on_copied(copied)
                    stop.wait(max(0.0, _ROUND_S - (time.monotonic() - began)) if self._is_paced else 0.0)
        finally:
            for each in links:
                each.close()
        return done

    @property
    def _is_paced(self) -> bool:
        return self._plan.rate.kind != "all"

    def _round(
        self,
        extents: Mapping[int, Extent],
        done: dict[int, int],
        ends: Mapping[int, int],
        links: list[MirrorLinks],
        pool: ThreadPoolExecutor,
    ) -> list[Copied]:
        plan = self._plan
        parts: list[list[Work]] = [[] for _ in links]
        for number, extent in extents.items():
            if ends[number] > done[number]:
                limit = min(ends[number], extent.end)
                work = Work(plan.topic, number, limit, plan.into, False, extent.start, limit)
                parts[number % len(parts)].append(work)
        copied = [each for part in pool.map(copy, parts, links) for each in part]
        for each in copied:
            done[each.partition] = max(done[each.partition], each.end)
        return copied

    def _ends(self, extents: Mapping[int, Extent], done: Mapping[int, int]) -> Callable[[], dict[int, int]]:
        """Asks for how far partitions may be now."""
        began, first = time.monotonic(), dict(done)
        rate = self._plan.rate
        if rate.kind == "all":
            return lambda: {number: extent.end for number, extent in extents.items()}
        left = {number: Extent(first[number], extent.end) for number, extent in extents.items()}
        samples = self._samples(left)
        if rate.kind == "speed":
            first_ms = min((sample.first_ms for sample in samples.values()), default=0)
            return lambda: self._due(extents, due_ms(first_ms, rate.amount, time.monotonic() - began))
        average = sum(sample.bytes_per_offset for sample in samples.values()) / max(len(samples), 1)
        by_count = in_records(rate, average)
        return lambda: ends_by_count(extents, first, by_count.amount, time.monotonic() - began)

    def _due(self, extents: Mapping[int, Extent], moment_ms: int) -> dict[int, int]:
        reached = self._offsets(Edge("time", moment_ms + 1), tuple(extents))
        return {
            number: min(reached.get(number, extent.end), extent.end) for number, extent in extents.items()
        }
