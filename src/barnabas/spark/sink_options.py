"""The options and columns of the sink: Spark's names, defaults and refusals, plus a few of our own.

    kafka.<setting>        of the producer; kafka.bootstrap.servers is required
    topic                  where rows go; without it the column `topic` says
    delivery               exactly-once | at-least-once; without it exactly-once where the brokers can
    sinkId                 names the markers and transactional ids; without it the id of the query
    markerTopic            the topic that the markers are offsets of
    checkpointRollback     fail | rewrite: a batch that is older than what was written already
    includeTimestamp       whether the column `timestamp` is the time of the records

Everything that can be checked without the cluster is checked here, before a job starts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.client.config import CONSUMER, PRODUCER, parse
from barnabas.client.producer_batch import Compression
from barnabas.client.producer_settings import sender_settings_of, uses_idempotence
from barnabas.metadata.names import topic_name_fault
from barnabas.spark.errors import OptionError, SparkPartError
from barnabas.spark.option_table import OPTIONS as SOURCE_OPTIONS
from barnabas.spark.option_values import boolean, one_of
from barnabas.spark.options import client_settings, refuse_unknown

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = [
    "AT_LEAST_ONCE",
    "EXACTLY_ONCE",
    "MARKER_TOPIC",
    "SINK_OPTIONS",
    "ColumnError",
    "SinkOptions",
    "check_columns",
    "parse_sink",
]

EXACTLY_ONCE: Final = "exactly-once"
AT_LEAST_ONCE: Final = "at-least-once"
MARKER_TOPIC: Final = "__spark_sink_markers"
BATCH_BYTES: Final = 512_000
TRANSACTION_TIMEOUT_MS: Final = 600_000  # brokers allow 15 minutes unless told otherwise
BOOTSTRAP_TIMEOUT_MS: Final = 60_000  # a task waits for a broker that restarts

SINK_OPTIONS: Final = (
    "topic",
    "delivery",
    "sinkId",
    "markerTopic",
    "checkpointRollback",
    "includeTimestamp",
    "includeHeaders",
)
_ASYNC: Final = "asyncProgressTrackingEnabled"
# What Spark hands to a sink along with its own; the source's are there when both got the same options.
_NOT_OURS: Final = (
    _ASYNC,
    "asyncProgressTrackingCheckpointIntervalMs",
    "_asyncProgressTrackingOverrideSinkSupportCheck",
    "outputMode",
    *(option.name for option in SOURCE_OPTIONS),
)
_REFUSED: Final = {
    "key.serializer": "keys are written as the bytes of the column key",
    "value.serializer": "values are written as the bytes of the column value",
    "transactional.id": "every task has its own; name the sink by the option sinkId",
    "interceptor.classes": "rows are written as columns, which an interceptor cannot see",
}
_HEADERS: Final = "array<struct<key:string,value:binary>>"
# Column to the types it may have, and how Spark's own connector names them.
_TYPES: Final = {
    "topic": (("string",), "a string"),
    "key": (("string", "binary"), "a string or binary"),
    "value": (("string", "binary"), "a string or binary"),
    "headers": ((_HEADERS,), _HEADERS),
    "partition": (("int",), "an int"),
    "timestamp": (("timestamp", "timestamp_ntz"), "a timestamp"),
}
_DEFAULT_PARTITIONERS: Final = ("default", "sticky", "murmur2_random", "defaultpartitioner")


Result = TypeVar("Result")


class ColumnError(SparkPartError):
    """A DataFrame that cannot be written: a column is missing, of a wrong type, or holds what cannot be."""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """What a writer was told, checked and typed.  Picklable; prints without the client's settings."""

    client: Mapping[str, str] = field(repr=False)
    """The kafka.* options without their prefix: settings of the producer."""
    topic: str | None = None
    delivery: str | None = None
    """None: whatever the brokers can."""
    sink_id: str | None = None
    checkpoint: str | None = None
    """Where the query keeps its place, if the option checkpointLocation says so."""
    marker_topic: str = MARKER_TOPIC
    rewrites_after_rollback: bool = False
    takes_timestamps: bool = False
    ignores_keys: bool = False
    batch_bytes: int = BATCH_BYTES
    compression: Compression = field(default_factory=Compression)

    @property
    def transaction_timeout_ms(self) -> int:
        return int(self.client["transaction.timeout.ms"])


def parse_sink(options: Mapping[str, str]) -> SinkOptions:
    """The options of a writer.  Raises OptionError for the first that is wrong."""
    refuse_unknown(options, [*SINK_OPTIONS, *_NOT_OURS])
    given = {name.lower(): value.strip() for name, value in options.items()}
    client = _client(options)
    delivery = _delivery(given, client)
    marker_topic = given.get("markertopic", MARKER_TOPIC)
    for name, topic in (("topic", given.get("topic")), ("markerTopic", marker_topic)):
        if topic is not None and (fault := topic_name_fault(topic)) is not None:
            raise OptionError(name, fault)
    sink_id = given.get("sinkid")
    if sink_id == "":
        raise OptionError("sinkId", "it must not be empty")
    settings = parse(PRODUCER, client)
    return SinkOptions(
        client=client,
        topic=given.get("topic"),
        delivery=delivery,
        sink_id=sink_id,
        checkpoint=given.get("checkpointlocation"),
        marker_topic=marker_topic,
        rewrites_after_rollback=_parsed(given, "checkpointRollback", one_of("fail", "rewrite")) == "rewrite",
        takes_timestamps=_parsed(given, "includeTimestamp", boolean) is True,
        ignores_keys=settings.boolean("partitioner.ignore.keys"),
        batch_bytes=max(settings.integer("batch.size"), 1) if "batch.size" in client else BATCH_BYTES,
        compression=sender_settings_of(settings).compression,
    )


def _client(options: Mapping[str, str]) -> dict[str, str]:
    """The producer's settings; what only a consumer knows is left out, as Java's producer does."""
    wanted = {
        name: value
        for name, value in options.items()
        if (setting := name.lower().removeprefix("kafka.")) in PRODUCER or setting not in CONSUMER
    }
    client = client_settings(wanted, _REFUSED, table=PRODUCER)
    client.setdefault("transaction.timeout.ms", str(TRANSACTION_TIMEOUT_MS))
    client.setdefault("bootstrap.timeout.ms", str(BOOTSTRAP_TIMEOUT_MS))
    chosen = client.pop("partitioner.class", "default").rpartition(".")[2].lower().replace("-", "_")
    if chosen not in _DEFAULT_PARTITIONERS:
        raise OptionError(
            "kafka.partitioner.class",
            "rows go by the hash of their key, or in turn without one",
            "compute the column partition for another rule",
        )
    return client


def _delivery(given: Mapping[str, str], client: Mapping[str, str]) -> str | None:
    """The delivery asked for; None leaves it to what the brokers can.

    Settings that no exactly-once producer can have (acks=1) ask for at least once: scripts have them.
    """
    delivery = _parsed(given, "delivery", one_of(EXACTLY_ONCE, AT_LEAST_ONCE))
    if delivery is None and not uses_idempotence(parse(PRODUCER, client)):
        delivery = AT_LEAST_ONCE
    if delivery == AT_LEAST_ONCE:
        return delivery
    if _parsed(given, _ASYNC, boolean):
        raise OptionError(
            _ASYNC,
            "after a crash batches are cut anew, so that rows could be written twice",
            f"leave it out, or set option delivery={AT_LEAST_ONCE}",
        )
    if not uses_idempotence(parse(PRODUCER, client)):
        raise OptionError(
            "kafka.enable.idempotence",
            "delivery exactly-once needs it, and with it acks=all, retries and at most 5 requests in flight",
            f"leave these settings out, or set option delivery={AT_LEAST_ONCE}",
        )
    return delivery


def _parsed(given: Mapping[str, str], name: str, parser: Callable[[str], Result]) -> Result | None:
    text = given.get(name.lower())
    if text is None:
        return None
    try:
        return parser(text)
    except ValueError as error:
        raise OptionError(name, str(error)) from error


def check_columns(schema: "StructType", options: SinkOptions) -> tuple[str, ...]:
    """The columns that are written; others of the DataFrame are left alone.  Raises ColumnError."""
    wanted = ["topic", "key", "value", "headers", "partition"]
    if options.takes_timestamps:
        wanted.append("timestamp")
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    if "value" not in types:
        raise ColumnError(f"the required column value is missing; there are {', '.join(types) or 'none'}")
    if options.topic is None and "topic" not in types:
        raise ColumnError("there is no column topic; add one, or name the topic by the option topic")
    if options.takes_timestamps and "timestamp" not in types:
        raise ColumnError("there is no column timestamp, which the option includeTimestamp asks for")
    for name in wanted:
        allowed, text = _TYPES[name]
        if name in types and types[name] not in allowed:
            raise ColumnError(f"column {name} must be {text}, and is {types[name]}")
    if options.topic is not None:
        wanted.remove("topic")
    return tuple(name for name in wanted if name in types)
