"""Kafka's documents: what is written, what is read, what is refused."""

import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.types import TopicPartition, uuid_text
from barnabas.metadata.image import Endpoint
from barnabas.store import documents as docs
from barnabas.store.errors import DocumentFault

TP = TopicPartition("t", 0)
ids = st.integers(0, 2**31 - 1)
id_tuples = st.lists(ids, max_size=4, unique=True).map(tuple)
names = st.text(st.characters(codec="utf-8"), max_size=20)


class TestABroker:
    def test_is_written_as_kafka_writes_it(self) -> None:
        registration = docs.BrokerRegistration(
            endpoints=(Endpoint("IN", "h", 9092), Endpoint("OUT", "::1", 9093, "SASL_SSL")),
            timestamp_ms=5,
            rack="r1",
            features={"metadata.version": (1, 7)},
        )
        assert json.loads(registration.encode()) == {
            "version": 5,
            "host": "h",
            "port": 9092,
            "endpoints": ["IN://h:9092", "OUT://[::1]:9093"],
            "listener_security_protocol_map": {"IN": "PLAINTEXT", "OUT": "SASL_SSL"},
            "jmx_port": -1,
            "timestamp": "5",
            "rack": "r1",
            "features": {"metadata.version": {"min_version": 1, "max_version": 7}},
        }
        assert docs.BrokerRegistration.decode(1, registration.encode()) == registration

    def test_without_a_plain_listener_has_no_host_for_old_clients(self) -> None:
        document = json.loads(docs.BrokerRegistration((Endpoint("S", "h", 1, "SSL"),), 0).encode())
        assert (document["host"], document["port"]) == (None, -1)
        assert "rack" not in document

    def test_of_older_versions_is_read(self) -> None:
        one = docs.BrokerRegistration.decode(
            1, b'{"version":1,"host":"localhost","port":9092,"jmx_port":9999,"timestamp":"2233345666"}'
        )
        assert one.endpoints == (Endpoint("PLAINTEXT", "localhost", 9092),)
        assert (one.jmx_port, one.timestamp_ms) == (9999, 2233345666)
        three = docs.BrokerRegistration.decode(
            1,
            b'{"version":3,"host":"h","port":1,"jmx_port":-1,"timestamp":"1",'
            b'"endpoints":["PLAINTEXT://h1:9092","SSL://h1:9093"],"rack":"dc1"}',
        )
        assert three.endpoints == (Endpoint("PLAINTEXT", "h1", 9092), Endpoint("SSL", "h1", 9093, "SSL"))
        assert three.rack == "dc1"

    @pytest.mark.parametrize(
        ("data", "text"),
        [
            (b"", "/brokers/ids/1: b'' is not JSON: "),
            (b'{"version":0}', "/brokers/ids/1: version 0 of a broker registration is not known"),
            (
                b'{"version":4,"endpoints":["nonsense"],"listener_security_protocol_map":{}}',
                "/brokers/ids/1: 'nonsense' is not an endpoint, as LISTENER://host:port",
            ),
            (
                b'{"version":4,"endpoints":["X://h:1"],"listener_security_protocol_map":{"X":"TELNET"}}',
                "/brokers/ids/1: listener X has the security protocol 'TELNET', which is not known",
            ),
        ],
    )
    def test_that_is_malformed_is_refused(self, data: bytes, text: str) -> None:
        with pytest.raises(DocumentFault) as caught:
            docs.BrokerRegistration.decode(1, data)
        assert str(caught.value).startswith(text)


class TestATopic:
    def test_is_written_as_kafka_writes_it(self) -> None:
        assignment = docs.TopicAssignment(
            bytes(range(16)),
            {1: docs.ReplicaAssignment((1, 2, 3), (3,), (1,)), 0: docs.ReplicaAssignment((1, 2))},
        )
        assert json.loads(assignment.encode()) == {
            "version": 3,
            "topic_id": uuid_text(bytes(range(16))),
            "partitions": {"0": [1, 2], "1": [1, 2, 3]},
            "adding_replicas": {"1": [3]},
            "removing_replicas": {"1": [1]},
        }
        assert docs.TopicAssignment.decode("t", assignment.encode()) == assignment

    def test_of_version_1_is_read(self) -> None:
        old = docs.TopicAssignment.decode("t", b'{"version":1,"partitions":{"0":[5]}}')
        assert old == docs.TopicAssignment(None, {0: docs.ReplicaAssignment((5,))})

    def test_with_a_bad_id_is_refused(self) -> None:
        with pytest.raises(DocumentFault, match="'short' is not a topic id"):
            docs.TopicAssignment.decode("t", b'{"version":3,"topic_id":"short","partitions":{}}')

    @given(
        st.dictionaries(ids, st.builds(docs.ReplicaAssignment, id_tuples, id_tuples, id_tuples), max_size=5)
    )
    def test_survives_the_round(self, partitions: dict[int, docs.ReplicaAssignment]) -> None:
        assignment = docs.TopicAssignment(bytes(range(16)), partitions)
        assert docs.TopicAssignment.decode("t", assignment.encode()) == assignment


class TestAPartition:
    def test_is_written_as_kafka_writes_it(self) -> None:
        state = docs.PartitionState(leader=1, leader_epoch=4, isr=(1, 2), controller_epoch=9)
        assert json.loads(state.encode()) == {
            "version": 1, "leader": 1, "leader_epoch": 4, "controller_epoch": 9, "isr": [1, 2],
        }  # fmt: skip
        assert docs.PartitionState.decode(TP, state.encode()) == state

    def test_keeps_that_its_leader_recovers(self) -> None:
        state = docs.PartitionState(1, 4, (1,), 9, is_recovering=True)
        assert json.loads(state.encode())["leader_recovery_state"] == 1
        assert docs.PartitionState.decode(TP, state.encode()) == state

    def test_names_its_node_in_faults(self) -> None:
        with pytest.raises(
            DocumentFault, match=r"^/brokers/topics/t/partitions/0/state: 'leader' is missing"
        ):
            docs.PartitionState.decode(TP, b"{}")


class TestTheRest:
    def test_the_controller(self) -> None:
        controller = docs.ControllerRegistration(3, 77)
        assert json.loads(controller.encode()) == {
            "version": 2, "brokerid": 3, "timestamp": "77", "kraftControllerEpoch": -1,
        }  # fmt: skip
        assert docs.ControllerRegistration.decode(controller.encode()) == controller

    def test_the_controller_epoch(self) -> None:
        assert docs.encode_controller_epoch(12) == b"12"
        assert docs.decode_controller_epoch(b"12") == 12
        with pytest.raises(DocumentFault, match=r"^/controller_epoch: b'x' is not a whole number$"):
            docs.decode_controller_epoch(b"x")

    def test_the_cluster_id(self) -> None:
        assert json.loads(docs.encode_cluster_id("abc")) == {"version": "1", "id": "abc"}
        assert docs.decode_cluster_id(docs.encode_cluster_id("abc")) == "abc"

    def test_a_producer_id_block(self) -> None:
        block = docs.ProducerIdBlock(1, 1000, 1999)
        assert json.loads(block.encode()) == {
            "version": 1, "broker": 1, "block_start": "1000", "block_end": "1999",
        }  # fmt: skip
        assert docs.ProducerIdBlock.decode(block.encode()) == block
        with pytest.raises(DocumentFault, match="the block ends at 1, before its start 2"):
            docs.ProducerIdBlock.decode(docs.ProducerIdBlock(1, 2, 1).encode())

    def test_features(self) -> None:
        features = docs.FinalizedFeatures(True, {"group.version": 1})
        assert json.loads(features.encode()) == {
            "version": 2, "status": 1, "features": {"group.version": {"max_version_level": 1}},
        }  # fmt: skip
        assert docs.FinalizedFeatures.decode(features.encode()) == features

    @pytest.mark.parametrize(
        ("data", "text"),
        [
            (b'{"version":3}', "version 3 of the feature document is not known"),
            (b'{"version":2,"status":5}', "status 5 is neither 0 nor 1"),
            (
                b'{"version":2,"status":1,"features":{"f":{"max_version_level":0}}}',
                "the level of 'f' is 0, below 1",
            ),
        ],
    )
    def test_features_that_are_refused(self, data: bytes, text: str) -> None:
        with pytest.raises(DocumentFault, match=text):
            docs.FinalizedFeatures.decode(data)

    def test_a_config_change(self) -> None:
        assert docs.decode_config_change("/c", docs.encode_config_change("topics/t")) == "topics/t"
        old = b'{"version":1,"entity_type":"topics","entity_name":"t"}'
        assert docs.decode_config_change("/c", old) == "topics/t"
        with pytest.raises(DocumentFault, match="version 9 of a config change is not known"):
            docs.decode_config_change("/c", b'{"version":9}')

    def test_isr_changes_and_log_dir_events(self) -> None:
        changed = frozenset({TopicPartition("a", 1), TopicPartition("b", 0)})
        assert docs.decode_isr_changes("/i", docs.encode_isr_changes(changed)) == changed
        assert docs.decode_log_dir_event("/l", docs.encode_log_dir_event(4)) == 4

    def test_reassignments(self) -> None:
        targets = {TopicPartition("a", 1): (1, 2), TopicPartition("a", 0): (3,)}
        assert docs.decode_reassignments(docs.encode_reassignments(targets)) == targets

    @given(st.dictionaries(names, names, max_size=5))
    def test_a_config(self, values: dict[str, str]) -> None:
        assert docs.decode_config("/config/topics/t", docs.encode_config(values)) == values
        assert docs.decode_config("/config/topics/t", b"") == {}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
field_names = st.sampled_from(
    ["version", "endpoints", "host", "port", "partitions", "topic_id", "leader", "isr", "features", "status",
     "config", "entity_path", "block_start", "block_end", "broker", "brokerid", "id", "features", "timestamp"]
)  # fmt: skip
DECODERS: list[Callable[[bytes], object]] = [
    lambda data: docs.BrokerRegistration.decode(1, data),
    lambda data: docs.TopicAssignment.decode("t", data),
    lambda data: docs.PartitionState.decode(TP, data),
    docs.ControllerRegistration.decode,
    docs.ProducerIdBlock.decode,
    docs.FinalizedFeatures.decode,
    docs.decode_cluster_id,
    docs.decode_controller_epoch,
    lambda data: docs.decode_config("/c", data),
    lambda data: docs.decode_config_change("/c", data),
    lambda data: docs.decode_isr_changes("/i", data),
    lambda data: docs.decode_log_dir_event("/l", data),
    docs.decode_reassignments,
]


@given(st.sampled_from(DECODERS), st.dictionaries(field_names, json_values))
def test_any_document_is_read_or_refused_with_one_kind_of_error(
    decode: Callable[[bytes], object], document: dict[str, object]
) -> None:
    with suppress(DocumentFault):
        decode(json.dumps(document).encode())
