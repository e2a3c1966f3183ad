"""Consumer groups that follow the mirror: their offsets at the source become offsets at the target.

G1  A group at the target never skips a record that it has not read at the source (`mirror_offsets`), and
    never stands behind the end of what was copied.
G2  It only moves forward, and only while nobody reads with it there: who has moved to the target goes on
    there.

Offsets of topics that keep theirs are the same; those of others go through the map in the mirror's mark.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.admin_types import OffsetSpec
from barnabas.client.errors import GroupError
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.spark.pipelines.mirror_marks import Mark, is_kept, read_mark
from barnabas.spark.pipelines.mirror_settings import GROUP_PREFIX, MirrorPlan
from barnabas.spark.pipelines.mirror_topics import MirroredTopic, Way

__all__ = ["moves", "sync_groups"]

_log: Final = logging.getLogger("barnabas.mirror")
_CONSUMER_TYPES: Final = ("classic", "consumer")


def sync_groups(plan: MirrorPlan, topics: Iterable[MirroredTopic], source: Admin, target: Admin) -> int:
    """Brings the groups of the target up to those of the source; says how many offsets were moved."""
    copies = {
        TopicPartition(topic.name, number): (TopicPartition(topic.target, number), topic.way)
        for topic in topics
        if topic.way is not Way.PROMOTED
        for number in range(topic.partitions)
    }
    if not copies:
        return 0
    names = [
        listed.id
        for listed in source.list_groups()
        if plan.groups.matches(listed.id)
        and not listed.id.startswith(GROUP_PREFIX)
        and listed.id != plan.group
        and (not listed.type or listed.type.lower() in _CONSUMER_TYPES)
    ]
    kept = [copy for copy, way in copies.values() if way is Way.KEPT]
    ends = {
        tp: found.offset
        for tp, found in target.list_offsets(dict.fromkeys(kept, OffsetSpec.LATEST)).succeeded.items()
    }
    marks = _marks(plan, target, [copy for copy, way in copies.values() if way is Way.TRANSLATED])
    moved = 0
    for name in names:
        committed = {
            tp: at for tp, at in source.list_group_offsets(name).succeeded.items() if at and tp in copies
        }
        wanted = moves(committed, {tp: copy for tp, (copy, _) in copies.items()}, ends, marks)
        moved += _move(name, wanted, target) if wanted else 0
    return moved


def moves(
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    copies: Mapping[TopicPartition, TopicPartition],
    ends: Mapping[TopicPartition, int],
    marks: Mapping[TopicPartition, Mark],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Where a group with these offsets at the source stands at the target, as far as it is known."""
    wanted: dict[TopicPartition, OffsetAndMetadata] = {}
    for tp, at in committed.items():
        copy = copies[tp]
        if copy in ends:
            offset: int | None = min(at.offset, ends[copy])
        elif copy in marks:
            offset = marks[copy].offsets.translate(at.offset)
        else:
            offset = None
        if offset is not None:
            wanted[copy] = OffsetAndMetadata(offset, at.metadata)
    return wanted


def _marks(plan: MirrorPlan, target: Admin, tps: list[TopicPartition]) -> dict[TopicPartition, Mark]:
    if not tps:
        return {}
    found = target.list_group_offsets(plan.group, tps, require_stable=True).succeeded
    return {
        tp: read_mark((at.offset, at.metadata))
        for tp, at in found.items()
        if at is not None and not is_kept(at.metadata)
    }


def _move(group: str, wanted: Mapping[TopicPartition, OffsetAndMetadata], target: Admin) -> int:
    """Moves a group forward (G2)."""
    now = target.list_group_offsets(group, list(wanted)).succeeded
    ahead = {
        tp: at
        for tp, at in wanted.items()
        if tp in now and ((known := now[tp]) is None or known.offset < at.offset)
    }
    if not ahead:
        return 0
    try:
        return len(target.alter_group_offsets(group, ahead).succeeded)
    except GroupError as error:
        _log.debug("group %s is left as it is: %s", group, error)
        return 0
