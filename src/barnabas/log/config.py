"""The settings of topics and of the broker's storage, each declared once, with Kafka's names and defaults.

`TOPIC` is what a topic can override; each key names the broker setting that supplies it otherwise.
`BROKER_LOG` is the broker's side: those suppliers, derived from the same rows, and what only the broker as a
whole has.  Defaults are those of Apache Kafka 4.
`LogConfig` is a topic's settings as typed fields, for code that reads them at every append.
"""

from dataclasses import dataclass
from typing import Final

from barnabas.base.config import (
    ConfigTable,
    Key,
    Kind,
    Live,
    Settings,
    Synonym,
    at_least,
    between,
    listed,
    one_of,
)
from barnabas.records.codecs import Codec

__all__ = ["BROKER_LOG", "TOPIC", "LogConfig"]

_LONG_MAX: Final = 2**63 - 1
_SECOND_MS: Final = 1000
_MINUTE_MS: Final = 60 * _SECOND_MS
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
_LIVE: Final = Live.CLUSTER


def _log(*names: str) -> tuple[Synonym, ...]:
    return tuple(Synonym("log." + name) for name in names)


TOPIC: Final = ConfigTable(
    Key(
        "barnabas.offsets.kept",
        False,
        live=_LIVE,
        doc="The topic is a copy from another cluster with the same offsets: only a mirror writes to it. Can "
        "be set when a topic is made or empty; false makes it a topic like any other.",
    ),
    Key(
        "cleanup.policy",
        ("delete",),
        listed("compact", "delete", empty=False),
        live=_LIVE,
        doc="What happens to old segments: deleted after a time or size, compacted to the last value of "
        "each key, or both.",
        synonyms=_log("cleanup.policy"),
    ),
    Key(
        "compression.type",
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        live=_LIVE,
        doc="How batches are stored: as the producer compressed them, or recompressed to this.",
        synonyms=(Synonym("compression.type"),),
    ),
    Key(
        "compression.gzip.level",
        -1,
        between(-1, 9),
        live=_LIVE,
        doc="Level when compression.type is gzip; -1 is zlib's own default.",
        synonyms=(Synonym("compression.gzip.level"),),
    ),
    Key(
        "compression.lz4.level",
        9,
        between(1, 17),
        live=_LIVE,
        doc="Level when compression.type is lz4.",
        synonyms=(Synonym("compression.lz4.level"),),
    ),
    Key(
        "compression.zstd.level",
        3,
        between(-131072, 22),
        live=_LIVE,
        doc="Level when compression.type is zstd.",
        synonyms=(Synonym("compression.zstd.level"),),
    ),
    Key(
        "delete.retention.ms",
        _DAY_MS,
        at_least(0),
        kind=Kind.LONG,
        live=_LIVE,
        doc="How long compaction keeps tombstones and transaction markers, so that a reader who is that "
        "slow still sees them.",
        synonyms=(Synonym("log.cleaner.delete.retention.ms"),),
    ),
    Key(
        "file.delete.delay.ms",
        _MINUTE_MS,
        at_least(0),
        kind=Kind.LONG,
        live=_LIVE,
        doc="How long a deleted segment's files stay, renamed, before they go.",
        synonyms=_log("segment.delete.delay.ms"),
    ),
    Key(
        "flush.messages",
        _LONG_MAX,
        at_least(1),
        live=_LIVE,
        doc="Sync to disk after this many records; replication is the usual answer instead.",
        synonyms=_log("flush.interval.messages"),
    ),
    Key(
        "flush.ms",
        _LONG_MAX,
        at_least(0),
        live=_LIVE,
        doc="Sync to disk when the oldest unsynced record is this old.",
        synonyms=_log("flush.interval.ms", "flush.scheduler.interval.ms"),
    ),
    Key(
        "follower.replication.throttled.replicas",
        (),
        live=_LIVE,
        doc="Replicas whose following is throttled: `partition:broker` items, or `*`.",
    ),
    Key(
        "index.interval.bytes",
        4096,
        at_least(0),
        live=_LIVE,
        doc="How many bytes of batches lie between two index entries.",
        synonyms=_log("index.interval.bytes"),
    ),
    Key(
        "leader.replication.throttled.replicas",
        (),
        live=_LIVE,
        doc="Replicas whose leading is throttled: `partition:broker` items, or `*`.",
    ),
    Key(
        "local.retention.bytes",
        -2,
        at_least(-2),
        kind=Kind.LONG,
        live=_LIVE,
        doc="Kept for tools that set it; without tiered storage retention.bytes holds.",
        synonyms=_log("local.retention.bytes"),
    ),
    Key(
        "local.retention.ms",
        -2,
        at_least(-2),
        kind=Kind.LONG,
        live=_LIVE,
        doc="Kept for tools that set it; without tiered storage retention.ms holds.",
        synonyms=_log("local.retention.ms"),
    ),
    Key(
        "max.compaction.lag.ms",
        _LONG_MAX,
        at_least(1),
        live=_LIVE,
        doc="A record must be compacted at the latest when it is this old.",
        synonyms=(Synonym("log.cleaner.max.compaction.lag.ms"),),
    ),
    Key(
        "max.message.bytes",
        2**20 + 12,
        at_least(0),
        live=_LIVE,
        doc="The largest batch that is taken, as it is stored.",
        synonyms=(Synonym("message.max.bytes"),),
    ),
    Key(
        "message.timestamp.after.max.ms",
        _HOUR_MS,
        at_least(0),
        kind=Kind.LONG,
        live=_LIVE,
        doc="How far ahead of the broker's clock a record's own time may be.",
        synonyms=_log("message.timestamp.after.max.ms"),
    ),
    Key(
        "message.timestamp.before.max.ms",
        _LONG_MAX,
        at_least(0),
        live=_LIVE,
        doc="How far behind the broker's clock a record's own time may be.",
        synonyms=_log("message.timestamp.before.max.ms"),
    ),
    Key(
        "message.timestamp.type",
        "CreateTime",
        one_of("CreateTime", "LogAppendTime"),
        live=_LIVE,
        doc="Whether records carry the producer's time or that of their append.",
        synonyms=_log("message.timestamp.type"),
    ),
    Key(
        "min.cleanable.dirty.ratio",
        0.5,
        between(0, 1),
        live=_LIVE,
        doc="Compact when at least this share of the log is not compacted yet.",
        synonyms=(Synonym("log.cleaner.min.cleanable.ratio"),),
    ),
    Key(
        "min.compaction.lag.ms",
        0,
        at_least(0),
        kind=Kind.LONG,
        live=_LIVE,
        doc="A record is not compacted before it is this old.",
        synonyms=(Synonym("log.cleaner.min.compaction.lag.ms"),),
    ),
    Key(
        "min.insync.replicas",
        1,
        at_least(1),
        live=_LIVE,
        doc="Fewest in-sync replicas for an acks=all write to be taken.",
        synonyms=(Synonym("min.insync.replicas"),),
    ),
    Key(
        "preallocate",
        False,
        live=_LIVE,
        doc="Reserve the disk blocks of a segment when it is made.",
        synonyms=_log("preallocate"),
    ),
    Key(
        "remote.log.copy.disable",
        False,
        live=_LIVE,
        doc="Kept for tools that set it; there is no tiered storage.",
    ),
    Key(
        "remote.log.delete.on.disable",
        False,
        live=_LIVE,
        doc="Kept for tools that set it; there is no tiered storage.",
    ),
    Key(
        "remote.storage.enable",
        False,
        live=_LIVE,
        doc="Kept for tools that read it; there is no tiered storage.",
    ),
    Key(
        "retention.bytes",
        -1,
        kind=Kind.LONG,
        live=_LIVE,
        doc="Delete old segments while the partition is larger; -1 is no limit.",
        synonyms=_log("retention.bytes"),
    ),
    Key(
        "retention.ms",
        7 * _DAY_MS,
        at_least(-1),
        kind=Kind.LONG,
        live=_LIVE,
        doc="Delete segments whose youngest record is older; -1 is no limit.",
        synonyms=(
            Synonym("log.retention.ms"),
            Synonym("log.retention.minutes", _MINUTE_MS),
            Synonym("log.retention.hours", _HOUR_MS),
        ),
    ),
    Key(
        "segment.bytes",
        2**30,
        at_least(14),
        live=_LIVE,
        doc="Roll to a new segment when the active one would pass this size.",
        synonyms=_log("segment.bytes"),
    ),
    Key(
        "segment.index.bytes",
        10 * 2**20,
        at_least(4),
        live=_LIVE,
        doc="Roll when an index of the active segment has this size.",
        synonyms=_log("index.size.max.bytes"),
    ),
    Key(
        "segment.jitter.ms",
        0,
        at_least(0),
        kind=Kind.LONG,
        live=_LIVE,
        doc="Roll up to this much earlier than segment.ms, so that partitions do not all roll at once.",
        synonyms=(Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", _HOUR_MS)),
    ),
    Key(
        "segment.ms",
        7 * _DAY_MS,
        at_least(1),
        kind=Kind.LONG,
        live=_LIVE,
        doc="Roll when the active segment's first record is this much older than the newest.",
        synonyms=(Synonym("log.roll.ms"), Synonym("log.roll.hours", _HOUR_MS)),
    ),
    Key(
        "unclean.leader.election.enable",
        False,
        live=_LIVE,
        doc="Whether a replica that is not in sync may lead when no other is left; records get lost then.",
        synonyms=(Synonym("unclean.leader.election.enable"),),
    ),
)

_STORAGE: Final = ConfigTable(
    Key(
        "barnabas.page.cache.cold.bytes",
        64 * 2**20,
        at_least(0),
        kind=Kind.LONG,
        live=_LIVE,
        doc="How much of the page cache readers far behind may fill, all together; what they read beyond "
        "that is dropped again, unless it was cached before. 0 leaves everything to the kernel.",
    ),
    Key(
        "barnabas.page.cache.hot.bytes",
        64 * 2**20,
        at_least(0),
        kind=Kind.LONG,
        live=_LIVE,
        doc="A reader is far behind when it reads more than this before the end of a partition.",
    ),
    Key(
        "log.cleaner.backoff.ms",
        15 * _SECOND_MS,
        at_least(0),
        kind=Kind.LONG,
        live=_LIVE,
        doc="How long compaction sleeps when there is nothing to do.",
    ),
    Key(
        "log.cleaner.dedupe.buffer.size",
        128 * 2**20,
        at_least(2**20),
        kind=Kind.LONG,
        live=_LIVE,
        doc="Memory for the keys of one compaction, over all threads.",
    ),
    Key("log.cleaner.enable", True, doc="Whether there is compaction at all."),
    Key(
        "log.cleaner.io.buffer.load.factor",
        0.9,
        between(0, 1),
        live=_LIVE,
        doc="How full the memory for keys may get.",
    ),
    Key(
        "log.cleaner.io.buffer.size",
        512 * 1024,
        at_least(0),
        live=_LIVE,
        doc="Memory for reading and writing in compaction, over all threads.",
    ),
    Key(
        "log.cleaner.io.max.bytes.per.second",
        1.7976931348623157e308,
        at_least(0),
        live=_LIVE,
        doc="Compaction reads and writes no faster than this.",
    ),
    Key("log.cleaner.threads", 1, at_least(0), live=_LIVE, doc="Threads that compact."),
    Key("log.dir", "/tmp/barnabas-logs", doc="The data folder; log.dirs wins."),
    Key("log.dirs", None, kind=Kind.STRING, doc="Data folders, separated by commas."),
    Key(
        "log.flush.offset.checkpoint.interval.ms",
        _MINUTE_MS,
        at_least(0),
        doc="How often the recovery points are written down.",
    ),
    Key(
        "log.flush.start.offset.checkpoint.interval.ms",
        _MINUTE_MS,
        at_least(0),
        doc="How often the log start offsets are written down.",
    ),
    Key(
        "log.retention.check.interval.ms",
        5 * _MINUTE_MS,
        at_least(1),
        kind=Kind.LONG,
        doc="How often is looked for segments to delete.",
    ),
    Key(
        "num.recovery.threads.per.data.dir",
        2,
        at_least(1),
        live=_LIVE,
        doc="Threads per data folder that check logs after a crash, and flush them at shutdown.",
    ),
    Key(
        "producer.id.expiration.check.interval.ms",
        10 * _MINUTE_MS,
        at_least(1),
        doc="How often is looked for idle producers.",
    ),
    Key(
        "producer.id.expiration.ms",
        _DAY_MS,
        at_least(1),
        live=_LIVE,
        doc="An idempotent producer that was idle this long is forgotten.",
    ),
)


def _supplier(key: Key, synonym: Synonym, supplies_default: bool) -> Key:
    """The broker setting that supplies topic setting `key`; the last of several holds the default."""
    default = key.default
    if not supplies_default:
        default = None
    elif synonym.factor != 1:
        assert isinstance(default, int), f"{key.name} is a number"
        default //= synonym.factor
    return Key(
        synonym.name,
        default,
        key.check,
        kind=key.kind,
        live=key.live,
        doc=f"For topics without {key.name}. {key.doc}",
    )


BROKER_LOG: Final = _STORAGE + ConfigTable(
    *(_supplier(key, synonym, synonym is key.synonyms[-1]) for key in TOPIC for synonym in key.synonyms)
)

_TARGET_CODECS: Final = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


@dataclass(frozen=True, slots=True)
class LogConfig:
    """A topic's settings, typed; `LogConfig()` is all defaults.  One object serves all its partitions."""

    compact: bool = False
    delete: bool = True
    codec: Codec | None = None
    """What batches are recompressed to; None leaves them as they come."""
    codec_level: int | None = None
    delete_retention_ms: int = _DAY_MS
    file_delete_delay_ms: int = _MINUTE_MS
    flush_messages: int = _LONG_MAX
    flush_ms: int = _LONG_MAX
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = _LONG_MAX
    max_message_bytes: int = 2**20 + 12
    timestamp_after_max_ms: int = _HOUR_MS
    timestamp_before_max_ms: int = _LONG_MAX
    log_append_time: bool = False
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    offsets_kept: bool = False
    """Batches come with their offsets, from another cluster."""
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 7 * _DAY_MS
    segment_bytes: int = 2**30
    segment_index_bytes: int = 10 * 2**20
    segment_jitter_ms: int = 0
    segment_ms: int = 7 * _DAY_MS
    unclean_leader_election: bool = False

    @property
    def roll_ms(self) -> int:
        """How old a segment's first record may get: only what was rolled can be compacted in time."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms

    @classmethod
    def of(cls, settings: Settings) -> "LogConfig":
        """The settings of a `TOPIC` table."""
        whole = settings.integer
        policy = settings.items("cleanup.policy")
        kind = settings.string("compression.type")
        level = whole(f"compression.{kind}.level") if f"compression.{kind}.level" in TOPIC else None
        return cls(
            compact="compact" in policy,
            delete="delete" in policy,
            codec=_TARGET_CODECS[kind],
            codec_level=level,
            delete_retention_ms=whole("delete.retention.ms"),
            file_delete_delay_ms=whole("file.delete.delay.ms"),
            flush_messages=whole("flush.messages"),
            flush_ms=whole("flush.ms"),
            index_interval_bytes=whole("index.interval.bytes"),
            max_compaction_lag_ms=whole("max.compaction.lag.ms"),
            max_message_bytes=whole("max.message.bytes"),
            timestamp_after_max_ms=whole("message.timestamp.after.max.ms"),
            timestamp_before_max_ms=whole("message.timestamp.before.max.ms"),
            log_append_time=settings.string("message.timestamp.type") == "LogAppendTime",
            min_cleanable_dirty_ratio=settings.number("min.cleanable.dirty.ratio"),
            min_compaction_lag_ms=whole("min.compaction.lag.ms"),
            min_insync_replicas=whole("min.insync.replicas"),
            offsets_kept=settings.boolean("barnabas.offsets.kept"),
            preallocate=settings.boolean("preallocate"),
            retention_bytes=whole("retention.bytes"),
            retention_ms=whole("retention.ms"),
            segment_bytes=whole("segment.bytes"),
            segment_index_bytes=whole("segment.index.bytes"),
            segment_jitter_ms=whole("segment.jitter.ms"),
            segment_ms=whole("segment.ms"),
            unclean_leader_election=settings.boolean("unclean.leader.election.enable"),
        )
