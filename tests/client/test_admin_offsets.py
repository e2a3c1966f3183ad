"""Offsets of the log and of groups, and the seven ways to move a group."""

from datetime import UTC, datetime, timedelta

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.admin_types import (
    OffsetReset,
    OffsetSpec,
)
from barnabas.client.errors import (
    UnknownGroup,
    UnknownTopic,
)
from tests.client._kit import KEPT, write


class TestOffsets:
    def test_offsets_by_role_and_by_time(self, admin: Admin, topic: str, bootstrap: str) -> None:
        admin.create_topic(topic, 1, configs=KEPT)
        write(bootstrap, topic, [1000, 3000, 2000])
        where = TopicPartition(topic, 0)

        def offset(when: OffsetSpec | int | datetime) -> int:
            return admin.list_offsets({where: when})[where].offset

        assert offset(OffsetSpec.EARLIEST) == 0
        assert offset(OffsetSpec.LATEST) == 3
        assert offset(OffsetSpec.MAX_TIMESTAMP) == 1
        assert offset(1500) == 1
        assert offset(datetime.fromtimestamp(1, UTC)) == 0
        assert offset(9000) == -1
        assert admin.list_offsets({where: 1500})[where].timestamp == 3000

    def test_committed_offsets_are_written_listed_and_deleted(
        self, admin: Admin, topic: str, group: str
    ) -> None:
        admin.create_topic(topic, 2)
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
        admin.alter_group_offsets(group, {first: 0}).check()
        found = admin.list_group_offsets(group)
        assert {where: value.offset for where, value in found.items() if value} == {first: 0}
        both = admin.list_group_offsets(group, [first, second])
        assert both[second] is None
        admin.delete_group_offsets(group, [first]).check()
        assert admin.list_group_offsets(group, [first])[first] is None

    def test_nothing_is_committed_by_a_group_that_never_was(self, admin: Admin, group: str) -> None:
        assert dict(admin.list_group_offsets(group)) == {}
        with pytest.raises(UnknownGroup):
            admin.describe_group(group)

    @pytest.mark.parametrize(
        ("to", "after", "note"),
        [
            (OffsetReset.earliest(), 2, ""),
            (OffsetReset.latest(), 10, ""),
            (OffsetReset.current(), 5, ""),
            (OffsetReset.to_offset(7), 7, ""),
            (OffsetReset.to_offset(1), 2, "1 is before the start of the log"),
            (OffsetReset.to_offset(99), 10, "99 is past the end of the log"),
            (OffsetReset.shift_by(-2), 3, ""),
            (OffsetReset.shift_by(3), 8, ""),
            (OffsetReset.to_datetime(datetime.fromtimestamp(4, UTC)), 4, ""),
            (OffsetReset.to_datetime(datetime.fromtimestamp(99, UTC)), 10, ""),
            (OffsetReset.by_duration(timedelta(days=40_000)), 2, ""),
            (OffsetReset.by_duration(timedelta(seconds=1)), 10, ""),
        ],
        ids=str,
    )
    def test_a_group_is_moved(
        self, admin: Admin, topic: str, group: str, bootstrap: str, to: OffsetReset, after: int, note: str
    ) -> None:
        admin.create_topic(topic, 1, configs=KEPT)
        write(bootstrap, topic, [number * 1000 for number in range(10)])
        where = TopicPartition(topic, 0)
        admin.delete_records({where: 2})
        admin.alter_group_offsets(group, {where: 5}).check()
        plan = admin.reset_group_offsets(group, to, dry_run=True)[where]
        assert (plan.before, plan.after, plan.note) == (5, after, note)
        committed = admin.list_group_offsets(group)[where]
        assert committed is not None
        assert committed.offset == 5
        assert admin.reset_group_offsets(group, to)[where] == plan
        committed = admin.list_group_offsets(group)[where]
        assert committed is not None
        assert committed.offset == after

    def test_a_new_group_gets_offsets_for_a_whole_topic(self, admin: Admin, topic: str, group: str) -> None:
        admin.create_topic(topic, 3)
        moved = admin.reset_group_offsets(group, OffsetReset.latest(), topics=[topic])
        assert [change.before for change in moved.values()] == [None] * 3
        assert len(admin.list_group_offsets(group)) == 3
        with pytest.raises(UnknownTopic):
            admin.reset_group_offsets(group, OffsetReset.latest(), topics=[f"{topic}-missing"])

    def test_nothing_can_be_shifted_without_a_committed_offset(
        self, admin: Admin, topic: str, group: str
    ) -> None:
        admin.create_topic(topic, 1)
        where = TopicPartition(topic, 0)
        outcome = admin.reset_group_offsets(group, OffsetReset.shift_by(1), partitions=[where])
        assert "there is no committed offset to shift" in str(outcome.errors[where])
