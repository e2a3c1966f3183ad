"""The options of the source: Spark's names, defaults and refusals, plus a few of our own.

    kafka.<setting>             of the client; kafka.bootstrap.servers is required
    assign | subscribe | subscribePattern            exactly one of them
    startingTimestamp > startingOffsetsByTimestamp > startingOffsets     the first one given counts
    endingTimestamp > endingOffsetsByTimestamp > endingOffsets           likewise; batch reads only

`OPTIONS` is the table of them all; the page in docs/spark.md shows the same rows.  Everything that can be
checked without the cluster is checked by `parse_source`, which raises OptionError for the first wrong one.
Names come in any case (Spark hands them over in lower case) and are spelled right in every text.
"""

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeVar

from barnabas.base.config import ConfigTable
from barnabas.base.errors import ConfigFault
from barnabas.base.types import TopicPartition
from barnabas.client.config import CONSUMER, PRODUCER, parse
from barnabas.metadata.names import topic_name_fault
from barnabas.spark.durations import parse_duration_ms
from barnabas.spark.errors import OptionError
from barnabas.spark.option_table import OPTIONS
from barnabas.spark.option_values import at_least, boolean, byte_count, one_of, or_else
from barnabas.spark.planning import PACK_RECORDS
from barnabas.spark.topic_patterns import TopicPattern

__all__ = [
    "OPTIONS",
    "Assign",
    "AtOffsets",
    "AtTime",
    "AtTimes",
    "Bound",
    "Edge",
    "Selection",
    "SourceOptions",
    "Subscribe",
    "SubscribePattern",
    "client_settings",
    "parse_source",
    "plain",
    "refuse_unknown",
]

# Names that Spark itself hands to a source: of tables, of the other side of a query, of the catalog.
SPARK_OWN: Final = frozenset(
    {
        "checkpointlocation",
        "collation",
        "comment",
        "external",
        "is_managed_location",
        "location",
        "owner",
        "path",
        "provider",
        "serialization.format",
    }
)

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS: Final = "headers"
TEXTS: Final = ("key", "value")
STRATEGIES: Final = ("assign", "subscribe", "subscribePattern")
EARLIEST: Final = -2
LATEST: Final = -1

_REFUSED: Final = {
    "auto.offset.reset": "the place to start is Spark's to keep; use startingOffsets",
    "key.deserializer": "keys come as bytes; use DataFrame operations on the column key",
    "value.deserializer": "values come as bytes; use DataFrame operations on the column value",
    "key.serializer": "keys are read here, not written",
    "value.serializer": "values are read here, not written",
    "enable.auto.commit": "the checkpoint keeps the place; progress is committed by the source itself",
    "interceptor.classes": "an interceptor could change what is read",
}

# Settings of Java's clients that change nothing here: scripts written for them keep working.
_NO_EFFECT: Final = frozenset(
    {
        "auto.include.jmx.reporter",
        "client.dns.lookup",
        "default.list.key.serde.inner",
        "enable.metrics.push",
        "group.protocol",
        "group.remote.assignor",
        "max.poll.interval.ms",
        "metadata.max.idle.ms",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "receive.buffer.bytes",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
    }
)
_SECURITY: Final = ("sasl.", "ssl.")

Parsed = TypeVar("Parsed")


# --- what the options mean


@dataclass(frozen=True, slots=True)
class Assign:
    """Exactly these partitions."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """All partitions of these topics."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """All partitions of the topics that match, also of those made later."""

    pattern: TopicPattern


Selection = Assign | Subscribe | SubscribePattern


class Edge(Enum):
    """An end of the log."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset for each partition; -2 and -1 are the ends of the log."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record at or after a time, in every partition."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class AtTimes:
    """A time for each partition; ends of the log as for offsets."""

    timestamps: Mapping[TopicPartition, int]


Bound = Edge | AtOffsets | AtTime | AtTimes


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a reader was told, checked and typed.  Picklable; prints without the client's settings."""

    client: Mapping[str, str] = field(repr=False)
    """The kafka.* options without their prefix: settings of the client."""
    columns: tuple[str, ...]
    """Names of records.columns, in the order of the schema."""
    text_columns: frozenset[str] = frozenset()
    """Which of key and value come as strings."""
    selection: Selection = field(default_factory=lambda: Subscribe(()))
    starting: Bound = Edge.EARLIEST
    starting_after_last: str = "error"
    """What no record at or after the starting time means: "error" or "latest"."""
    ending: Bound = Edge.LATEST
    isolation_level: str = "read_uncommitted"
    fail_on_data_loss: bool = True
    max_offsets_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 900_000
    trigger: str | None = None
    """What the query is said to run with, in lower case; None: not said."""
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    min_records_per_task: int = PACK_RECORDS
    poll_timeout_ms: int = 120_000
    """How long an executor waits for data before it fails."""
    group: str | None = None
    """The group that progress is committed to; None: not named by an option."""
    commit_progress: bool = True
    lookup_retries: int = 3
    lookup_retry_interval_ms: int = 10
    metadata_ttl_ms: int = -1


def parse_source(options: Mapping[str, str], *, stream: bool | None = None) -> SourceOptions:
    """The options of a batch reader, a stream reader, or (None) what holds for both.  Raises OptionError."""
    options = plain(options)
    if not options:
        # PySpark 4.3 gives the options of a catalog table to `schema` but not to the reader.
        raise OptionError(
            "kafka.bootstrap.servers",
            "no option arrived; Spark keeps those of CREATE TABLE to itself",
            "use CREATE TEMPORARY VIEW … USING barnabas OPTIONS (…)",
        )
    given = _Given(options)
    # One mapping may serve both sides of a script, so those of the writer pass (it imports this module).
    from barnabas.spark.sink_options import SINK_OPTIONS

    refuse_unknown(options, [*(each.name for each in OPTIONS), *SINK_OPTIONS])
    is_stream = bool(stream)
    client = client_settings(_without_producers(options), _REFUSED)
    if stream is not None:
        _check_use(given, is_stream)
    low = given.get("minOffsetsPerTrigger", at_least(1))
    high = given.get("maxOffsetsPerTrigger", at_least(1))
    if low is not None and high is not None and low > high:
        raise OptionError("minOffsetsPerTrigger", f"{low} is higher than maxOffsetsPerTrigger, {high}")
    starting = _bound(given, "starting", Edge.LATEST if is_stream else Edge.EARLIEST)
    ending = _bound(given, "ending", Edge.LATEST)
    if stream is False:
        _check_batch_bounds(starting, ending)
    return SourceOptions(
        client=client,
        columns=_columns(given),
        text_columns=frozenset(
            name for name in TEXTS if given.get(f"{name}.format", one_of("binary", "string")) == "string"
        ),
        selection=_selection(given),
        starting=starting,
        starting_after_last=given.get("startingOffsetsByTimestampStrategy", one_of("error", "latest"))
        or "error",
        ending=ending,
        isolation_level=client.get("isolation.level", "read_uncommitted"),
        fail_on_data_loss=given.get("failOnDataLoss", boolean) is not False,
        max_offsets_per_trigger=high,
        max_bytes_per_trigger=given.get("maxBytesPerTrigger", byte_count),
        min_offsets_per_trigger=low,
        max_trigger_delay_ms=or_else(given.get("maxTriggerDelay", parse_duration_ms), 900_000),
        trigger=given.get("trigger", one_of("processingtime", "availablenow", "once")),
        min_partitions=given.get("minPartitions", at_least(1)),
        max_records_per_partition=given.get("maxRecordsPerPartition", at_least(1)),
        min_records_per_task=or_else(given.get("minRecordsPerTask", at_least(0)), PACK_RECORDS),
        poll_timeout_ms=or_else(given.get("kafkaConsumer.pollTimeoutMs", at_least(1)), 120_000),
        group=_group(given, client),
        commit_progress=given.get("commitProgress", boolean) is not False,
        lookup_retries=or_else(given.get("fetchOffset.numRetries", at_least(0)), 3),
        lookup_retry_interval_ms=or_else(given.get("fetchOffset.retryIntervalMs", at_least(0)), 10),
        metadata_ttl_ms=or_else(given.get("partition.metadata.cache.ttl.ms", at_least(-1)), -1),
    )


def plain(options: Mapping[str, str]) -> dict[str, str]:
    """Options without the prefix that the options of a catalog table come with."""
    stripped = {name[7:]: value for name, value in options.items() if name.lower().startswith("option.")}
    return {**stripped, **{name: value for name, value in options.items() if name[7:] not in stripped}}


class _Given:
    """Options by their right names, parsed with the name in the text of what is wrong."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._values

    def get(self, name: str, parser: Callable[[str], Parsed]) -> Parsed | None:
        text = self._values.get(name.lower())
        if text is None:
            return None
        try:
            return parser(text.strip())
        except ValueError as error:
            raise OptionError(name, str(error)) from error


def refuse_unknown(options: Mapping[str, str], known: list[str]) -> None:
    """Raises OptionError for a name that is neither known, nor kafka.*, nor Spark's own."""
    spelled = {name.lower(): name for name in known}
    for name in options:
        lower = name.lower()
        if lower in spelled or lower in SPARK_OWN or lower.startswith(("kafka.", "spark.")):
            continue
        near = difflib.get_close_matches(lower, spelled, n=1, cutoff=0.6)
        hint = f"did you mean {spelled[near[0]]}?" if near else "docs/spark.md lists all options"
        raise OptionError(name, "there is no such option", hint)


def client_settings(
    options: Mapping[str, str], refused: Mapping[str, str], *, table: ConfigTable = CONSUMER
) -> dict[str, str]:
    """The kafka.* options without their prefix, checked by the client's own table.  Raises OptionError.

    `refused` has the reason for each setting that is not the user's to choose.
    """
    given: dict[str, str] = {}
    for name, value in options.items():
        lower = name.lower()
        if not lower.startswith("kafka."):
            continue
        setting = lower.removeprefix("kafka.")
        if setting in refused:
            raise OptionError(f"kafka.{setting}", "this setting is not supported", refused[setting])
        if setting.startswith(_SECURITY) and setting not in table:
            raise OptionError(f"kafka.{setting}", "connections are plain so far: no login, no encryption")
        if setting not in _NO_EFFECT:
            given[setting] = value.strip()  # as Java's clients do: they are compared as texts later
    if not given.get("bootstrap.servers"):
        raise OptionError(
            "kafka.bootstrap.servers", "it must be given", "say where the brokers are, as host:port"
        )
    try:
        parse(table, given)
    except ConfigFault as fault:
        first = str(fault).splitlines()[0]
        setting, _, why = first.partition(":")
        raise OptionError(f"kafka.{setting}", why.strip() or first) from fault
    return given


def _without_producers(options: Mapping[str, str]) -> dict[str, str]:
    """Options without settings that only a producer has; a consumer of Java's passes over them too."""
    return {
        name: value
        for name, value in options.items()
        if (setting := name.lower().removeprefix("kafka.")) in CONSUMER
        or setting in _REFUSED
        or setting not in PRODUCER
    }


def _check_use(given: _Given, stream: bool) -> None:
    for option in OPTIONS:
        if stream and option.use == "batch" and option.name in given:
            raise OptionError(option.name, "a stream has no end", "use a batch read, or leave it out")


def _selection(given: _Given) -> Selection:
    chosen = [name for name in STRATEGIES if name in given]
    if len(chosen) != 1:
        what = "one of them must be given" if not chosen else "only one of them can be given"
        raise OptionError(", ".join(chosen or STRATEGIES), what)
    parsers: dict[str, Callable[[str], Selection]] = {
        "assign": _assign,
        "subscribe": _subscribe,
        "subscribePattern": lambda text: SubscribePattern(TopicPattern(text)),
    }
    found = given.get(chosen[0], parsers[chosen[0]])
    assert found is not None, "it is in the options"
    return found


def _assign(text: str) -> Assign:
    example = 'expected e.g. {"topicA":[0,1],"topicB":[0,1]}'
    found = _json_object(text, example)
    partitions: list[TopicPartition] = []
    for topic, numbers in found.items():
        if not isinstance(numbers, list) or not all(_is_whole(each) and each >= 0 for each in numbers):
            raise ValueError(f"{example}, got {text}")
        partitions += [TopicPartition(topic, number) for number in numbers]
    if not partitions:
        raise ValueError(f"no partitions are named, {example}")
    _check_names(found)
    return Assign(tuple(sorted(set(partitions))))


def _subscribe(text: str) -> Subscribe:
    topics = tuple(dict.fromkeys(name for each in text.split(",") if (name := each.strip())))
    if not topics:
        raise ValueError("no topics are named")
    _check_names(topics)
    return Subscribe(topics)


def _check_names(topics: Iterable[str]) -> None:
    """Raises ValueError for a name that no topic can have."""
    for topic in topics:
        if (fault := topic_name_fault(topic)) is not None:
            raise ValueError(fault)


def _bound(given: _Given, side: str, default: Edge) -> Bound:
    """The strongest of the three options of one side."""
    time = given.get(f"{side}Timestamp", at_least(0))
    if time is not None:
        return AtTime(time)
    times = given.get(f"{side}OffsetsByTimestamp", _by_partition)
    if times is not None:
        return AtTimes(times)
    return given.get(f"{side}Offsets", _edge_or_offsets) or default


def _edge_or_offsets(text: str) -> Bound:
    if text.lower() in ("earliest", "latest"):
        return Edge(text.lower())
    return AtOffsets(_by_partition(text))


def _by_partition(text: str) -> dict[TopicPartition, int]:
    example = 'expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
    found: dict[TopicPartition, int] = {}
    for topic, numbers in _json_object(text, example).items():
        if not isinstance(numbers, dict):
            raise ValueError(f"{example}, got {text}")
        for partition, value in numbers.items():
            if not partition.isascii() or not partition.isdigit() or not _is_whole(value) or value < EARLIEST:
                raise ValueError(f"{example}, got {text}")
            found[TopicPartition(topic, int(partition))] = value
    if not found:
        raise ValueError(f"no partitions are named, {example}")
    return dict(sorted(found.items()))


def _json_object(text: str, example: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{example}, got {text}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{example}, got {text}")
    return found


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_batch_bounds(starting: Bound, ending: Bound) -> None:
    if starting is Edge.LATEST:
        raise OptionError("startingOffsets", "a batch read cannot start at latest: it would read nothing")
    if ending is Edge.EARLIEST:
        raise OptionError("endingOffsets", "a batch read cannot end at earliest: it would read nothing")
    for name, bound, edge, what in (
        ("startingOffsets", starting, LATEST, "start at latest (-1)"),
        ("endingOffsets", ending, EARLIEST, "end at earliest (-2)"),
    ):
        if isinstance(bound, AtOffsets) and edge in bound.offsets.values():
            first = next(str(each) for each, offset in bound.offsets.items() if offset == edge)
            raise OptionError(name, f"a batch read of {first} cannot {what}")
    for start, end, low_name, high_name in _both_given(starting, ending):
        if set(start) != set(end):
            odd = min(set(start) ^ set(end))
            raise OptionError(high_name, f"it must name the same partitions as {low_name}, {odd} among them")
        for each, low in start.items():
            if low > end[each] and low >= 0 and end[each] >= 0:
                raise OptionError(high_name, f"{end[each]} of {each} is below {low_name}, {low}")


def _both_given(
    starting: Bound, ending: Bound
) -> Iterator[tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int], str, str]]:
    if isinstance(starting, AtOffsets) and isinstance(ending, AtOffsets):
        yield starting.offsets, ending.offsets, "startingOffsets", "endingOffsets"
    if isinstance(starting, AtTimes) and isinstance(ending, AtTimes):
        yield (
            starting.timestamps,
            ending.timestamps,
            "startingOffsetsByTimestamp",
            "endingOffsetsByTimestamp",
        )


def _columns(given: _Given) -> tuple[str, ...]:
    headers = given.get("includeHeaders", boolean) is True
    chosen = given.get("columns", _column_names)
    if chosen is None:
        return (*COLUMNS, HEADERS) if headers else COLUMNS
    return (*chosen, HEADERS) if headers and HEADERS not in chosen else chosen


def _column_names(text: str) -> tuple[str, ...]:
    spelled = {name.lower(): name for name in (*COLUMNS, HEADERS)}
    found: list[str] = []
    for word in text.split(","):
        name = spelled.get(word.strip().lower())
        if name is None:
            raise ValueError(f"no column is called {word.strip()!r}; there are {', '.join(spelled.values())}")
        if name in found:
            raise ValueError(f"{name} is named twice")
        found.append(name)
    return tuple(found)


def _group(given: _Given, client: Mapping[str, str]) -> str | None:
    name = given.get("queryName", str)
    if client.get("group.id"):
        return client["group.id"]
    return f"spark:{name}" if name else None
