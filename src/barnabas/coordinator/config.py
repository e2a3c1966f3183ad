"""Settings of the group coordinator, with Kafka's names and defaults."""

from dataclasses import dataclass

from barnabas.base.config import ConfigTable, Key, Kind, Live, Settings, at_least, between

__all__ = ["GROUPS", "GroupSettings"]

GROUPS = ConfigTable(
    Key(
        "group.min.session.timeout.ms",
        6_000,
        at_least(0),
        doc="Shortest session timeout a member may ask for.",
    ),
    Key(
        "group.max.session.timeout.ms",
        1_800_000,
        at_least(0),
        doc="Longest session timeout a member may ask for.",
    ),
    Key(
        "group.initial.rebalance.delay.ms",
        3_000,
        at_least(0),
        doc="How long the first rebalance of an empty group waits for more members; "
        "each newcomer of a new group prolongs it, up to the rebalance timeout.",
    ),
    Key("group.max.size", 2**31 - 1, at_least(1), doc="Most members one group may have."),
    Key(
        "offset.metadata.max.bytes",
        4_096,
        at_least(0),
        doc="Longest metadata text that may go with a committed offset.",
    ),
    Key(
        "offsets.retention.minutes",
        10_080,
        at_least(1),
        live=Live.CLUSTER,
        doc="How long offsets outlive their use: after the group became empty, after the group stopped "
        "subscribing to the topic, or after the last commit of a consumer without a group.",
    ),
    Key(
        "offsets.retention.check.interval.ms",
        600_000,
        at_least(1),
        kind=Kind.LONG,
        doc="How often expired offsets and empty groups are looked for.",
    ),
    Key(
        "offsets.topic.num.partitions",
        50,
        at_least(1),
        doc="Partitions of __consumer_offsets; must not change once the topic exists.",
    ),
    Key(
        "offsets.topic.replication.factor",
        3,
        at_least(1),
        kind=Kind.SHORT,
        doc="Replicas of __consumer_offsets; a smaller cluster makes it with as many as it has brokers.",
    ),
    Key(
        "offsets.topic.segment.bytes",
        104_857_600,
        at_least(1),
        doc="Segment size of __consumer_offsets; small ones are compacted and loaded sooner.",
    ),
    Key(
        "offsets.topic.compression.codec",
        0,
        between(0, 4),
        doc="Codec of the batches in __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    ),
    Key(
        "offsets.load.buffer.size",
        5_242_880,
        at_least(1),
        doc="Bytes read from __consumer_offsets at a time when groups are loaded.",
    ),
    Key(
        "offsets.commit.timeout.ms",
        5_000,
        at_least(1),
        doc="How long a write to __consumer_offsets waits for its replicas.",
    ),
)


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """What the coordinator itself reads; the offsets topic and its log read the rest of GROUPS."""

    session_timeout_ms_min: int
    session_timeout_ms_max: int
    initial_rebalance_delay_ms: int
    group_size_max: int
    metadata_length_max: int
    retention_ms: int
    retention_check_interval_ms: int

    @classmethod
    def of(cls, settings: Settings) -> "GroupSettings":
        """Those of `settings`, which must hold every key of GROUPS."""
        return cls(
            session_timeout_ms_min=settings.integer("group.min.session.timeout.ms"),
            session_timeout_ms_max=settings.integer("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=settings.integer("group.initial.rebalance.delay.ms"),
            group_size_max=settings.integer("group.max.size"),
            metadata_length_max=settings.integer("offset.metadata.max.bytes"),
            retention_ms=settings.integer("offsets.retention.minutes") * 60_000,
            retention_check_interval_ms=settings.integer("offsets.retention.check.interval.ms"),
        )
