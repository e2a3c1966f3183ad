"""The driver's part of a mirror: what there is to copy, and everything about it that is not a record.

Looks at topics, settings and groups every `sync_interval_ms` and at the ends of partitions whenever asked.
Holds an admin for each cluster; `close` it.  One thread.
"""

import logging
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.base.types import TopicPartition
from barnabas.client.admin_types import OffsetSpec
from barnabas.client.errors import KafkaError
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.spark.pipelines.mirror_groups import sync_groups
from barnabas.spark.pipelines.mirror_marks import Mark, is_kept, topic_id_of
from barnabas.spark.pipelines.mirror_settings import MirrorPlan
from barnabas.spark.pipelines.mirror_task import MADE_AGAIN, TopicEnded, Work, other_topic
from barnabas.spark.pipelines.mirror_topics import MirroredTopic, MirrorTopics, Way
from barnabas.spark.pipelines.two_clusters import TwoClusters

__all__ = ["MirrorUpkeep", "share"]

_log: Final = logging.getLogger("barnabas.mirror")

Ends = Mapping[TopicPartition, int]


class _Place(NamedTuple):
    """How far a partition was copied, and of the topic with which id."""

    position: int
    topic_id: str


class MirrorUpkeep(TwoClusters):
    """Both clusters, seen from above.  Raises NoBrokersAvailable, ConfigFault."""

    def __init__(self, plan: MirrorPlan) -> None:
        self.plan = plan
        super().__init__(plan.source, plan.target)
        self._topics = MirrorTopics(plan, self._source, self._target)
        self._looked_s = float("-inf")
        self._starts: dict[TopicPartition, int] = {}

    @property
    def topics(self) -> Mapping[str, MirroredTopic]:
        """Source topic -> its copy, as of the last look."""
        return self._topics.topics

    @property
    def warnings(self) -> Mapping[str, str]:
        return self._topics.warnings

    def look(self, *, force: bool = False) -> bool:
        """Brings topics, settings and groups in line when it is time to; says whether it was.

        Raises KafkaError, PipelineError.
        """
        if not force and time.monotonic() - self._looked_s < self.plan.sync_interval_ms / 1000:
            return False
        self._topics.refresh()
        self.sync_groups()
        self._looked_s = time.monotonic()
        return True

    def sync_groups(self) -> int:
        """Moves groups; says how many offsets.  What fails is logged: records matter more."""
        if not self.plan.sync_groups:
            return 0
        try:
            return sync_groups(self.plan, self.topics.values(), self._source, self._target)
        except KafkaError as error:
            _log.warning("groups were not moved: %s", error)
            return 0

    def ends(self) -> dict[TopicPartition, int]:
        """Up to where each source partition can be copied now.  Raises KafkaError, TopicEnded."""
        tps = [
            TopicPartition(topic.name, number)
            for topic in self.topics.values()
            if topic.way is not Way.PROMOTED
            for number in range(topic.partitions)
        ]
        listed = self._source.list_offsets(dict.fromkeys(tps, OffsetSpec.LATEST), read_committed=True)
        return {tp: found.offset for tp, found in listed.succeeded.items()}

    def positions(self) -> dict[TopicPartition, int]:
        """How far each source partition was copied, by what the target says."""
        return {tp: place.position for tp, place in self._places().items()}

    def _places(self) -> "dict[TopicPartition, _Place]":
        copies = {
            TopicPartition(topic.target, number): (TopicPartition(topic.name, number), topic.way)
            for topic in self.topics.values()
            if topic.way is not Way.PROMOTED
            for number in range(topic.partitions)
        }
        if not copies:
            return {}
        marks = self._target.list_group_offsets(self.plan.group, list(copies)).succeeded
        kept = [tp for tp, (_, way) in copies.items() if way is Way.KEPT]
        ends = self._target.list_offsets(dict.fromkeys(kept, OffsetSpec.LATEST)).succeeded
        found: dict[TopicPartition, _Place] = {}
        for copy, (tp, way) in copies.items():
            mark = marks.get(copy)
            at, note = (mark.offset, mark.metadata) if mark is not None else (0, "")
            if way is Way.KEPT and copy in ends:
                found[tp] = _Place(max(ends[copy].offset, at), topic_id_of(note))
            elif mark is not None and not is_kept(note):
                found[tp] = _Place(at, topic_id_of(note))
        return found

    def check_ends(self) -> None:
        """Raises TopicEnded when a source topic is not the one that was copied.

        It has another id, or, where topics have none, a partition ends before what was copied of it.
        """
        places = self._places()
        listed = self._source.list_offsets(dict.fromkeys(places, OffsetSpec.LATEST)).succeeded
        for tp, (position, topic_id) in places.items():
            if tp in listed and listed[tp].offset < position:
                raise TopicEnded(
                    f"{tp} was copied up to offset {position}, but ends at {listed[tp].offset} now; "
                    f"{MADE_AGAIN}"
                )
            topic = self.topics[tp.topic]
            if topic_id and topic.id and topic_id != topic.id:
                if any(places[each].position for each in places if each.topic == tp.topic):
                    raise TopicEnded(other_topic(tp.topic, topic_id, topic.id))
                self._topics.note(topic)  # nothing of the one before was copied

    def works(self, ends: Ends) -> list[Work]:
        """What to copy to reach `ends`."""
        found = []
        for tp, end in ends.items():
            topic = self.topics.get(tp.topic)
            if topic is not None and topic.way is not Way.PROMOTED:
                start = self._start(tp, topic)
                kept = topic.way is Way.KEPT
                found.append(Work(*tp, end, topic.target, kept, start, None, topic.id, topic.batch_bytes_max))
        return found

    def _start(self, tp: TopicPartition, topic: MirroredTopic) -> int:
        """Where a partition begins of which nothing was copied; looked up once."""
        if tp in self._starts:
            return self._starts[tp]
        copy = TopicPartition(topic.target, tp.partition)
        mark = self._target.list_group_offsets(self.plan.group, [copy], require_stable=True)[copy]
        start = mark.offset if mark is not None and is_kept(mark.metadata) else 0
        if mark is None and topic.way is Way.TRANSLATED and self.plan.start == "latest":
            start = self._source.list_offsets({tp: OffsetSpec.LATEST}, read_committed=True)[tp].offset
            first = OffsetAndMetadata(
                *Mark(start, topic_id=topic.id).committed(int(time.time()))
            )  # or a restart would skip more
            self._target.alter_group_offsets(self.plan.group, {copy: first}).check()
        self._starts[tp] = start
        return start


def share(works: list[Work], sizes: Ends, tasks: int) -> list[list[Work]]:
    """The works in at most `tasks` parts of about the same size; the largest first, each to the emptiest."""
    parts: list[list[Work]] = [[] for _ in range(max(1, min(tasks, len(works))))]
    loads = [0] * len(parts)
    for work in sorted(works, key=lambda w: (-sizes.get(TopicPartition(w.topic, w.partition), 0), w)):
        at = loads.index(min(loads))
        parts[at].append(work)
        loads[at] += sizes.get(TopicPartition(work.topic, work.partition), 0) + 1
    return [part for part in parts if part]
