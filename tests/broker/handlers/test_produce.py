"""barnabas.broker.handlers.produce: what is taken, what is refused, and how both are answered (WIRE 2.6)."""

import struct
from collections.abc import Iterator

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.records.batch import ATTRIBUTE_CONTROL, ATTRIBUTE_LOG_APPEND_TIME, RecordBatch, seal_batch
from barnabas.records.builder import end_txn_marker
from barnabas.records.codecs import Codec
from barnabas.records.legacy import write_message_set
from barnabas.records.record import Record
from barnabas.testing import Broker
from tests.broker._calls import (
    batch,
    fetch,
    list_offset,
    now_ms,
    offsets,
    partition_of,
    produce,
    produce_request,
    record_bytes,
    topic_id_of,
    values,
)
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeClient, MakeTopic

BATCH_VERSIONS = range(3, 14)
LATEST = -1


def message_set(*records: bytes, magic: int = 1, codec: Codec = Codec.NONE, timestamp: int = 1_000) -> bytes:
    rows = [Record(offset, timestamp, None, value) for offset, value in enumerate(records)]
    return bytes(write_message_set(rows, magic=magic, codec=codec))


def patched(data: bytes, position: int, layout: str, value: int, *, seal: bool = True) -> bytes:
    """The batch with one header field changed, and the CRC made right again."""
    changed = bytearray(data)
    struct.pack_into(layout, changed, position, value)
    if seal:
        seal_batch(changed, 0, len(changed))
    return bytes(changed)


def with_attribute(data: bytes, attribute: int) -> bytes:
    return patched(data, 21, ">h", RecordBatch(memoryview(data)).attributes | attribute)


class TestEveryVersionIsServed:
    @pytest.mark.parametrize("version", BATCH_VERSIONS)
    def test_a_batch_gets_its_offset(
        self, broker: Broker, client: WireClient, topic: str, version: int
    ) -> None:
        topic_id = topic_id_of(broker, topic)
        for expected in (0, 2):
            answer = produce(client, topic, batch(b"a", b"b"), version=version, topic_id=topic_id)
            assert (answer.index, answer.error_code, answer.base_offset) == (0, 0, expected)
            assert answer.log_append_time_ms == -1
            assert answer.log_start_offset == (0 if version >= 5 else -1)
            assert answer.error_message is None
            assert answer.record_errors == []
            assert answer.current_leader is None
        assert values(fetch(client, topic)) == [b"a", b"b"] * 2

    @pytest.mark.parametrize("version", range(3))
    @pytest.mark.parametrize("magic", [0, 1])
    def test_a_message_set_becomes_a_batch(
        self, client: WireClient, topic: str, version: int, magic: int
    ) -> None:
        answer = produce(client, topic, message_set(b"a", b"b", magic=magic), version=version)
        assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, 0, -1)
        fetched = fetch(client, topic)
        assert values(fetched) == [b"a", b"b"]
        (stored,) = [RecordBatch(memoryview(record_bytes(fetched)))]
        assert [record.timestamp for record in stored.records(limit=1 << 20)] == [1_000 if magic else -1] * 2

    @pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
    def test_a_compressed_message_set_stays_compressed(
        self, client: WireClient, topic: str, codec: Codec
    ) -> None:
        words = [b"word" * 50] * 5
        assert produce(client, topic, message_set(*words, codec=codec), version=2).error_code == 0
        fetched = fetch(client, topic)
        assert values(fetched) == words
        assert RecordBatch(memoryview(record_bytes(fetched))).codec is codec

    def test_the_topic_is_named_by_id_from_version_13_on(
        self, broker: Broker, client: WireClient, topic: str
    ) -> None:
        topic_id = topic_id_of(broker, topic)
        request = produce_request("", batch(b"x"), topic_id=topic_id)
        (answer,) = client.call(request, 13, ProduceResponse).responses
        assert answer.topic_id == topic_id
        assert answer.partition_responses[0].error_code == 0

    @pytest.mark.parametrize("topic_id", [bytes(16), b"\x01" * 16])
    def test_an_unknown_id_is_unknown_topic_id(self, client: WireClient, topic_id: bytes) -> None:
        answer = produce(client, "", batch(b"x"), version=13, topic_id=topic_id)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.UNKNOWN_TOPIC_ID, -1)


class TestAcks:
    @pytest.mark.parametrize("acks", [1, -1])
    def test_one_and_all_are_answered(self, client: WireClient, topic: str, acks: int) -> None:
        assert produce(client, topic, batch(b"x"), acks=acks).error_code == 0

    def test_none_gets_no_answer(self, client: WireClient, topic: str) -> None:
        client.send(produce_request(topic, batch(b"quiet"), acks=0), 9, answered=False)
        # The next answer on the connection belongs to the next request.
        assert client.call(MetadataRequest(topics=[]), 9, MetadataResponse).topics == []
        assert values(fetch(client, topic)) == [b"quiet"]

    @pytest.mark.parametrize("large", [False, True])
    def test_none_with_an_error_closes_the_connection(
        self, connect: MakeClient, topic: str, large: bool
    ) -> None:
        client = connect()
        records = batch(bytes(400_000)) if large else batch(b"x")
        client.send(produce_request(topic, records, partition=9, acks=0), 9, answered=False)
        assert client.is_closed_by_broker()

    @pytest.mark.parametrize("acks", [2, -2, 32767])
    def test_any_other_number_is_refused_for_every_partition(
        self, client: WireClient, topic: str, acks: int
    ) -> None:
        request = ProduceRequest(
            acks=acks,
            timeout_ms=1,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[PartitionProduceData(index=n, records=batch(b"x")) for n in (0, 1)],
                )
            ],
        )
        (answer,) = client.call(request, 9, ProduceResponse).responses
        assert [(part.index, part.error_code, part.base_offset) for part in answer.partition_responses] == [
            (0, ErrorCode.INVALID_REQUIRED_ACKS, -1),
            (1, ErrorCode.INVALID_REQUIRED_ACKS, -1),
        ]
        assert list_offset(client, topic, LATEST).offset == 0

    def test_all_needs_min_insync_replicas_and_one_does_not(
        self, client: WireClient, make_topic: MakeTopic
    ) -> None:
        strict = make_topic(min_insync_replicas="2")
        answer = produce(client, strict, batch(b"x"), acks=-1)
        assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert answer.error_message == f"{strict}-0: 1 replicas are in sync, 2 are needed"
        assert produce(client, strict, batch(b"x"), acks=1).error_code == 0


class TestWhatIsNoBatchIsRefused:
    def refused(self, client: WireClient, topic: str, records: bytes | None, version: int = 9) -> ErrorCode:
        answer = produce(client, topic, records, version=version)
        assert answer.base_offset == -1
        assert list_offset(client, topic, LATEST).offset == 0, "nothing was appended"
        return ErrorCode(answer.error_code)

    @pytest.mark.parametrize("version", BATCH_VERSIONS)
    def test_null_records(self, broker: Broker, client: WireClient, topic: str, version: int) -> None:
        answer = produce(client, topic, None, version=version, topic_id=topic_id_of(broker, topic))
        assert answer.error_code == ErrorCode.INVALID_RECORD
        assert answer.error_message == ("there is no batch of records" if version >= 8 else None)

    def test_empty_records(self, client: WireClient, topic: str) -> None:
        assert self.refused(client, topic, b"") is ErrorCode.INVALID_RECORD

    def test_two_batches(self, client: WireClient, topic: str) -> None:
        assert self.refused(client, topic, batch(b"a") + batch(b"b")) is ErrorCode.INVALID_RECORD

    def test_a_message_set_in_a_version_of_batches(self, client: WireClient, topic: str) -> None:
        assert self.refused(client, topic, message_set(b"old" * 30)) is ErrorCode.INVALID_RECORD

    def test_a_batch_in_a_version_of_message_sets(self, client: WireClient, topic: str) -> None:
        assert self.refused(client, topic, batch(b"new"), version=2) is ErrorCode.CORRUPT_MESSAGE

    def test_a_wrong_crc(self, client: WireClient, topic: str) -> None:
        damaged = bytearray(batch(b"value"))
        damaged[-2] ^= 1
        assert self.refused(client, topic, bytes(damaged)) is ErrorCode.CORRUPT_MESSAGE

    def test_a_cut_batch(self, client: WireClient, topic: str) -> None:
        assert self.refused(client, topic, batch(b"value")[:-1]) is ErrorCode.CORRUPT_MESSAGE

    def test_a_control_batch(self, client: WireClient, topic: str) -> None:
        marker = end_txn_marker(
            committed=True, coordinator_epoch=0, timestamp=0, producer_id=5, producer_epoch=0
        )
        code = self.refused(client, topic, bytes(marker))
        assert code in (ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TXN_STATE)
        plain = with_attribute(batch(b"x"), ATTRIBUTE_CONTROL)
        assert self.refused(client, topic, plain) is ErrorCode.INVALID_RECORD

    def test_a_transactional_batch_of_a_partition_that_is_in_no_transaction(
        self, client: WireClient, topic: str
    ) -> None:
        records = batch(b"x", producer_id=4, epoch=0, sequence=0, transactional=True)
        assert self.refused(client, topic, records) is ErrorCode.INVALID_TXN_STATE

    @pytest.mark.parametrize("count", [1, 3])
    def test_a_record_count_that_is_not_the_last_offset_delta_plus_one(
        self, client: WireClient, topic: str, count: int
    ) -> None:
        lying = patched(batch(b"a", b"b"), 57, ">i", count)
        assert self.refused(client, topic, lying) is ErrorCode.INVALID_RECORD

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4])
    def test_a_count_that_the_records_do_not_have(self, client: WireClient, topic: str, codec: Codec) -> None:
        records = batch(*[b"a" * 100] * 3, codec=codec)
        lying = patched(patched(records, 57, ">i", 4), 23, ">i", 3)
        assert self.refused(client, topic, lying) is ErrorCode.INVALID_RECORD

    def test_rubbish_behind_the_magic_byte(self, client: WireClient, topic: str) -> None:
        rubbish = patched(batch(bytes(50)), 61, ">q", -1)
        assert self.refused(client, topic, rubbish) is ErrorCode.INVALID_RECORD

    def test_a_payload_that_is_not_compressed_as_it_says(self, client: WireClient, topic: str) -> None:
        lying = with_attribute(batch(b"plain"), Codec.GZIP)
        assert self.refused(client, topic, lying) is ErrorCode.CORRUPT_MESSAGE

    def test_a_codec_that_does_not_exist(self, client: WireClient, topic: str) -> None:
        assert self.refused(client, topic, with_attribute(batch(b"x"), 7)) in (
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            ErrorCode.INVALID_RECORD,
        )

    def test_a_producer_that_claims_log_append_time(self, client: WireClient, topic: str) -> None:
        records = with_attribute(batch(b"x"), ATTRIBUTE_LOG_APPEND_TIME)
        assert self.refused(client, topic, records) is ErrorCode.INVALID_TIMESTAMP

    def test_one_bad_partition_leaves_the_others_alone(
        self, client: WireClient, make_topic: MakeTopic
    ) -> None:
        topic = make_topic(3)
        parts = [(0, batch(b"a")), (7, batch(b"b")), (1, b"rubbish"), (2, batch(b"c"))]
        request = ProduceRequest(
            acks=1,
            timeout_ms=1_000,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[PartitionProduceData(index=i, records=data) for i, data in parts],
                ),
                TopicProduceData(name="nowhere", partition_data=[PartitionProduceData(index=0, records=b"")]),
            ],
        )
        first, second = client.call(request, 8, ProduceResponse).responses
        assert [(part.index, part.error_code, part.base_offset) for part in first.partition_responses] == [
            (0, 0, 0),
            (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
            (1, ErrorCode.INVALID_RECORD, -1),
            (2, 0, 0),
        ]
        assert second.name == "nowhere"
        assert second.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_a_topic_of_the_broker_itself(self, client: WireClient, offsets_topic: str) -> None:
        answer = produce(client, offsets_topic, batch(b"x", key=b"k"))
        assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

    def test_the_answer_to_an_unknown_topic_does_not_create_it(self, client: WireClient) -> None:
        assert produce(client, "never-made", batch(b"x")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert produce(client, "never-made", batch(b"x")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def offsets_topic(broker: Broker) -> str:
    assert broker.node is not None
    assert broker.node.services is not None
    return broker.run(broker.node.services.topics.ensure("__consumer_offsets")).name


class TestCompression:
    @pytest.mark.parametrize("codec", list(Codec))
    @pytest.mark.parametrize("version", [7, 13])
    def test_every_codec_is_stored_as_it_came(
        self, broker: Broker, client: WireClient, topic: str, codec: Codec, version: int
    ) -> None:
        words = [b"word" * 40] * 10
        sent = batch(*words, codec=codec)
        answer = produce(client, topic, sent, version=version, topic_id=topic_id_of(broker, topic))
        assert answer.error_code == 0
        fetched = record_bytes(fetch(client, topic))
        assert fetched[61:] == sent[61:]
        assert RecordBatch(memoryview(fetched)).codec is codec

    @pytest.mark.parametrize("version", range(3, 7))
    def test_zstd_needs_version_7(self, client: WireClient, topic: str, version: int) -> None:
        answer = produce(client, topic, batch(b"z" * 200, codec=Codec.ZSTD), version=version)
        assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE

    def test_the_topic_may_want_another_codec(self, client: WireClient, make_topic: MakeTopic) -> None:
        topic = make_topic(compression_type="gzip")
        assert produce(client, topic, batch(*[b"word" * 40] * 5, codec=Codec.LZ4)).error_code == 0
        fetched = fetch(client, topic)
        assert RecordBatch(memoryview(record_bytes(fetched))).codec is Codec.GZIP
        assert values(fetched) == [b"word" * 40] * 5


class TestWhatTheTopicAllows:
    def test_a_batch_above_max_message_bytes_is_too_large(
        self, client: WireClient, make_topic: MakeTopic
    ) -> None:
        topic = make_topic(max_message_bytes="500")
        exact = batch(bytes(500 - len(batch(b"")) - 2))  # two lengths grow by a byte
        assert len(exact) == 500
        assert produce(client, topic, exact).error_code == 0
        answer = produce(client, topic, batch(bytes(500)))
        assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert answer.error_message is not None
        assert "max.message.bytes=500" in answer.error_message

    def test_a_compacted_topic_wants_keys(self, client: WireClient, make_topic: MakeTopic) -> None:
        topic = make_topic(cleanup_policy="compact")
        assert produce(client, topic, batch(b"keyless")).error_code == ErrorCode.INVALID_RECORD
        assert produce(client, topic, batch(b"value", key=b"key")).error_code == 0
        assert produce(client, topic, batch(None, key=b"key")).error_code == 0

    @pytest.mark.parametrize("version", [2, 3, 12])
    def test_log_append_time_is_stamped_and_answered(
        self, client: WireClient, make_topic: MakeTopic, version: int
    ) -> None:
        topic = make_topic(message_timestamp_type="LogAppendTime")
        before = now_ms()
        data = message_set(b"a", b"b") if version < 3 else batch(b"a", b"b", timestamp=1_000)
        answer = produce(client, topic, data, version=version)
        assert answer.error_code == 0
        assert before <= answer.log_append_time_ms <= now_ms()
        stored = RecordBatch(memoryview(record_bytes(fetch(client, topic))))
        stored.check()
        assert stored.attributes & ATTRIBUTE_LOG_APPEND_TIME
        assert stored.max_timestamp == answer.log_append_time_ms
        assert {record.timestamp for record in stored.records(limit=1 << 20)} == {answer.log_append_time_ms}

    def test_a_time_too_far_ahead_is_an_invalid_timestamp(self, client: WireClient, topic: str) -> None:
        answer = produce(client, topic, batch(b"x", timestamp=now_ms() + 2 * 3_600_000))
        assert answer.error_code == ErrorCode.INVALID_TIMESTAMP

    def test_the_server_writes_its_leader_epoch_into_the_batch(
        self, broker: Broker, client: WireClient, topic: str
    ) -> None:
        produce(client, topic, batch(b"x"))
        stored = RecordBatch(memoryview(record_bytes(fetch(client, topic))))
        assert stored.leader_epoch == partition_of(broker, topic).leader_epoch
        stored.check()


class TestIdempotentProducers:
    def send(
        self, client: WireClient, topic: str, sequence: int, *values: bytes, epoch: int = 0, pid: int = 77
    ) -> tuple[int, int]:
        data = batch(*(values or (b"x",)), producer_id=pid, epoch=epoch, sequence=sequence, timestamp=1)
        answer = produce(client, topic, data)
        return answer.error_code, answer.base_offset

    def test_a_duplicate_is_answered_with_its_first_offset_and_not_appended(
        self, client: WireClient, topic: str
    ) -> None:
        for sequence in range(5):
            assert self.send(client, topic, sequence) == (0, sequence)
        for sequence in range(5):
            assert self.send(client, topic, sequence) == (0, sequence)
        assert list_offset(client, topic, LATEST).offset == 5
        assert self.send(client, topic, 5) == (0, 5)

    def test_a_duplicate_of_several_records_names_its_first(self, client: WireClient, topic: str) -> None:
        assert self.send(client, topic, 0, b"a", b"b", b"c") == (0, 0)
        assert self.send(client, topic, 3, b"d", b"e") == (0, 3)
        assert self.send(client, topic, 0, b"a", b"b", b"c") == (0, 0)

    def test_a_batch_older_than_the_last_five_is_out_of_order(self, client: WireClient, topic: str) -> None:
        for sequence in range(7):
            self.send(client, topic, sequence)
        assert self.send(client, topic, 1) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert self.send(client, topic, 2) == (0, 2)

    def test_a_gap_is_out_of_order(self, client: WireClient, topic: str) -> None:
        assert self.send(client, topic, 0) == (0, 0)
        assert self.send(client, topic, 2) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert self.send(client, topic, 1) == (0, 1)

    def test_a_producer_without_a_past_here_may_begin_anywhere(self, client: WireClient, topic: str) -> None:
        assert self.send(client, topic, 1_000) == (0, 0)
        assert self.send(client, topic, 1_001) == (0, 1)

    def test_a_new_epoch_begins_at_zero(self, client: WireClient, topic: str) -> None:
        assert self.send(client, topic, 0) == (0, 0)
        assert self.send(client, topic, 1, epoch=1) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert self.send(client, topic, 0, epoch=1) == (0, 1)

    def test_an_old_epoch_is_fenced(self, client: WireClient, topic: str) -> None:
        assert self.send(client, topic, 0, epoch=3) == (0, 0)
        assert self.send(client, topic, 1, epoch=2) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)

    def test_the_sequence_wraps_to_zero(self, client: WireClient, topic: str) -> None:
        assert self.send(client, topic, 2**31 - 1) == (0, 0)
        assert self.send(client, topic, 0) == (0, 1)

    def test_pipelined_batches_are_taken_in_the_order_sent(self, client: WireClient, topic: str) -> None:
        sizes = (10, 300_000, 10, 400_000, 10)  # some are checked off the loop
        for sequence, size in enumerate(sizes):
            data = batch(bytes(size), producer_id=8, epoch=0, sequence=sequence)
            client.send(produce_request(topic, data), 9)
        answers = [client.receive(ProduceResponse).responses[0].partition_responses[0] for _ in sizes]
        assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, n) for n in range(5)]


@pytest.fixture(scope="module")
def offloading() -> Iterator[Broker]:
    with Broker({"barnabas.offload.bytes": "0"}) as running:
        running.create_topic("large", 2)
        yield running


@pytest.fixture
def far(offloading: Broker) -> Iterator[WireClient]:
    with WireClient(offloading.bootstrap_servers) as connected:
        yield connected


class TestLargeBatches:
    """Batches that take long to check are checked on a thread; nothing else may differ."""

    FILLING = bytes(20_000)

    def test_good_and_bad_partitions_are_answered_each(self, far: WireClient) -> None:
        request = ProduceRequest(
            acks=-1,
            timeout_ms=1_000,
            topic_data=[
                TopicProduceData(
                    name="large",
                    partition_data=[
                        PartitionProduceData(index=0, records=batch(self.FILLING)),
                        PartitionProduceData(index=5, records=batch(self.FILLING)),
                        PartitionProduceData(index=1, records=self.FILLING),
                    ],
                )
            ],
        )
        (answer,) = far.call(request, 9, ProduceResponse).responses
        assert [part.error_code for part in answer.partition_responses] == [
            0,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_RECORD,
        ]

    def test_acks_0_stays_silent(self, far: WireClient) -> None:
        before = list_offset(far, "large", LATEST).offset
        far.send(produce_request("large", batch(self.FILLING), acks=0), 9, answered=False)
        assert far.call(MetadataRequest(topics=[]), 9, MetadataResponse).topics == []
        assert list_offset(far, "large", LATEST).offset == before + 1

    def test_a_request_without_topics_is_answered(self, far: WireClient) -> None:
        assert far.call(ProduceRequest(acks=1, timeout_ms=1), 9, ProduceResponse).responses == []

    def test_requests_behind_it_keep_their_order(self, far: WireClient) -> None:
        start = list_offset(far, "large", LATEST).offset
        for _ in range(10):
            far.send(produce_request("large", batch(self.FILLING)), 9)
        for number in range(10):
            (answer,) = far.receive(ProduceResponse).responses
            assert answer.partition_responses[0].base_offset == start + number
        assert offsets(fetch(far, "large", start)) == list(range(start, start + 10))
