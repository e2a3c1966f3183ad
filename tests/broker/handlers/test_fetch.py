"""barnabas.broker.handlers.fetch: what is read, how much of it, when, and for whom (WIRE 2.7)."""

import pytest

from barnabas.base.types import ZERO_UUID
from barnabas.log.producers import Origin
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.records.batch import HEADER_BYTES, RecordBatch, iter_batches
from barnabas.records.builder import end_txn_marker
from barnabas.records.codecs import Codec
from barnabas.records.legacy import read_message_set
from barnabas.testing import Broker
from tests.broker._calls import (
    READ_COMMITTED,
    batch,
    fetch,
    fetch_request,
    now_ms,
    offsets,
    only_partition,
    partition_of,
    produce,
    produce_request,
    record_bytes,
    topic_id_of,
    values,
)
from tests.broker._wire import WireClient, until
from tests.broker.conftest import MakeClient, MakeTopic

VERSIONS = range(19)
FOREVER_MS = 60_000
LATEST = -1


def several(
    *partitions: tuple[str, int, int], max_bytes: int = 1 << 20, per_partition: int = 1 << 20
) -> FetchRequest:
    """A fetch of (topic, partition, offset) in this order."""
    topics: list[FetchTopic] = []
    for topic, index, offset in partitions:
        if not topics or topics[-1].topic != topic:
            topics.append(FetchTopic(topic=topic))
        topics[-1].partitions.append(
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=per_partition)
        )
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, topics=topics)


def append_as_coordinator(broker: Broker, topic: str, data: bytes | bytearray) -> int:
    """What only a transaction can write: open it and end it, as the coordinator would."""
    partition = partition_of(broker, topic)

    async def append() -> int:
        return partition.append(
            memoryview(bytearray(data)), acks_all=False, now_ms=now_ms(), origin=Origin.COORDINATOR
        ).base_offset

    return broker.run(append())


def transactional(broker: Broker, topic: str, *rows: bytes, producer_id: int, sequence: int = 0) -> int:
    data = batch(*rows, producer_id=producer_id, epoch=0, sequence=sequence, transactional=True)
    return append_as_coordinator(broker, topic, data)


def marker(broker: Broker, topic: str, *, producer_id: int, committed: bool) -> int:
    data = end_txn_marker(
        committed=committed,
        coordinator_epoch=0,
        timestamp=now_ms(),
        producer_id=producer_id,
        producer_epoch=0,
    )
    return append_as_coordinator(broker, topic, data)


class TestEveryVersionIsServed:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_what_was_produced_is_read(
        self, broker: Broker, client: WireClient, topic: str, version: int
    ) -> None:
        produce(client, topic, batch(b"a", b"b", timestamp=5_000))
        topic_id = topic_id_of(broker, topic)
        request = fetch_request(topic, 0, topic_id=topic_id)
        response = client.call(request, version, FetchResponse)
        assert (response.throttle_time_ms, response.error_code, response.session_id) == (0, 0, 0)
        (answer,) = response.responses
        assert answer.topic == (topic if version < 13 else "")
        assert answer.topic_id == (topic_id if version >= 13 else ZERO_UUID)
        (part,) = answer.partitions
        assert (part.partition_index, part.error_code, part.high_watermark) == (0, 0, 2)
        assert part.last_stable_offset == (2 if version >= 4 else -1)
        assert part.log_start_offset == (0 if version >= 5 else -1)
        assert part.preferred_read_replica == -1
        assert part.diverging_epoch is None
        assert part.current_leader is None
        if version < 4:
            read = read_message_set(memoryview(record_bytes(part)), limit=1 << 20)
            rows = [(r.offset, r.value, r.timestamp) for r in read.records]
            time = 5_000 if version >= 2 else -1
            assert rows == [(0, b"a", time), (1, b"b", time)]
        else:
            assert values(part) == [b"a", b"b"]

    @pytest.mark.parametrize("version", VERSIONS)
    def test_an_empty_partition_has_empty_records_and_never_null_ones(
        self, broker: Broker, client: WireClient, topic: str, version: int
    ) -> None:
        part = fetch(client, topic, version=version, topic_id=topic_id_of(broker, topic))
        assert record_bytes(part) == b""
        assert (part.error_code, part.high_watermark) == (0, 0)

    @pytest.mark.parametrize("version", VERSIONS)
    def test_an_offset_outside_the_log_is_out_of_range_at_once(
        self, broker: Broker, client: WireClient, topic: str, version: int
    ) -> None:
        request = fetch_request(
            topic, 1, topic_id=topic_id_of(broker, topic), max_wait_ms=FOREVER_MS, min_bytes=1
        )
        part = only_partition(client.call(request, version, FetchResponse))
        assert part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert part.high_watermark == -1
        assert record_bytes(part) == b""

    @pytest.mark.parametrize("version", VERSIONS)
    def test_an_unknown_topic_is_told_at_once(self, client: WireClient, version: int) -> None:
        request = fetch_request("nowhere", 0, topic_id=b"\x07" * 16, max_wait_ms=FOREVER_MS, min_bytes=1)
        part = only_partition(client.call(request, version, FetchResponse))
        by_id = version >= 13
        expected = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert part.error_code == expected
        assert record_bytes(part) == b""

    def test_an_id_of_zero_is_unknown(self, client: WireClient) -> None:
        part = fetch(client, "", version=13, topic_id=ZERO_UUID)
        assert part.error_code == ErrorCode.UNKNOWN_TOPIC_ID

    def test_an_unknown_partition_of_a_known_topic(
        self, broker: Broker, client: WireClient, topic: str
    ) -> None:
        for version in (12, 13):
            part = fetch(client, topic, partition=3, version=version, topic_id=topic_id_of(broker, topic))
            assert (part.partition_index, part.error_code) == (3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def test_a_request_without_partitions_is_answered_at_once(self, client: WireClient) -> None:
        request = FetchRequest(max_wait_ms=FOREVER_MS, min_bytes=1)
        assert client.call(request, 12, FetchResponse).responses == []


class TestOffsets:
    def test_the_whole_batch_that_holds_the_offset_is_sent(self, client: WireClient, topic: str) -> None:
        produce(client, topic, batch(b"0", b"1", b"2"))
        produce(client, topic, batch(b"3", b"4"))
        assert offsets(fetch(client, topic, 1)) == [0, 1, 2, 3, 4]
        assert offsets(fetch(client, topic, 4)) == [3, 4]

    def test_the_end_of_the_log_is_empty_without_an_error(self, client: WireClient, topic: str) -> None:
        produce(client, topic, batch(b"0"))
        part = fetch(client, topic, 1)
        assert (part.error_code, record_bytes(part), part.high_watermark) == (0, b"", 1)

    @pytest.mark.parametrize("offset", [-1, 3, 2**62])
    def test_below_the_start_and_above_the_end_is_out_of_range(
        self, client: WireClient, topic: str, offset: int
    ) -> None:
        produce(client, topic, batch(b"0", b"1"))
        assert fetch(client, topic, offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


class TestLimits:
    @pytest.fixture
    def full(self, client: WireClient, make_topic: MakeTopic) -> str:
        """A topic of two partitions with three batches of a good 1,000 bytes in each."""
        topic = make_topic(2)
        for index in (0, 1):
            for _ in range(3):
                produce(client, topic, batch(bytes(1_000)), partition=index)
        return topic

    def sizes(self, client: WireClient, request: FetchRequest, version: int = 12) -> list[list[int]]:
        response = client.call(request, version, FetchResponse)
        return [offsets(part) for topic in response.responses for part in topic.partitions]

    @pytest.mark.parametrize("version", [3, 4, 12])
    def test_the_first_batch_comes_whole_however_small_the_limits(
        self, client: WireClient, full: str, version: int
    ) -> None:
        request = several((full, 0, 0), max_bytes=1, per_partition=1)
        part = only_partition(client.call(request, version, FetchResponse))
        assert len(record_bytes(part)) > 1_000

    @pytest.mark.parametrize("version", range(3))
    def test_so_it_does_for_readers_without_a_limit_for_the_whole(
        self, client: WireClient, full: str, version: int
    ) -> None:
        request = several((full, 0, 0), per_partition=1)
        part = only_partition(client.call(request, version, FetchResponse))
        assert len(record_bytes(part)) > 1_000

    def test_only_the_first_partition_with_data_may_break_the_limit(
        self, client: WireClient, full: str
    ) -> None:
        request = several((full, 0, 0), (full, 1, 0), max_bytes=1)
        assert self.sizes(client, request) == [[0], []]

    def test_an_empty_partition_before_it_does_not_use_the_exception_up(
        self, client: WireClient, full: str
    ) -> None:
        request = several((full, 0, 3), (full, 1, 0), max_bytes=1)
        assert self.sizes(client, request) == [[], [0]]

    def test_the_partition_limit_counts_whole_batches(self, client: WireClient, full: str) -> None:
        assert self.sizes(client, several((full, 0, 0), per_partition=2_500)) == [[0, 1]]

    def test_the_limit_of_the_whole_answer_counts_over_partitions(
        self, client: WireClient, full: str
    ) -> None:
        request = several((full, 0, 0), (full, 1, 0), max_bytes=4_700)
        assert self.sizes(client, request) == [[0, 1, 2], [0]]

    def test_partitions_are_served_in_the_order_asked(self, client: WireClient, full: str) -> None:
        request = several((full, 1, 0), (full, 0, 0), max_bytes=1)
        (topic,) = client.call(request, 12, FetchResponse).responses
        assert [(part.partition_index, offsets(part)) for part in topic.partitions] == [(1, [0]), (0, [])]

    def test_exactly_the_partitions_asked_for_are_answered(
        self, client: WireClient, full: str, topic: str
    ) -> None:
        response = client.call(several((topic, 0, 0), (full, 1, 0)), 12, FetchResponse)
        assert [(t.topic, [p.partition_index for p in t.partitions]) for t in response.responses] == [
            (topic, [0]),
            (full, [1]),
        ]

    @pytest.mark.slow
    def test_the_broker_has_a_limit_of_its_own(self, client: WireClient, make_topic: MakeTopic) -> None:
        with Broker({"fetch.max.bytes": "2500"}) as small, WireClient(small.bootstrap_servers) as reader:
            small.create_topic("t")
            for _ in range(4):
                produce(reader, "t", batch(bytes(1_000)))
            assert len(offsets(fetch(reader, "t"))) == 2


class TestWaiting:
    def test_an_empty_fetch_waits_for_its_time_and_comes_back_empty(
        self, client: WireClient, topic: str
    ) -> None:
        before = now_ms()
        request = fetch_request(topic, 0, max_wait_ms=60, min_bytes=1)
        part = only_partition(client.call(request, 12, FetchResponse))
        assert (part.error_code, record_bytes(part)) == (0, b"")
        assert now_ms() - before >= 50

    def test_a_produce_wakes_it(self, connect: MakeClient, topic: str) -> None:
        reader, writer = connect(), connect()
        reader.send(fetch_request(topic, 0, max_wait_ms=FOREVER_MS, min_bytes=1), 12)
        produce(writer, topic, batch(b"news"))
        assert values(only_partition(reader.receive(FetchResponse))) == [b"news"]

    def test_it_waits_for_min_bytes_over_all_partitions(
        self, broker: Broker, connect: MakeClient, make_topic: MakeTopic
    ) -> None:
        topic = make_topic(2)
        reader, writer = connect(), connect()
        request = several((topic, 0, 0), (topic, 1, 0))
        request.max_wait_ms, request.min_bytes = FOREVER_MS, 1_500
        reader.send(request, 12)
        produce(writer, topic, batch(bytes(1_000)))
        assert not reader.has_answer()
        produce(writer, topic, batch(bytes(1_000)), partition=1)
        (answer,) = reader.receive(FetchResponse).responses
        assert [len(offsets(part)) for part in answer.partitions] == [1, 1]

    def test_what_is_there_when_the_time_is_up_goes_out(self, client: WireClient, topic: str) -> None:
        produce(client, topic, batch(b"little"))
        request = fetch_request(topic, 0, max_wait_ms=30, min_bytes=100_000)
        assert values(only_partition(client.call(request, 12, FetchResponse))) == [b"little"]

    def test_a_request_with_nothing_to_wait_for_does_not_wait(self, client: WireClient, topic: str) -> None:
        request = fetch_request(topic, 0, max_wait_ms=FOREVER_MS, min_bytes=0)
        assert only_partition(client.call(request, 12, FetchResponse)).error_code == 0

    def test_an_error_in_one_partition_ends_the_wait_for_all(self, client: WireClient, topic: str) -> None:
        request = several((topic, 0, 0), (topic, 9, 0))
        request.max_wait_ms, request.min_bytes = FOREVER_MS, 1
        (answer,) = client.call(request, 12, FetchResponse).responses
        assert [part.error_code for part in answer.partitions] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    def test_a_deleted_topic_ends_the_wait(self, broker: Broker, client: WireClient, topic: str) -> None:
        client.send(fetch_request(topic, 0, max_wait_ms=FOREVER_MS, min_bytes=1), 12)
        assert broker.node is not None
        services = broker.node.services
        assert services is not None
        until(lambda: len(services.purgatory) > 0)
        broker.run(services.topics.delete(topic))
        part = only_partition(client.receive(FetchResponse))
        assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_an_answer_behind_it_ends_the_wait(self, client: WireClient, topic: str) -> None:
        """Answers keep their order, so offsets asked for behind a long poll would take all of its time."""
        produce(client, topic, batch(b"x"))
        client.send(fetch_request(topic, 1, max_wait_ms=FOREVER_MS, min_bytes=1), 12)
        asked = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(timestamp=LATEST)])
        client.send(ListOffsetsRequest(topics=[asked]), 9)
        part = only_partition(client.receive(FetchResponse))
        assert (part.error_code, part.high_watermark, record_bytes(part)) == (0, 1, b"")
        (answer,) = client.receive(ListOffsetsResponse).topics
        assert answer.partitions[0].offset == 1

    def test_an_answer_behind_it_brings_what_is_there_though_it_is_less_than_wanted(
        self, client: WireClient, topic: str
    ) -> None:
        produce(client, topic, batch(b"x"))
        client.send(fetch_request(topic, 0, max_wait_ms=FOREVER_MS, min_bytes=100_000), 12)
        client.send(MetadataRequest(topics=[]), 9)
        assert values(only_partition(client.receive(FetchResponse))) == [b"x"]
        assert client.receive(MetadataResponse).topics == []

    def test_an_answer_behind_several_ends_the_wait_of_all(self, client: WireClient, topic: str) -> None:
        client.send(fetch_request(topic, 0, max_wait_ms=FOREVER_MS, min_bytes=1), 12)
        client.send(fetch_request(topic, 0, max_wait_ms=FOREVER_MS, min_bytes=1), 12)
        client.send(MetadataRequest(topics=[]), 9)
        for _ in range(2):
            assert record_bytes(only_partition(client.receive(FetchResponse))) == b""
        assert client.receive(MetadataResponse).topics == []

    def test_a_fetch_behind_a_fetch_lets_it_wait(
        self, connect: MakeClient, topic: str, make_topic: MakeTopic
    ) -> None:
        """Else two long polls on one connection would chase each other without a pause."""
        reader, writer, quiet = connect(), connect(), make_topic()
        reader.send(fetch_request(quiet, 0, max_wait_ms=FOREVER_MS, min_bytes=1), 12)
        reader.send(fetch_request(topic, 0, max_wait_ms=FOREVER_MS, min_bytes=1), 12)
        assert not reader.has_answer()
        produce(writer, topic, batch(b"x"))
        assert record_bytes(only_partition(reader.receive(FetchResponse))) == b""
        assert values(only_partition(reader.receive(FetchResponse))) == [b"x"]

    def test_a_record_without_an_answer_behind_it_lets_it_wait(
        self, client: WireClient, topic: str, make_topic: MakeTopic
    ) -> None:
        client.send(fetch_request(topic, 0, max_wait_ms=FOREVER_MS, min_bytes=1), 12)
        client.send(produce_request(make_topic(), batch(b"y"), acks=0), 12, answered=False)
        assert not client.has_answer()

    def test_a_reader_that_went_away_harms_nobody(self, connect: MakeClient, topic: str) -> None:
        gone, writer = connect(), connect()
        gone.send(fetch_request(topic, 0, max_wait_ms=FOREVER_MS, min_bytes=1), 12)
        gone.close()
        assert produce(writer, topic, batch(b"x")).error_code == 0
        assert values(fetch(writer, topic)) == [b"x"]


class TestLeaderEpochs:
    @pytest.mark.parametrize("version", [9, 12, 16, 18])
    def test_an_older_epoch_is_fenced_and_a_newer_one_unknown(
        self, broker: Broker, client: WireClient, topic: str, version: int
    ) -> None:
        partition = partition_of(broker, topic)
        topic_id = topic_id_of(broker, topic)

        async def next_epoch() -> None:
            partition.lead(epoch=partition.leader_epoch + 1, replicas=[1], in_sync=[1], high_watermark=0)

        broker.run(next_epoch())
        for epoch, expected in (
            (0, ErrorCode.FENCED_LEADER_EPOCH),
            (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
            (1, 0),
            (-1, 0),
        ):
            response = client.call(
                fetch_request(topic, 0, topic_id=topic_id, leader_epoch=epoch), version, FetchResponse
            )
            part = only_partition(response)
            assert part.error_code == expected
            hinted = version >= 16 and expected == ErrorCode.FENCED_LEADER_EPOCH
            assert (part.current_leader is not None) is hinted
            assert [node.node_id for node in response.node_endpoints] == ([1] if hinted else [])

    def test_versions_without_epochs_are_not_asked(self, client: WireClient, topic: str) -> None:
        assert fetch(client, topic, version=8, leader_epoch=99).error_code == 0

    def test_an_epoch_that_ended_before_the_offset_diverges(
        self, broker: Broker, client: WireClient, topic: str
    ) -> None:
        produce(client, topic, batch(b"0"))
        partition = partition_of(broker, topic)

        async def next_epoch() -> None:
            partition.lead(epoch=1, replicas=[1], in_sync=[1], high_watermark=1)

        broker.run(next_epoch())
        produce(client, topic, batch(b"1"))
        request = fetch_request(topic, 2)
        request.topics[0].partitions[0].last_fetched_epoch = 0
        part = only_partition(client.call(request, 12, FetchResponse))
        assert part.diverging_epoch is not None
        assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (0, 1)
        assert record_bytes(part) == b""
        request.topics[0].partitions[0].last_fetched_epoch = 1
        assert only_partition(client.call(request, 12, FetchResponse)).diverging_epoch is None


class TestTransactions:
    """Transactions of producers are written here as a coordinator would."""

    def test_readers_of_committed_data_stop_at_the_first_open_transaction(
        self, broker: Broker, client: WireClient, topic: str
    ) -> None:
        produce(client, topic, batch(b"free"))
        transactional(broker, topic, b"open", producer_id=1)
        produce(client, topic, batch(b"behind"))
        committed = fetch(client, topic, isolation=READ_COMMITTED)
        assert (committed.high_watermark, committed.last_stable_offset) == (3, 1)
        assert values(committed) == [b"free"]
        assert committed.aborted_transactions == []
        uncommitted = fetch(client, topic)
        assert (uncommitted.high_watermark, uncommitted.last_stable_offset) == (3, 1)
        assert values(uncommitted) == [b"free", b"open", b"behind"]

    def test_its_end_wakes_them(self, broker: Broker, client: WireClient, topic: str) -> None:
        transactional(broker, topic, b"open", producer_id=1)
        client.send(
            fetch_request(topic, 0, isolation=READ_COMMITTED, max_wait_ms=FOREVER_MS, min_bytes=1), 12
        )
        assert not client.has_answer()
        marker(broker, topic, producer_id=1, committed=True)
        part = only_partition(client.receive(FetchResponse))
        assert part.last_stable_offset == 2
        assert values(part)[0] == b"open"

    @pytest.mark.parametrize("version", range(4, 19))
    def test_aborted_transactions_are_named_to_readers_of_committed_data_only(
        self, broker: Broker, client: WireClient, topic: str, version: int
    ) -> None:
        for producer_id in (10, 11):
            transactional(broker, topic, b"gone", producer_id=producer_id)
        for producer_id in (11, 10):
            marker(broker, topic, producer_id=producer_id, committed=False)
        transactional(broker, topic, b"kept", producer_id=12)
        marker(broker, topic, producer_id=12, committed=True)
        topic_id = topic_id_of(broker, topic)
        part = fetch(client, topic, version=version, isolation=READ_COMMITTED, topic_id=topic_id)
        assert part.aborted_transactions is not None
        assert sorted((t.producer_id, t.first_offset) for t in part.aborted_transactions) == [
            (10, 0),
            (11, 1),
        ]
        plain = fetch(client, topic, version=version, topic_id=topic_id)
        assert not plain.aborted_transactions

    def test_those_before_the_fetched_range_are_left_out(
        self, broker: Broker, client: WireClient, topic: str
    ) -> None:
        transactional(broker, topic, b"gone", producer_id=10)
        marker(broker, topic, producer_id=10, committed=False)
        transactional(broker, topic, b"gone too", producer_id=10, sequence=1)
        marker(broker, topic, producer_id=10, committed=False)
        part = fetch(client, topic, 2, isolation=READ_COMMITTED)
        assert part.aborted_transactions == [AbortedTransaction(producer_id=10, first_offset=2)]


class TestOldReaders:
    @pytest.mark.parametrize("version", range(4))
    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
    def test_batches_become_messages_of_their_magic(
        self, client: WireClient, topic: str, version: int, codec: Codec
    ) -> None:
        words = [b"word" * 20, None, b""]
        produce(client, topic, batch(*words, codec=codec, key=b"k" * 30, timestamp=1_234))
        produce(client, topic, batch(b"last", timestamp=1_234))
        read = read_message_set(
            memoryview(record_bytes(fetch(client, topic, version=version))), limit=1 << 20
        )
        time = 1_234 if version >= 2 else -1
        assert [(r.offset, r.value, r.timestamp) for r in read.records] == [
            *((offset, word, time) for offset, word in enumerate(words)),
            (3, b"last", time),
        ]

    @pytest.mark.parametrize("version", range(4))
    def test_records_below_the_offset_are_left_out_of_plain_batches(
        self, client: WireClient, topic: str, version: int
    ) -> None:
        produce(client, topic, batch(b"0", b"1", b"2"))
        part = fetch(client, topic, 2, version=version)
        read = read_message_set(memoryview(record_bytes(part)), limit=1 << 20)
        assert [(r.offset, r.value) for r in read.records] == [(2, b"2")]

    @pytest.mark.parametrize("version", range(4))
    def test_they_read_on_past_control_batches_which_they_cannot_see(
        self, broker: Broker, client: WireClient, topic: str, version: int
    ) -> None:
        transactional(broker, topic, b"first", producer_id=5)
        for _ in range(3):
            marker(broker, topic, producer_id=5, committed=True)
        produce(client, topic, batch(b"second"))
        request = fetch_request(topic, 1, partition_max_bytes=1)
        part = only_partition(client.call(request, version, FetchResponse))
        read = read_message_set(memoryview(record_bytes(part)), limit=1 << 20)
        assert [(r.offset, r.value) for r in read.records] == [(4, b"second")]

    def test_only_control_batches_to_the_end_are_nothing_to_read(
        self, broker: Broker, client: WireClient, topic: str
    ) -> None:
        transactional(broker, topic, b"first", producer_id=5)
        marker(broker, topic, producer_id=5, committed=True)
        part = fetch(client, topic, 1, version=2)
        assert (part.error_code, record_bytes(part)) == (0, b"")

    @pytest.mark.parametrize("version", range(4))
    def test_zstd_cannot_be_given_to_readers_of_messages(
        self, client: WireClient, topic: str, version: int
    ) -> None:
        produce(client, topic, batch(b"z" * 300, codec=Codec.ZSTD))
        part = fetch(client, topic, version=version)
        assert part.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert record_bytes(part) == b""

    @pytest.mark.parametrize("version", range(1, 13))
    def test_a_topic_kept_in_zstd_is_refused_before_version_10(
        self, client: WireClient, make_topic: MakeTopic, version: int
    ) -> None:
        topic = make_topic(compression_type="zstd")
        produce(client, topic, batch(b"z" * 300))
        part = fetch(client, topic, version=version)
        assert part.error_code == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if version < 10 else 0)

    def test_a_headers_loss_is_all_that_happens_to_them(self, client: WireClient, topic: str) -> None:
        produce(client, topic, batch(b"v", key=b"k"))
        stored = fetch(client, topic)
        (kept,) = iter_batches(memoryview(record_bytes(stored)))
        assert kept.size_bytes == len(record_bytes(stored)) > HEADER_BYTES
        assert RecordBatch(memoryview(record_bytes(stored))).record_count == 1


def test_a_large_answer_leaves_whole(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes="4000000")
    for number in range(3):
        assert produce(client, topic, batch(bytes([number]) * 1_500_000)).error_code == 0
    request = fetch_request(topic, 0, max_bytes=1 << 26, partition_max_bytes=1 << 26)
    got = values(only_partition(client.call(request, 12, FetchResponse)))
    assert got == [bytes([number]) * 1_500_000 for number in range(3)]
