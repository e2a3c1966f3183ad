"""The values of admin calls print well and answer small questions."""

import inspect
from dataclasses import is_dataclass
from datetime import UTC, datetime, timedelta

import pytest

from barnabas.base.types import ZERO_UUID, TopicPartition
from barnabas.client import admin_types
from barnabas.client.admin_types import (
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    CreatedTopic,
    GroupDescription,
    GroupLag,
    GroupListing,
    ListedOffset,
    LogDir,
    LogDirReplica,
    MemberDescription,
    OffsetChange,
    OffsetReset,
    PartitionLag,
    TopicListing,
)
from barnabas.client.metadata import BrokerInfo

WHERE = TopicPartition("t", 0)
BROKER = BrokerInfo(1, "h", 9092)
MEMBER = MemberDescription("m-1", "app", "10.0.0.1", assignment=(WHERE,))
GROUP = GroupDescription("g", "Stable", "consumer", "range", BROKER, (MEMBER,))


def lag(committed: int | None, start: int = 0, end: int = 10, seconds: float | None = 1.5) -> PartitionLag:
    return PartitionLag(WHERE, committed, start, end, None, seconds)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (CreatedTopic("t", ZERO_UUID, 3, 1), "t: 3 partitions, replication factor 1"),
        (TopicListing("__x", ZERO_UUID, 4, True), "__x (4 partitions, internal)"),
        (ConfigResource.topic("t"), "topic t"),
        (ConfigResource.broker(), "broker (default of all)"),
        (ConfigEntry("a", "1", ConfigSource.STATIC_BROKER, False, False), "a=1 (static broker)"),
        (ConfigEntry("p", None, ConfigSource.DEFAULT, False, True), "p=[hidden] (default)"),
        (GroupListing("g", "consumer", "Empty"), "g (Empty, classic)"),
        (GroupListing("g", "consumer", ""), "g (state unknown, classic)"),
        (GROUP, "g: Stable, 1 members, broker 1 at h:9092 coordinates\n  app on 10.0.0.1: t-0"),
        (MemberDescription("m-1", "", "h"), "m-1 on h: nothing"),
        (ListedOffset(5), "5"),
        (ListedOffset(5, 0), "5 at 1970-01-01T00:00:00.000+00:00"),
        (OffsetChange(WHERE, None, 3, 0, 9), "t-0: none -> 3"),
        (
            OffsetChange(WHERE, 1, 9, 0, 9, "12 is past the end of the log"),
            "t-0: 1 -> 9 (12 is past the end of the log)",
        ),
        (lag(4), "t-0: 6 behind, 1.5 s (committed 4, end 10)"),
        (lag(None, seconds=None), "t-0: 10 behind (committed none, end 10)"),
        (
            GroupLag(GROUP, (lag(4),)),
            "g: 6 messages behind, 1.5 s\n  t-0: 6 behind, 1.5 s (committed 4, end 10)",
        ),
        (
            ClusterDescription("c", BROKER, (BROKER,)),
            "cluster c, 1 brokers\n  broker 1 at h:9092 (controller)",
        ),
        (LogDir("/d", (LogDirReplica(WHERE, 7, 0, False),)), "/d: 1 replicas, 7 bytes"),
        (OffsetReset.earliest(), "earliest"),
        (OffsetReset.shift_by(-5), "shift-by -5"),
        (
            OffsetReset.to_datetime(datetime(2026, 1, 2, tzinfo=UTC)),
            "to-datetime 2026-01-02T00:00:00.000+00:00",
        ),
        (OffsetReset.by_duration(timedelta(hours=2)), "by-duration 2:00:00"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_values_print_well(value: object, text: str) -> None:
    assert str(value) == text


class TestLag:
    def test_it_never_counts_what_is_gone_or_not_there(self) -> None:
        assert lag(4).messages == 6
        assert lag(4, start=8).messages == 2
        assert lag(12).messages == 0
        assert lag(None, start=3).messages == 7

    def test_a_group_is_as_late_as_its_latest_partition(self) -> None:
        assert GroupLag(GROUP, (lag(4), lag(1, seconds=9.0), lag(1, seconds=None))).seconds == 9.0
        assert GroupLag(GROUP, (lag(4, seconds=None),)).seconds is None
        assert GroupLag(GROUP, ()).messages == 0


class TestOffsetChanges:
    def test_they_tell_by_how_much(self) -> None:
        assert OffsetChange(WHERE, 5, 3, 0, 9).moves_by == -2
        assert OffsetChange(WHERE, None, 3, 0, 9).moves_by is None


def test_every_value_is_frozen() -> None:
    values = [each for _, each in inspect.getmembers(admin_types, is_dataclass)]
    assert len(values) > 15
    for value in values:
        assert vars(value)["__dataclass_params__"].frozen, value
