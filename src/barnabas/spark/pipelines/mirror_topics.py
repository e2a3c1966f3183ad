"""The topics of a mirror: found at the source, made and kept alike at the target.

M1  A topic is copied in one way for as long as it lives: with its offsets if the mirror made it or found it
    empty, and the target can; else in transactions.
M2  A topic that kept offsets and does so no more was promoted: it belongs to the target and is left alone.
M3  Partitions are only added, settings of a topic follow the source (but those that belong to a cluster).

Asks the admins of both clusters; decides in plain functions.  One thread.
"""

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from barnabas.base.types import ZERO_UUID, TopicPartition, uuid_text
from barnabas.client.admin import Admin
from barnabas.client.admin_types import ConfigEntry, ConfigResource, ConfigSource, NewTopic, OffsetSpec
from barnabas.client.errors import KafkaError, TopicExists
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.protocol.codes import ErrorCode
from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.mirror_marks import KEPT_NOTE, is_kept, kept_note
from barnabas.spark.pipelines.mirror_settings import CONFIGS_NOT_COPIED, MirrorPlan

__all__ = ["MirrorTopics", "MirroredTopic", "Way", "config_changes"]

_log: Final = logging.getLogger("barnabas.mirror")
KEPT: Final = "barnabas.offsets.kept"
_NOTE_OLD_S: Final = 12 * 3600.0
_BATCH_BYTES_MAX: Final = "max.message.bytes"
_OF_BARNABAS: Final = "barnabas."
_REFUSED: Final = (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)


class Way(Enum):
    """How a topic is copied."""

    KEPT = "kept"
    TRANSLATED = "translated"
    PROMOTED = "promoted"


@dataclass(frozen=True, slots=True)
class MirroredTopic:
    """A source topic and its copy."""

    name: str
    target: str
    partitions: int
    way: Way
    id: str = ""
    """Of the source topic, as text; empty when its cluster has none."""
    batch_bytes_max: int | None = None
    """What the target takes as one batch, if it is known."""


class MirrorTopics:
    """What is mirrored now; `refresh` looks for more."""

    def __init__(self, plan: MirrorPlan, source: Admin, target: Admin) -> None:
        self._plan = plan
        self._source = source
        self._target = target
        self.topics: dict[str, MirroredTopic] = {}
        self._ids: dict[str, str] = {}
        self._noted_s: dict[str, float] = {}
        self.warnings: dict[str, str] = {}
        """Topic -> why it is not quite as it should be."""

    def refresh(self) -> None:
        """Brings the target's topics in line with the source's.  Raises KafkaError, PipelineError."""
        plan = self._plan
        listings = [each for each in self._source.list_topics() if plan.topics.matches(each.name)]
        counts = {each.name: each.partitions for each in listings}
        self._ids = {each.name: uuid_text(each.id) if each.id != ZERO_UUID else "" for each in listings}
        there = {listed.name: listed.partitions for listed in self._target.list_topics()}
        configs = {
            name: _set_by_hand(entries) for name, entries in self._described(self._source, counts).items()
        }
        copies = {plan.target_topic(name): name for name in counts}
        described = self._described(self._target, [name for name in copies if name in there])
        set_there = {target: _set_by_hand(entries) for target, entries in described.items()}
        found: dict[str, MirroredTopic] = {}
        for target, name in copies.items():
            if name not in configs:
                continue  # deleted meanwhile
            if target not in there:
                created = self._create(name, target, counts[name], configs[name])
                if created is None:
                    continue
                way = created
            else:
                way = self._way(name, target, there[target], set_there.get(target, {}))
                if way is not Way.PROMOTED:
                    self._align(target, counts[name], there[target], configs[name], set_there.get(target, {}))
            limit = _batch_bytes_max(described.get(target), configs[name])
            found[name] = MirroredTopic(name, target, counts[name], way, self._ids[name], limit)
        self.topics = found

    @staticmethod
    def _described(admin: Admin, topics: Iterable[str]) -> dict[str, Mapping[str, ConfigEntry]]:
        """All settings of topics; without those topics that are gone."""
        described = admin.describe_configs([ConfigResource.topic(name) for name in topics])
        return {resource.name: entries for resource, entries in described.succeeded.items()}

    # --- new ones

    def _create(self, name: str, target: str, partitions: int, configs: Mapping[str, str]) -> Way | None:
        """How the new topic is copied; None if somebody else has just made it: the next look tells."""
        try:
            return self._create_new(name, target, partitions, configs)
        except TopicExists:
            return None

    def _create_new(self, name: str, target: str, partitions: int, configs: Mapping[str, str]) -> Way:
        plan = self._plan
        wanted = _copied(configs) if plan.sync_configs else {}
        ways = [Way.TRANSLATED] if plan.offsets == "translated" else [Way.KEPT, Way.TRANSLATED]
        for way in ways:
            kept = {KEPT: "true"} if way is Way.KEPT else {}
            if self._made(NewTopic(target, partitions, plan.replication_factor, {**wanted, **kept})):
                break
            if way is Way.KEPT and plan.offsets == "kept":
                raise PipelineError(f"the target cannot keep offsets: it refuses {KEPT} for topic {target}")
        else:
            # It refuses something else: what can be set is set one by one.
            way = Way.TRANSLATED
            if not self._made(NewTopic(target, partitions, plan.replication_factor)):
                raise PipelineError(f"the target refuses topic {target}", retriable=True)
            self._alter(target, wanted)
        if way is Way.KEPT:
            self._note_kept(name, target, partitions, self._plan.start)
        _log.info("topic %s was made for %s (%s)", target, name, way.value)
        return way

    def _made(self, topic: NewTopic) -> bool:
        try:
            self._target.create_topics([topic]).check()
        except KafkaError as error:
            if error.code not in _REFUSED:
                raise
            self.warnings[topic.name] = str(error)
            return False
        self.warnings.pop(topic.name, None)
        return True

    def note(self, topic: MirroredTopic) -> None:
        """Says anew of which topic a copy is that has no records yet."""
        if topic.way is Way.KEPT:
            self._note_kept(topic.name, topic.target, topic.partitions, self._plan.start)

    def _note_kept(self, name: str, target: str, partitions: int, start: str) -> None:
        """Says for every partition that it is a copy and where it begins (M2)."""
        starts = dict.fromkeys(range(partitions), 0)
        if start == "latest":
            asked = {TopicPartition(name, number): OffsetSpec.LATEST for number in starts}
            listed = self._source.list_offsets(asked, read_committed=True).check()
            starts = {tp.partition: found.offset for tp, found in listed.items()}
        marks = {
            TopicPartition(target, number): OffsetAndMetadata(start, kept_note(self._ids[name]))
            for number, start in starts.items()
        }
        self._target.alter_group_offsets(self._plan.group, marks).check()
        self._noted_s[target] = time.monotonic()

    def _keep_note(self, name: str, target: str, partitions: int) -> None:
        """Writes the notes again now and then: brokers forget what is committed after seven days."""
        if time.monotonic() - self._noted_s.get(target, -_NOTE_OLD_S) < _NOTE_OLD_S:
            return
        tps = [TopicPartition(target, number) for number in range(partitions)]
        found = self._target.list_group_offsets(self._plan.group, tps).check()
        marks = {tp: self._named(name, mark) for tp, mark in found.items() if mark is not None}
        if marks:
            self._target.alter_group_offsets(self._plan.group, marks).check()
            self._noted_s[target] = time.monotonic()
        else:  # it ended between making the topic and noting it
            start = self._plan.start if self._is_empty(tps) else "earliest"
            self._note_kept(name, target, partitions, start)

    def _named(self, name: str, mark: OffsetAndMetadata) -> OffsetAndMetadata:
        """The mark with the topic's id, if it comes from a time when marks had none."""
        return replace(mark, metadata=kept_note(self._ids[name])) if mark.metadata == KEPT_NOTE else mark

    # --- those that are there

    def _way(self, name: str, target: str, partitions: int, configs: Mapping[str, str]) -> Way:
        if configs.get(KEPT) == "true":
            if self._plan.offsets == "translated":
                raise PipelineError(f"topic {target} keeps offsets; set {KEPT}=false at the target first")
            self._keep_note(name, target, partitions)
            return Way.KEPT
        known = self.topics.get(name)
        if known is not None and known.way is not Way.KEPT:
            return known.way
        tps = [TopicPartition(target, number) for number in range(partitions)]
        marks = [mark for mark in self._target.list_group_offsets(self._plan.group, tps).values() if mark]
        if any(is_kept(mark.metadata) for mark in marks):
            _log.warning("topic %s was promoted and is not mirrored any more", target)
            return Way.PROMOTED
        if marks or self._plan.offsets == "translated" or not self._is_empty(tps):
            if self._plan.offsets == "kept":
                raise PipelineError(f"topic {target} has records of its own and cannot keep offsets")
            return Way.TRANSLATED
        if not self._alter(target, {KEPT: "true"}):
            if self._plan.offsets == "kept":
                raise PipelineError(f"the target cannot keep offsets: it refuses {KEPT} for topic {target}")
            return Way.TRANSLATED
        self._note_kept(name, target, partitions, self._plan.start)
        return Way.KEPT

    def _is_empty(self, tps: list[TopicPartition]) -> bool:
        ends = self._target.list_offsets(dict.fromkeys(tps, OffsetSpec.LATEST)).check()
        return all(end.offset == 0 for end in ends.values())

    def _align(
        self, target: str, wanted: int, there: int, source: Mapping[str, str], now: Mapping[str, str]
    ) -> None:
        if wanted > there:
            self._target.create_partitions({target: wanted}).check()
        if self._plan.sync_configs:
            self._alter(target, config_changes(source, now))

    def _alter(self, target: str, changes: Mapping[str, str | None]) -> bool:
        """Sets what the target takes; says whether that was all."""
        refused = []
        for name, value in changes.items():
            resource = ConfigResource.topic(target)
            error = self._target.alter_configs({resource: {name: value}}).errors.get(resource)
            if error is not None:
                if error.code not in _REFUSED:
                    raise error
                refused.append(f"{name}: {error}")
        if refused and self.warnings.get(target) != (text := "; ".join(refused)):
            self.warnings[target] = text
            if KEPT not in changes:  # that is asked for to learn whether the target can
                _log.warning("topic %s at the target is not quite as at the source: %s", target, text)
        return not refused


def _set_by_hand(entries: Mapping[str, ConfigEntry]) -> dict[str, str]:
    """What was set for a topic itself."""
    return {
        entry.name: entry.value
        for entry in entries.values()
        if entry.source is ConfigSource.DYNAMIC_TOPIC and entry.value is not None
    }


def _batch_bytes_max(there: Mapping[str, ConfigEntry] | None, source: Mapping[str, str]) -> int | None:
    """What the copy takes as one batch; of one that was just made, what it got from the source."""
    entry = there.get(_BATCH_BYTES_MAX) if there is not None else None
    value = entry.value if entry is not None else source.get(_BATCH_BYTES_MAX)
    return int(value) if value is not None and value.isdecimal() else None


def config_changes(source: Mapping[str, str], target: Mapping[str, str]) -> dict[str, str | None]:
    """What to set at the target, and with None what to put back, so that it is as at the source (M3)."""
    wanted = _copied(source)
    changes: dict[str, str | None] = {
        name: value for name, value in wanted.items() if target.get(name) != value
    }
    changes |= {name: None for name in _copied(target) if name not in wanted}
    return changes


def _copied(configs: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in configs.items()
        if name not in CONFIGS_NOT_COPIED and not name.startswith(_OF_BARNABAS)
    }
