"""Lag in messages is the distance to the end; in seconds, the age of the oldest record that was not read."""

from barnabas.base.clock import ManualClock
from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.errors import UnknownGroup
from tests.client._kit import KEPT, settings_for, write


class TestLag:
    def test_it_is_counted_in_messages_and_in_seconds(self, bootstrap: str, topic: str, group: str) -> None:
        with Admin(settings_for(bootstrap), clock=ManualClock(20_000)) as admin:
            admin.create_topic(topic, 2, configs=KEPT)
            write(bootstrap, topic, [1_000, 5_000, 9_000])
            first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
            admin.alter_group_offsets(group, {first: 1, second: 0}).check()
            lag = admin.group_lag(group)
            assert (lag.messages, lag.seconds) == (2, 15.0)
            behind, done = lag.partitions
            assert (behind.committed, behind.end, behind.messages) == (1, 3, 2)
            assert (behind.oldest_timestamp, behind.seconds) == (5_000, 15.0)
            assert (done.messages, done.seconds) == (0, 0.0)

    def test_without_seconds_no_record_is_read(
        self, admin: Admin, bootstrap: str, topic: str, group: str
    ) -> None:
        admin.create_topic(topic, 1, configs=KEPT)
        write(bootstrap, topic, [1_000])
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): 0}).check()
        lag = admin.group_lag(group, seconds=False)
        assert (lag.messages, lag.seconds) == (1, None)

    def test_what_was_deleted_is_not_behind(
        self, admin: Admin, bootstrap: str, topic: str, group: str
    ) -> None:
        admin.create_topic(topic, 1, configs=KEPT)
        write(bootstrap, topic, range(10))
        where = TopicPartition(topic, 0)
        admin.alter_group_offsets(group, {where: 1}).check()
        admin.delete_records({where: 8})
        assert admin.group_lag(group).messages == 2

    def test_a_group_that_is_not_there_is_an_error_of_that_group(self, admin: Admin, group: str) -> None:
        assert isinstance(admin.group_lags([group]).errors[group], UnknownGroup)
