"""A mirror as a stream of Spark: its tasks fetch and produce themselves and yield one row about it each.

Spark schedules, retries and checkpoints; no record crosses the JVM.  The checkpoint is only a note of what
was looked at: the state is in the target cluster, so that a lost checkpoint costs nothing and a batch that
runs again copies nothing twice (`mirror_task`).

S1  An offset is {"offsets": {topic: {partition: end}}} of the source; a batch copies the partitions whose end
    moved.
S2  With Trigger.AvailableNow the ends are those of the first look.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from barnabas.base.types import TopicPartition
from barnabas.spark.pipelines.mirror_settings import MirrorPlan, Names
from barnabas.spark.pipelines.mirror_task import MirrorLinks, Work, copy
from barnabas.spark.pipelines.mirror_upkeep import MirrorUpkeep, share
from barnabas.spark.workers import settle

__all__ = ["FORMAT", "PLAN_OPTION", "SCHEMA", "MirrorSource", "plan_from_text", "plan_text"]

FORMAT: Final = "barnabas_mirror"
PLAN_OPTION: Final = "secretPlan"  # by this name Spark hides it in plans and in its pages
SCHEMA: Final = (
    "topic string, partition int, start bigint, end bigint, "
    "records bigint, bytes bigint, lost bigint, ms bigint"
)
TASKS: Final = 2

Ends = dict[TopicPartition, int]


def plan_text(plan: MirrorPlan) -> str:
    """The plan as an option's value."""
    return json.dumps(asdict(plan))


def plan_from_text(text: str) -> MirrorPlan:
    """What `plan_text` wrote."""
    values = json.loads(text)
    for each in fields(MirrorPlan):
        if each.name in ("topics", "groups"):
            values[each.name] = Names(*(tuple(part) for part in values[each.name].values()))
    return MirrorPlan(**values)


class MirrorSource(DataSource):
    """Register it, then `readStream.format(FORMAT).option(PLAN_OPTION, plan_text(plan))`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: object) -> "MirrorReader":
        return MirrorReader(self.options[PLAN_OPTION])


class MirrorTask(InputPartition):
    """The partitions that one task copies."""

    def __init__(self, works: list[Work]) -> None:
        self.works = tuple(works)
        super().__init__(self.works)


class MirrorReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The driver's side, in a process of its own for the life of a query."""

    def __init__(self, plan: str) -> None:
        self._text = plan
        self._plan = plan_from_text(plan)
        self._upkeep: MirrorUpkeep | None = None
        self._latest: Ends = {}
        self._is_available_now = False
        self._frozen: Ends | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Workers get the plan; connections stay here."""
        return MirrorReader, (self._text,)

    @property
    def upkeep(self) -> MirrorUpkeep:
        if self._upkeep is None:
            self._upkeep = MirrorUpkeep(self._plan)
        return self._upkeep

    def initialOffset(self) -> dict[str, Any]:
        """Nothing was looked at: where copying begins is known to the target."""
        return {"offsets": {}}

    def prepareForTriggerAvailableNow(self) -> None:
        self._is_available_now = True

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Looks at the clusters; where the next batch ends."""
        upkeep = self.upkeep
        if upkeep.look():
            upkeep.check_ends()
        self._latest = self._ends()
        known = _ends_of(start)
        if not known and self._latest:
            known = upkeep.positions()
        limited = {
            tp: min(end, known.get(tp, 0) + self._plan.batch_offsets) for tp, end in self._latest.items()
        }
        ended = _offset({**{tp: at for tp, at in known.items() if tp in limited}, **limited})
        if self._is_available_now and _ends_of(start) == limited:
            upkeep.sync_groups()  # once more: now everything is there
        return ended

    def _ends(self) -> Ends:
        if not self._is_available_now:
            return self.upkeep.ends()
        if self._frozen is None:
            self._frozen = self.upkeep.ends()
        return self._frozen

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return _offset(self._latest) if self._latest else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        before, ends = _ends_of(start), _ends_of(end)
        moved = {tp: at for tp, at in ends.items() if before.get(tp) != at}
        if not self.upkeep.topics:
            self.upkeep.look(force=True)  # a batch of an earlier run
        sizes = {tp: at - before.get(tp, 0) for tp, at in moved.items()}
        works = self.upkeep.works(moved)
        return [MirrorTask(part) for part in share(works, sizes, self._plan.tasks or TASKS)] if works else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """In a worker: copies, then tells."""
        assert isinstance(partition, MirrorTask), "planned by `partitions`"
        settle()
        started = time.monotonic()
        done = copy(partition.works, _links(self._text))
        took_ms = int((time.monotonic() - started) * 1000)
        for each in done:
            yield (
                each.topic,
                each.partition,
                each.start,
                each.end,
                each.records,
                each.size_bytes,
                each.lost,
                took_ms,
            )

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: the target knows."""

    def stop(self) -> None:
        if self._upkeep is not None:
            self._upkeep.close()
            self._upkeep = None


_open_links: dict[str, MirrorLinks] = {}


def _links(plan: str) -> MirrorLinks:
    """The worker's connections; it is used again for the next batches."""
    if plan not in _open_links:
        _open_links[plan] = MirrorLinks(plan_from_text(plan))
    return _open_links[plan]


def _offset(ends: Mapping[TopicPartition, int]) -> dict[str, Any]:
    topics: dict[str, dict[str, int]] = {}
    for tp in sorted(ends):  # offsets are compared as text
        topics.setdefault(tp.topic, {})[str(tp.partition)] = ends[tp]
    return {"offsets": topics}


def _ends_of(offset: Mapping[str, Any]) -> Ends:
    return {
        TopicPartition(topic, int(partition)): int(end)
        for topic, partitions in offset.get("offsets", {}).items()
        for partition, end in partitions.items()
    }
