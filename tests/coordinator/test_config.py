"""Names and defaults are Kafka's."""

from barnabas.coordinator.config import GROUPS, GroupSettings


def test_defaults_are_those_of_kafka() -> None:
    assert {key.name: key.default for key in GROUPS} == {
        "group.min.session.timeout.ms": 6_000,
        "group.max.session.timeout.ms": 1_800_000,
        "group.initial.rebalance.delay.ms": 3_000,
        "group.max.size": 2_147_483_647,
        "offset.metadata.max.bytes": 4_096,
        "offsets.retention.minutes": 10_080,
        "offsets.retention.check.interval.ms": 600_000,
        "offsets.topic.num.partitions": 50,
        "offsets.topic.replication.factor": 3,
        "offsets.topic.segment.bytes": 104_857_600,
        "offsets.topic.compression.codec": 0,
        "offsets.load.buffer.size": 5_242_880,
        "offsets.commit.timeout.ms": 5_000,
    }


def test_every_setting_says_what_it_means() -> None:
    assert [key.name for key in GROUPS if not key.doc] == []


def test_retention_is_read_in_minutes_and_kept_in_milliseconds() -> None:
    settings = GroupSettings.of(GROUPS.parse({"offsets.retention.minutes": "2"}))
    assert settings.retention_ms == 120_000
