"""What is in the nodes: the JSON documents that Apache Kafka keeps in ZooKeeper, up to 3.9.

Each document is a value with `encode` and `decode`; field names, versions and the habit of writing some
numbers as text are Kafka's, so that its tools read our tree and we read theirs.  Unknown fields are
ignored, since newer versions add some; whatever is missing or of the wrong type raises DocumentFault,
which names the node.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from barnabas.base.types import TopicPartition, Uuid, uuid_from_text, uuid_text
from barnabas.metadata.image import Endpoint
from barnabas.store import paths
from barnabas.store.errors import DocumentFault
from barnabas.store.fields import Fields, dump

__all__ = [
    "BrokerRegistration",
    "ControllerRegistration",
    "FinalizedFeatures",
    "PartitionState",
    "ProducerIdBlock",
    "ReplicaAssignment",
    "TopicAssignment",
    "decode_cluster_id",
    "decode_config",
    "decode_config_change",
    "decode_controller_epoch",
    "decode_isr_changes",
    "decode_log_dir_event",
    "decode_reassignments",
    "encode_cluster_id",
    "encode_config",
    "encode_config_change",
    "encode_controller_epoch",
    "encode_isr_changes",
    "encode_log_dir_event",
    "encode_reassignments",
]

_ENDPOINT = re.compile(r"(?P<listener>[^:/]+)://(?:\[(?P<v6>[^\]]*)\]|(?P<host>[^:\[\]]*)):(?P<port>-?\d+)")
_SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_LOG_DIR_FAILURE = 1


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """`/brokers/ids/<id>`, version 5; versions 1 to 4 are read too."""

    endpoints: tuple[Endpoint, ...]
    timestamp_ms: int
    rack: str | None = None
    jmx_port: int = -1
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # name -> (min, max)

    def encode(self) -> bytes:
        # Clients from before there were listeners read host and port: the first plaintext one's.
        plain = next((e for e in self.endpoints if e.security_protocol == "PLAINTEXT"), None)
        document: dict[str, object] = {
            "version": 5,
            "host": plain.host if plain else None,
            "port": plain.port if plain else -1,
            "endpoints": [_endpoint_text(endpoint) for endpoint in self.endpoints],
            "listener_security_protocol_map": {e.listener: e.security_protocol for e in self.endpoints},
            "jmx_port": self.jmx_port,
            "timestamp": str(self.timestamp_ms),
            "features": {
                name: {"min_version": low, "max_version": high} for name, (low, high) in self.features.items()
            },
        }
        if self.rack is not None:
            document["rack"] = self.rack
        return dump(document)

    @classmethod
    def decode(cls, broker_id: int, data: bytes) -> Self:
        fields = Fields.parse(paths.broker(broker_id), data)
        version = fields.integer("version")
        if version < 1:
            raise fields.fault(f"version {version} of a broker registration is not known")
        endpoints: tuple[Endpoint, ...]
        if version == 1:
            endpoints = (Endpoint("PLAINTEXT", fields.text("host"), fields.integer("port")),)
        else:
            protocols = fields.texts_by_name("listener_security_protocol_map", optional=True)
            if protocols is None:
                protocols = {name: name for name in _SECURITY_PROTOCOLS}
            endpoints = tuple(_endpoint(fields, text, protocols) for text in fields.texts("endpoints"))
        features = fields.fields("features", optional=True)
        return cls(
            endpoints,
            timestamp_ms=fields.integer_text("timestamp", default=-1),
            rack=fields.text("rack", optional=True),
            jmx_port=fields.integer("jmx_port", default=-1),
            features={
                name: (range_.integer("min_version"), range_.integer("max_version"))
                for name, range_ in (features.items() if features else ())
            },
        )


@dataclass(frozen=True, slots=True)
class ReplicaAssignment:
    """The brokers of one partition; `adding` and `removing` are parts of `replicas`."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """`/brokers/topics/<name>`, version 3; older ones, without a topic id, are read too."""

    topic_id: Uuid | None
    partitions: Mapping[int, ReplicaAssignment]

    def encode(self) -> bytes:
        ordered = sorted(self.partitions.items())
        document: dict[str, object] = {
            "version": 3,
            "partitions": {str(index): list(one.replicas) for index, one in ordered},
            "adding_replicas": {str(index): list(one.adding) for index, one in ordered if one.adding},
            "removing_replicas": {str(index): list(one.removing) for index, one in ordered if one.removing},
        }
        if self.topic_id is not None:
            document["topic_id"] = uuid_text(self.topic_id)
        return dump(document)

    @classmethod
    def decode(cls, topic: str, data: bytes) -> Self:
        fields = Fields.parse(paths.topic(topic), data)
        text = fields.text("topic_id", optional=True)
        try:
            topic_id = None if text is None else uuid_from_text(text)
        except ValueError as error:
            raise fields.fault(str(error)) from error
        replicas = fields.integers_by_number("partitions")
        adding = fields.integers_by_number("adding_replicas", optional=True)
        removing = fields.integers_by_number("removing_replicas", optional=True)
        return cls(
            topic_id,
            {
                index: ReplicaAssignment(brokers, adding.get(index, ()), removing.get(index, ()))
                for index, brokers in sorted(replicas.items())
            },
        )


@dataclass(frozen=True, slots=True)
class PartitionState:
    """`/brokers/topics/<name>/partitions/<n>/state`; its node version is the partition epoch."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    is_recovering: bool = False  # the leader was elected uncleanly and has not recovered yet

    def encode(self) -> bytes:
        document: dict[str, object] = {
            "version": 1,
            "leader": self.leader,
            "leader_epoch": self.leader_epoch,
            "controller_epoch": self.controller_epoch,
            "isr": list(self.isr),
        }
        if self.is_recovering:
            document["leader_recovery_state"] = 1
        return dump(document)

    @classmethod
    def decode(cls, tp: TopicPartition, data: bytes) -> Self:
        fields = Fields.parse(paths.partition_state(tp), data)
        return cls(
            leader=fields.integer("leader"),
            leader_epoch=fields.integer("leader_epoch"),
            isr=fields.integers("isr"),
            controller_epoch=fields.integer("controller_epoch"),
            is_recovering=fields.integer("leader_recovery_state", default=0) == 1,
        )


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    """`/controller`, ephemeral: who won the election, and when."""

    broker_id: int
    timestamp_ms: int

    def encode(self) -> bytes:
        return dump(
            {
                "version": 2,
                "brokerid": self.broker_id,
                "timestamp": str(self.timestamp_ms),
                "kraftControllerEpoch": -1,  # always, outside a migration to KRaft
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        fields = Fields.parse(paths.CONTROLLER, data)
        return cls(fields.integer("brokerid"), fields.integer_text("timestamp", default=-1))


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """`/latest_producer_id_block`: the ids from `first` to `last`, both included, belong to a broker."""

    broker_id: int
    first: int
    last: int

    def encode(self) -> bytes:
        return dump(
            {
                "version": 1,
                "broker": self.broker_id,
                "block_start": str(self.first),
                "block_end": str(self.last),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        fields = Fields.parse(paths.PRODUCER_ID_BLOCK, data)
        block = cls(
            fields.integer("broker"), fields.integer_text("block_start"), fields.integer_text("block_end")
        )
        if block.last < block.first:
            raise fields.fault(f"the block ends at {block.last}, before its start {block.first}")
        return block


@dataclass(frozen=True, slots=True)
class FinalizedFeatures:
    """`/feature`: the levels every broker must have; its node version is the features epoch."""

    is_enabled: bool
    levels: Mapping[str, int]

    def encode(self) -> bytes:
        return dump(
            {
                "version": 2,
                "status": int(self.is_enabled),
                "features": {name: {"max_version_level": level} for name, level in self.levels.items()},
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        fields = Fields.parse(paths.FEATURE, data)
        version = fields.integer("version")
        if version not in (1, 2):
            raise fields.fault(f"version {version} of the feature document is not known")
        status = fields.integer("status")
        if status not in (0, 1):
            raise fields.fault(f"status {status} is neither 0 nor 1")
        levels = {
            name: level.integer("max_version_level") for name, level in fields.fields("features").items()
        }
        for name, level in levels.items():
            if level < 1:
                raise fields.fault(f"the level of {name!r} is {level}, below 1")
        return cls(bool(status), levels)


def encode_controller_epoch(epoch: int) -> bytes:
    """`/controller_epoch`: digits, not JSON."""
    return str(epoch).encode()


def decode_controller_epoch(data: bytes) -> int:
    if re.fullmatch(rb"-?\d{1,10}", data) is None:
        raise DocumentFault(f"{paths.CONTROLLER_EPOCH}: {data[:40]!r} is not a whole number")
    return int(data)


def encode_cluster_id(cluster_id: str) -> bytes:
    """`/cluster/id`; the version is text there, alone among all documents."""
    return dump({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    return Fields.parse(paths.CLUSTER_ID, data).text("id")


def encode_config(values: Mapping[str, str]) -> bytes:
    """`/config/<type>/<name>`: every value is text."""
    return dump({"version": 1, "config": dict(values)})


def decode_config(path: str, data: bytes) -> dict[str, str]:
    """The settings in the node; an empty node, made by `ensure`, has none."""
    return dict(Fields.parse(path, data).texts_by_name("config")) if data else {}


def encode_config_change(entity_path: str) -> bytes:
    """A node under `/config/changes`: the entity, as "topics/<name>", whose config changed."""
    return dump({"version": 2, "entity_path": entity_path})


def decode_config_change(path: str, data: bytes) -> str:
    fields = Fields.parse(path, data)
    version = fields.integer("version")
    if version == 1:
        return f"{fields.text('entity_type')}/{fields.text('entity_name')}"
    if version != 2:
        raise fields.fault(f"version {version} of a config change is not known")
    return fields.text("entity_path")


def encode_isr_changes(changed: Iterable[TopicPartition]) -> bytes:
    """A node under `/isr_change_notification`, or `/admin/preferred_replica_election`."""
    rows = [{"topic": tp.topic, "partition": tp.partition} for tp in sorted(changed)]
    return dump({"version": 1, "partitions": rows})


def decode_isr_changes(path: str, data: bytes) -> frozenset[TopicPartition]:
    rows = Fields.parse(path, data).rows("partitions")
    return frozenset(TopicPartition(row.text("topic"), row.integer("partition")) for row in rows)


def encode_log_dir_event(broker_id: int) -> bytes:
    """A node under `/log_dir_event_notification`: a data folder of the broker failed."""
    return dump({"version": 1, "broker": broker_id, "event": _LOG_DIR_FAILURE})


def decode_log_dir_event(path: str, data: bytes) -> int:
    return Fields.parse(path, data).integer("broker")


def encode_reassignments(targets: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
    """`/admin/reassign_partitions`, the way before there was an API for it."""
    rows = [
        {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
        for tp, replicas in sorted(targets.items())
    ]
    return dump({"version": 1, "partitions": rows})


def decode_reassignments(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    rows = Fields.parse(paths.REASSIGN_PARTITIONS, data).rows("partitions")
    return {
        TopicPartition(row.text("topic"), row.integer("partition")): row.integers("replicas") for row in rows
    }


def _endpoint_text(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def _endpoint(fields: Fields, text: str, protocols: Mapping[str, str]) -> Endpoint:
    found = _ENDPOINT.fullmatch(text)
    if found is None:
        raise fields.fault(f"{text!r} is not an endpoint, as LISTENER://host:port")
    listener = found["listener"]
    protocol = protocols.get(listener)
    if protocol not in _SECURITY_PROTOCOLS:
        raise fields.fault(f"listener {listener} has the security protocol {protocol!r}, which is not known")
    host = found["v6"] if found["v6"] is not None else found["host"]
    return Endpoint(listener, host, int(found["port"]), protocol)
