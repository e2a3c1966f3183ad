"""The broker's settings, with Kafka's names and defaults, and what a running one may change.

BROKER holds its own rows plus those of the log and the coordinators.  IGNORED are names that a
server.properties made for Apache Kafka may hold and that mean nothing here; they are accepted, with a
notice, so that people can bring their files.
"""

import re
from collections.abc import Mapping

from barnabas.base.config import ConfigTable, Key, Kind, Settings, Value, at_least, listed, not_blank
from barnabas.base.errors import ConfigFault
from barnabas.coordinator.config import GROUPS
from barnabas.coordinator.txn_config import TRANSACTIONS
from barnabas.log.config import BROKER_LOG
from barnabas.metadata.image import Endpoint

__all__ = [
    "BROKER",
    "IGNORED",
    "advertised_endpoints",
    "listener_endpoints",
    "parse_broker_settings",
    "parse_endpoint",
]


def _host_counts(value: Value) -> str | None:
    """list of host:count"""
    assert isinstance(value, tuple), value
    wrong = [item for item in value if not re.fullmatch(r".+:\d+", item)]
    return f"must be of the form host:count, unlike {wrong[0]!r}" if wrong else None


_OWN = ConfigTable(
    Key("node.id", 1, at_least(0), doc="Number of this broker; each broker of a cluster has its own."),
    Key("broker.id", None, kind=Kind.INT, doc="Older name of node.id."),
    Key(
        "broker.rack",
        None,
        not_blank,
        kind=Kind.STRING,
        doc="Where this broker stands; replicas are spread over racks.",
    ),
    Key(
        "listeners",
        ("PLAINTEXT://localhost:9092",),
        doc="Addresses to listen on, NAME://host:port; no host is every interface, port 0 a free one.",
    ),
    Key(
        "advertised.listeners",
        (),
        doc="Addresses that clients are told, by listener name; by default those of `listeners`.",
    ),
    Key(
        "control.plane.listener.name",
        None,
        not_blank,
        kind=Kind.STRING,
        doc="Listener for controller requests alone, so that they never queue behind data.",
    ),
    Key("num.partitions", 1, at_least(1), doc="Partitions of a topic that is created without a count."),
    Key(
        "default.replication.factor",
        1,
        at_least(1),
        kind=Kind.SHORT,
        doc="Replicas of a topic that is created without a factor.",
    ),
    Key("auto.create.topics.enable", True, doc="Whether asking for a topic that does not exist creates it."),
    Key("delete.topic.enable", True, doc="Whether topics can be deleted."),
    Key(
        "socket.request.max.bytes",
        104_857_600,
        at_least(1),
        doc="Largest request; a larger one closes its connection.",
    ),
    Key(
        "queued.max.requests",
        500,
        at_least(1),
        doc="Requests in progress on one connection before it is no longer read.",
    ),
    Key(
        "queued.max.request.bytes",
        256 * 1024 * 1024,
        at_least(-1),
        kind=Kind.LONG,
        doc="Bytes of requests in progress over all connections before none is read further; -1 is no limit.",
    ),
    Key("max.connections", 2**31 - 1, at_least(0), doc="Most connections of this broker."),
    Key(
        "max.connections.per.ip",
        2**31 - 1,
        at_least(0),
        doc="Most connections of one address.",
    ),
    Key(
        "max.connections.per.ip.overrides",
        (),
        _host_counts,
        doc="Other limits for some addresses: host:count, separated by commas.",
    ),
    Key(
        "connections.max.idle.ms",
        600_000,
        at_least(1),
        kind=Kind.LONG,
        doc="A connection that was silent for this long is closed.",
    ),
    Key("fetch.max.bytes", 57_671_680, at_least(1024), doc="Most bytes one Fetch answer carries."),
    Key(
        "max.incremental.fetch.session.cache.slots",
        1_000,
        at_least(0),
        doc="Most fetch sessions that are remembered (KIP-227).",
    ),
    Key(
        "auto.leader.rebalance.enable",
        True,
        doc="Whether leadership goes back to the preferred replica by itself.",
    ),
    Key(
        "controlled.shutdown.enable",
        True,
        doc="Whether a broker that stops hands its leaderships over first.",
    ),
    Key(
        "replica.high.watermark.checkpoint.interval.ms",
        5_000,
        at_least(1),
        kind=Kind.LONG,
        doc="How often high watermarks are written to disk.",
    ),
    Key(
        "replica.lag.time.max.ms",
        30_000,
        at_least(1),
        kind=Kind.LONG,
        doc="A follower behind for longer leaves the in-sync set.",
    ),
    Key(
        "group.coordinator.rebalance.protocols",
        ("classic",),
        listed("classic"),
        doc="Group protocols that are offered.",
    ),
    Key(
        "barnabas.offload.bytes",
        4 * 1024 * 1024,
        at_least(0),
        doc="Record batches that cost as much to check as this many plain bytes are checked on a thread.",
    ),
    Key(
        "barnabas.shutdown.timeout.ms",
        5_000,
        at_least(0),
        doc="How long a stop waits for answers that are still being sent.",
    ),
)

BROKER = _OWN + BROKER_LOG + GROUPS + TRANSACTIONS

# Settings of Apache Kafka that have no counterpart here: thread counts (one event loop), KRaft and
# ZooKeeper roles, metrics reporters, tiered storage.  A prefix ends with a dot.
IGNORED = (
    "process.roles",
    "controller.",
    "zookeeper.",
    "inter.broker.",
    "listener.security.protocol.map",
    "security.inter.broker.protocol",
    "num.network.threads",
    "num.io.threads",
    "num.replica.fetchers",
    "num.replica.alter.log.dirs.threads",
    "background.threads",
    "socket.send.buffer.bytes",
    "socket.receive.buffer.bytes",
    "socket.listen.backlog.size",
    "replica.fetch.",
    "replica.socket.",
    "remote.log.",
    "metric.reporters",
    "metrics.",
    "kafka.metrics.",
    "share.",
    "group.share.",
    "group.consumer.",
    "confluent.",
    "metadata.log.",
    "metadata.max.",
    "initial.broker.registration.timeout.ms",
    "broker.heartbeat.interval.ms",
    "broker.session.timeout.ms",
    "unstable.",
    "log4j.",
)


def parse_endpoint(setting: str, text: str) -> Endpoint:
    """NAME://host:port, an IPv6 host in brackets.  Raises ConfigFault that names the setting."""
    name, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if not separator or not colon or not name or not port.isdigit() or int(port) > 65_535:
        raise ConfigFault(f"{setting}: {text!r} is not of the form NAME://host:port")
    return Endpoint(name.upper(), host.removeprefix("[").removesuffix("]"), int(port))


def parse_broker_settings(given: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """Typed settings and the names that were accepted but mean nothing here.

    Raises ConfigFault with a line for every wrong or unknown one.
    """
    ignored = [name for name in given if name not in BROKER and name.startswith(IGNORED)]
    wanted = {name: text for name, text in given.items() if name not in ignored}
    if "broker.id" in wanted and "node.id" not in wanted:
        wanted["node.id"] = wanted["broker.id"]
    if faults := BROKER.faults(wanted):
        raise ConfigFault("\n".join(faults))
    settings = BROKER.parse(wanted)
    advertised_endpoints(settings)
    return settings, ignored


def listener_endpoints(settings: Settings) -> list[Endpoint]:
    """What to listen on.  Raises ConfigFault when a name or an address comes twice."""
    endpoints = [parse_endpoint("listeners", text) for text in settings.items("listeners")]
    if not endpoints:
        raise ConfigFault("listeners: at least one address is needed")
    names = [endpoint.listener for endpoint in endpoints]
    if len(set(names)) != len(names):
        raise ConfigFault("listeners: each listener needs its own name")
    fixed = [(endpoint.host, endpoint.port) for endpoint in endpoints if endpoint.port]
    if len(set(fixed)) != len(fixed):
        raise ConfigFault("listeners: an address comes twice")
    control = settings.optional_string("control.plane.listener.name")
    if control is not None and control.upper() not in names:
        raise ConfigFault(f"control.plane.listener.name: there is no listener called {control}")
    return endpoints


def advertised_endpoints(settings: Settings) -> dict[str, Endpoint]:
    """What clients are told, by listener name; only listeners named in `advertised.listeners` are there."""
    names = {endpoint.listener for endpoint in listener_endpoints(settings)}
    advertised: dict[str, Endpoint] = {}
    for text in settings.items("advertised.listeners"):
        endpoint = parse_endpoint("advertised.listeners", text)
        if endpoint.listener not in names:
            raise ConfigFault(f"advertised.listeners: there is no listener called {endpoint.listener}")
        if not endpoint.host or endpoint.host == "0.0.0.0":
            raise ConfigFault(f"advertised.listeners: {text!r} names no host that a client could connect to")
        advertised[endpoint.listener] = endpoint
    return advertised
