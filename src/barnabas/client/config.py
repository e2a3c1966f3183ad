"""The settings of producer, consumer and admin: Kafka's names and defaults, checked at construction.

    parse(PRODUCER, {"bootstrap.servers": "localhost:9092", "linger.ms": 20})
    parse(PRODUCER, bootstrap_servers=["localhost:9092"], linger_ms=20)

Values may be text, numbers, booleans, lists, or, for settings of kind CLASS, objects and callables.
A wrong name is answered with the nearest right one.  Passwords never show in a repr.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.base.config import ConfigTable, Key, Kind, Settings, Value, at_least, between, one_of
from barnabas.base.errors import ConfigFault

__all__ = ["ADMIN", "CONSUMER", "PRODUCER", "ClientSettings", "parse", "parse_address", "settings_for"]

INT_MAX: Final = 2**31 - 1
_HIDDEN: Final = "[hidden]"


def _addresses(value: Value) -> str | None:
    """host:port, host:port …"""
    assert isinstance(value, tuple), value
    for address in value:
        try:
            parse_address(address)
        except ConfigFault as fault:
            return str(fault)
    return None


def _reset_rule(value: Value) -> str | None:
    """earliest, latest, none or by_duration:<ISO 8601 duration>"""
    if value in ("earliest", "latest", "none") or re.fullmatch(r"by_duration:P[0-9DTHMS.]+", str(value)):
        return None
    return "must be earliest, latest, none or by_duration:<ISO 8601 duration, as PT1H>"


_COMMON: Final = (
    Key(
        "bootstrap.servers",
        (),
        _addresses,
        doc="Brokers to ask first, as host:port; the rest of the cluster is learnt from any of them.",
    ),
    Key(
        "security.protocol",
        "PLAINTEXT",
        one_of("PLAINTEXT"),
        doc="How to talk to brokers; plain connections only, so far.",
    ),
    Key("client.id", "", doc="Names this client in the broker's logs, metrics and quotas."),
    Key(
        "bootstrap.timeout.ms",
        5_000,
        at_least(0),
        doc="How long to go on trying when no address answers at the start; each is tried at least once.",
    ),
    Key("request.timeout.ms", 30_000, at_least(1), doc="How long to wait for the answer to one request."),
    Key("retry.backoff.ms", 100, at_least(0), doc="Wait before the first repeat of a failed request."),
    Key("retry.backoff.max.ms", 1_000, at_least(0), doc="Longest wait between repeats."),
    Key("reconnect.backoff.ms", 50, at_least(0), doc="Wait before connecting again to a broker."),
    Key("reconnect.backoff.max.ms", 1_000, at_least(0), doc="Longest wait between tries to connect."),
    Key(
        "socket.connection.setup.timeout.ms",
        10_000,
        at_least(1),
        doc="How long a connection may take to come about, name look-up and ApiVersions each included.",
    ),
    Key(
        "connections.max.idle.ms",
        540_000,
        at_least(-1),
        doc="Close a connection unused for so long; -1: never.",
    ),
    Key(
        "metadata.max.age.ms",
        300_000,
        at_least(1),
        doc="Ask for metadata again after this time at the latest.",
    ),
    Key(
        "metadata.recovery.strategy",
        "rebootstrap",
        one_of("rebootstrap", "none"),
        doc="What to do when no known broker can be reached: ask the bootstrap servers again, or only wait.",
    ),
)

_WITH_DEADLINE: Final = (
    Key(
        "default.api.timeout.ms",
        60_000,
        at_least(0),
        doc="How long a call may take with all its repeats, if the call itself does not say.",
    ),
)

_PRODUCER_ONLY: Final = (
    Key(
        "key.serializer",
        None,
        kind=Kind.CLASS,
        doc="Turns keys into bytes; without one they are bytes or str.",
    ),
    Key(
        "value.serializer",
        None,
        kind=Kind.CLASS,
        doc="Turns values into bytes; without one they are bytes or str.",
    ),
    Key(
        "acks",
        "all",
        one_of("all", "-1", "0", "1"),
        doc="Who must have a record before it counts as sent: all in sync, the leader (1), nobody (0).",
    ),
    Key("batch.size", 16_384, at_least(0), doc="Bytes of a partition's batch before it is sent at once."),
    Key("linger.ms", 5, at_least(0), doc="How long a batch may wait for more records."),
    Key("buffer.memory", 33_554_432, at_least(0), kind=Kind.LONG, doc="Bytes of unsent records at most."),
    Key(
        "compression.type",
        "none",
        one_of("none", "gzip", "snappy", "lz4", "zstd"),
        doc="Codec of the batches.",
    ),
    Key("compression.gzip.level", -1, between(-1, 9), doc="-1: the library's default."),
    Key("compression.lz4.level", 9, between(1, 17), doc="Effort of lz4."),
    Key("compression.zstd.level", 3, between(-131_072, 22), doc="Effort of zstd."),
    Key(
        "retries",
        INT_MAX,
        between(0, INT_MAX),
        doc="Repeats of a failed batch; the delivery timeout ends them.",
    ),
    Key(
        "max.in.flight.requests.per.connection",
        5,
        at_least(1),
        doc="Unanswered requests per broker; above 5 idempotence is not possible.",
    ),
    Key("delivery.timeout.ms", 120_000, at_least(0), doc="From send to acknowledgement or failure, at most."),
    Key("max.block.ms", 60_000, at_least(0), doc="How long send waits for buffer space and for metadata."),
    Key("max.request.size", 1_048_576, at_least(0), doc="Bytes of a request, and so of a record, at most."),
    Key(
        "partitioner.class",
        None,
        kind=Kind.CLASS,
        doc="Chooses the partition; without one: hash of the key, or sticky for records without a key.",
    ),
    Key("partitioner.ignore.keys", False, doc="Spread records with a key as if they had none."),
    Key("enable.idempotence", True, doc="No duplicates and no change of order under repeats."),
    Key("transactional.id", None, kind=Kind.STRING, doc="Switches transactions on; unique per producer."),
    Key(
        "transaction.timeout.ms", 60_000, at_least(1), doc="The coordinator aborts a transaction after this."
    ),
    Key("interceptor.classes", (), doc="Objects that see every record before sending and its outcome after."),
)

_CONSUMER_ONLY: Final = (
    Key("group.id", None, kind=Kind.STRING, doc="The group that shares the partitions and the offsets."),
    Key(
        "group.instance.id",
        None,
        kind=Kind.STRING,
        doc="Makes the member static: a restart does not rebalance.",
    ),
    Key(
        "group.protocol",
        "classic",
        one_of("classic"),
        doc="How the group is coordinated; the newer protocol (KIP-848) is not spoken yet.",
    ),
    Key(
        "session.timeout.ms", 45_000, at_least(1), doc="Without a heartbeat for so long a member is removed."
    ),
    Key("heartbeat.interval.ms", 3_000, at_least(1), doc="Time between heartbeats."),
    Key("max.poll.interval.ms", 300_000, at_least(1), doc="Longest time between two polls before leaving."),
    Key("max.poll.records", 500, at_least(1), doc="Records that one poll hands out at most."),
    Key("enable.auto.commit", True, doc="Commit by itself what poll has handed out."),
    Key("auto.commit.interval.ms", 5_000, at_least(0), doc="Time between automatic commits."),
    Key(
        "auto.offset.reset",
        "latest",
        _reset_rule,
        doc="Where to start without a valid committed offset; none is an error.",
    ),
    Key(
        "isolation.level",
        "read_uncommitted",
        one_of("read_uncommitted", "read_committed"),
        doc="Whether records of open and aborted transactions are handed out.",
    ),
    Key("fetch.min.bytes", 1, at_least(0), doc="The broker waits until it has so many bytes …"),
    Key("fetch.max.wait.ms", 500, at_least(0), doc="… or this time has passed."),
    Key("fetch.max.bytes", 52_428_800, at_least(0), doc="Bytes of one fetch answer at most."),
    Key("max.partition.fetch.bytes", 1_048_576, at_least(0), doc="Bytes per partition in one fetch answer."),
    Key(
        "barnabas.prefetch.bytes",
        33_554_432,
        at_least(1),
        kind=Kind.LONG,
        doc="Bytes fetched ahead of what poll has handed out; no fetch starts above it.",
    ),
    Key("check.crcs", True, doc="Check the checksum of every batch fetched."),
    Key("client.rack", "", doc="Rack of this consumer: it may read from a replica nearby."),
    Key(
        "partition.assignment.strategy",
        ("range", "cooperative-sticky"),
        doc="Assignors, the best first: range, roundrobin, sticky, cooperative-sticky, or objects.",
    ),
    Key("allow.auto.create.topics", True, doc="Subscribing may create a topic, if the broker allows."),
    Key("exclude.internal.topics", True, doc="A pattern does not match the cluster's own topics."),
    Key("key.deserializer", None, kind=Kind.CLASS, doc="Turns the bytes of keys into objects."),
    Key("value.deserializer", None, kind=Kind.CLASS, doc="Turns the bytes of values into objects."),
    Key("interceptor.classes", (), doc="Objects that see the records of every poll and every commit."),
)

PRODUCER: Final = ConfigTable(*_COMMON, *_PRODUCER_ONLY)
CONSUMER: Final = ConfigTable(*_COMMON, *_WITH_DEADLINE, *_CONSUMER_ONLY)
ADMIN: Final = ConfigTable(*_COMMON, *_WITH_DEADLINE)


@dataclass(frozen=True, slots=True, repr=False)
class ClientSettings(Settings):
    """Settings of a client: typed values, and the objects given in place of class names."""

    objects: Mapping[str, object] = field(default_factory=dict)

    def instance(self, name: str) -> object:
        """What was given for a CLASS or LIST setting: the object itself, or its name as text, or None."""
        return self.objects.get(name, self.values[name])

    def instances(self, name: str) -> tuple[object, ...]:
        """What was given for a LIST setting: objects, or names as text, in order."""
        given = self.instance(name)
        return given if isinstance(given, tuple) else (given,)

    def __repr__(self) -> str:
        """Only what was given, without secrets."""
        shown = ", ".join(f"{name!r}: {self._shown(name)}" for name in sorted(self.given))
        return f"ClientSettings({{{shown}}})"

    def _shown(self, name: str) -> str:
        return _HIDDEN if self.table[name].sensitive else repr(self.instance(name))


def parse(table: ConfigTable, given: Mapping[str, object] | None = None, **more: object) -> ClientSettings:
    """All settings of a table.  Names may have underscores for dots; None means not given.

    Raises ConfigFault that names every wrong setting, and when bootstrap.servers is missing.
    """
    texts: dict[str, str | None] = {}
    objects: dict[str, object] = {}
    faults: list[str] = []
    for raw, value in [*(given or {}).items(), *more.items()]:
        name = raw if raw in table else raw.replace("_", ".")
        if value is None:
            faults += _faults_of(table, name, None)
        elif name in table and _is_object(table[name], value):
            objects[name] = tuple(value) if isinstance(value, list | tuple) else value
        else:
            text = _text(value)
            faults += _faults_of(table, name, text)
            texts[name] = text
    if not faults and not texts.get("bootstrap.servers"):
        faults.append("bootstrap.servers: at least one broker is needed, as host:port")
    if faults:
        raise ConfigFault("\n".join(faults))
    settings = table.parse(texts)
    return ClientSettings(table, settings.values, settings.given | frozenset(objects), objects)


def settings_for(table: ConfigTable, settings: Mapping[str, str]) -> dict[str, object]:
    """Those of a cluster's settings that one kind of client has."""
    return {name: value for name, value in settings.items() if name in table}


def _faults_of(table: ConfigTable, name: str, text: str | None) -> list[str]:
    if text is None:
        return [] if name in table else table.faults({name: ""})
    return table.faults({name: text})


def _is_object(key: Key, value: object) -> bool:
    if key.kind is Kind.CLASS:
        return not isinstance(value, str)
    if key.kind is Kind.LIST:
        items = value if isinstance(value, list | tuple) else (value,)
        return any(not isinstance(item, str) for item in items)
    return False


def _text(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case list() | tuple() | set() | frozenset():
            return ",".join(_text(item) for item in value)
        case _:
            return str(value)


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `host:port`, `[v6]:port` or `LISTENER://host:port`.  Raises ConfigFault."""
    rest = text.rpartition("//")[2].strip()
    host, colon, port = rest.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ConfigFault(f"{text!r}: an IPv6 address goes in brackets, as [::1]:9092")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ConfigFault(f"{text!r} is not of the form host:port")
    return host, int(port)
