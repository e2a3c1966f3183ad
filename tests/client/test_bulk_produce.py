"""Tests of the producer of ready batches, against a real broker (Apache Kafka too, see conftest)."""

from collections.abc import Callable, Iterator

import pytest

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.bulk_produce import BulkProducer, ReadyBatch
from barnabas.client.errors import (
    ClientClosed,
    KafkaError,
    ProducerFenced,
    SendFailed,
    TransactionAborted,
    UnknownTopic,
)
from barnabas.client.producer_batch import Compression, Identity
from barnabas.records.batch import RecordBatch, patch_batch, stamp_log_append_time
from barnabas.records.builder import build_batch, end_txn_marker
from barnabas.records.codecs import Codec
from barnabas.records.errors import CorruptBatch, InvalidRecord
from tests.client._consumers import consumer_of, read
from tests.client._faulty import faulty_broker
from tests.client._kit import KEPT, settings_for

Make = Callable[..., BulkProducer]
NOW = 1_760_000_000_000


@pytest.fixture
def make(bootstrap: str) -> Iterator[Make]:
    """Opens producers, and closes them."""
    opened: list[BulkProducer] = []

    def open_one(transactional_id: str | None = None, **more: object) -> BulkProducer:
        producer = BulkProducer(settings_for(bootstrap, **more), transactional_id=transactional_id)
        opened.append(producer)
        return producer

    yield open_one
    for producer in opened:
        producer.close()


@pytest.fixture
def topics(admin: Admin, name: Callable[[str], str]) -> Callable[[int], str]:
    def create(partitions: int = 1) -> str:
        made = name("bulk")
        admin.create_topic(made, partitions=partitions, configs=KEPT)
        return made

    return create


def batch_of(*values: bytes, codec: Codec = Codec.NONE) -> bytearray:
    return build_batch([(NOW + n, b"k", value, ()) for n, value in enumerate(values)], codec=codec)


def values_of(bootstrap: str, topic: str, count: int, *, partition: int = 0) -> list[bytes | None]:
    """The first committed values of a partition."""
    with consumer_of(bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, partition)])
        return [record.value for record in read(consumer, count)]


class TestSending:
    def test_batches_arrive_once_and_in_order(
        self, bootstrap: str, make: Make, topics: Callable[[int], str]
    ) -> None:
        topic = topics(2)
        with make() as producer:
            for number in range(40):
                for partition in range(2):
                    producer.send(topic, partition, batch_of(b"%d" % number, b"%d'" % number))
        expected = [value for number in range(40) for value in (b"%d" % number, b"%d'" % number)]
        for partition in range(2):
            assert values_of(bootstrap, topic, 80, partition=partition) == expected

    @pytest.mark.parametrize("codec", list(Codec))
    def test_a_batch_of_any_codec_and_from_any_log_is_taken(
        self, bootstrap: str, make: Make, topics: Callable[[int], str], codec: Codec
    ) -> None:
        topic = topics(1)
        data = build_batch(
            [(NOW + n, b"key", b"value" * 40, (("h", b"1"),)) for n in range(3)],
            codec=codec,
            producer_id=77,
            producer_epoch=5,
            base_sequence=900,
            transactional=True,
        )
        patch_batch(data, 0, 123_456, 9)
        stamp_log_append_time(data, 0, NOW + 1000)
        with make() as producer:
            producer.send(topic, 0, memoryview(bytes(data)))
        with consumer_of(bootstrap) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            records = read(consumer, 3)
        assert [(r.offset, r.timestamp, r.key, r.value) for r in records] == [
            (n, NOW + n, b"key", b"value" * 40) for n in range(3)
        ]

    def test_what_is_no_batch_is_refused_before_anything_is_sent(
        self, make: Make, topics: Callable[[int], str]
    ) -> None:
        topic = topics(1)
        whole = batch_of(b"a", b"b")
        gapped = bytearray(whole)
        gapped[57:61] = (1).to_bytes(4, "big")
        marker = end_txn_marker(
            producer_id=1, producer_epoch=0, committed=True, coordinator_epoch=0, timestamp=NOW
        )
        with make() as producer:
            with pytest.raises(CorruptBatch, match="61 bytes"):
                producer.send(topic, 0, b"short")
            with pytest.raises(CorruptBatch, match="not one batch"):
                producer.send(topic, 0, whole + whole)
            with pytest.raises(InvalidRecord, match="1 of 2 are left"):
                producer.send(topic, 0, gapped)
            with pytest.raises(InvalidRecord, match="control batch"):
                producer.send(topic, 0, marker)
            with pytest.raises(UnknownTopic, match="has no partition 1, only 0 to 0"):
                producer.send(topic, 1, whole)
            with pytest.raises(Misuse, match="no transactional id"):
                producer.begin()

    def test_a_batch_that_the_broker_refuses_fails_the_next_call(
        self, admin: Admin, make: Make, name: Callable[[str], str]
    ) -> None:
        topic = name("small")
        admin.create_topic(topic, partitions=1, configs={"max.message.bytes": "200"})
        with make() as producer:
            producer.send(topic, 0, batch_of(b"x" * 1000))
            with pytest.raises(SendFailed, match="1 record was not delivered"):
                producer.flush()
            producer.flush()

    def test_a_batch_too_large_for_the_broker_goes_in_parts(
        self, bootstrap: str, admin: Admin, make: Make, name: Callable[[str], str]
    ) -> None:
        topic = name("small")
        admin.create_topic(topic, partitions=1, configs={"max.message.bytes": "3000", **KEPT})
        values = [b"%03d" % n + b"x" * 500 for n in range(16)]
        with make() as producer:
            producer.send(topic, 0, batch_of(*values))
            producer.send(topic, 0, batch_of(b"last"))
        assert values_of(bootstrap, topic, 17) == [*values, b"last"]

    def test_more_than_the_buffer_holds_is_sent_all_the_same(
        self, bootstrap: str, make: Make, topics: Callable[[int], str]
    ) -> None:
        topic = topics(1)
        with make(buffer_memory=5000) as producer:
            for number in range(20):
                producer.send(topic, 0, batch_of(b"%d" % number + b"x" * (9000 if number == 7 else 900)))
        assert [v and v.rstrip(b"x") for v in values_of(bootstrap, topic, 20)] == [
            b"%d" % n for n in range(20)
        ]

    def test_a_closed_producer_says_so(self, make: Make, topics: Callable[[int], str]) -> None:
        topic = topics(1)
        producer = make()
        producer.close()
        producer.close()
        with pytest.raises(ClientClosed):
            producer.send(topic, 0, batch_of(b"x"))

    def test_the_partitions_of_a_topic_are_counted(self, make: Make, topics: Callable[[int], str]) -> None:
        assert make().partitions_for(topics(3)) == 3

    def test_brokers_of_today_offer_transactions(self, make: Make) -> None:
        assert make().offers_transactions()


class TestTransactions:
    def test_batches_and_offsets_are_committed_together(
        self, bootstrap: str, make: Make, topics: Callable[[int], str], name: Callable[[str], str]
    ) -> None:
        topic, group = topics(2), name("group")
        producer = make(name("txn"))
        assert producer.committed(group, topic, 0) is None
        for number in range(3):
            producer.begin()
            producer.send(topic, 0, batch_of(b"a%d" % number))
            producer.send(topic, 1, batch_of(b"b%d" % number))
            producer.send_offsets(group, {TopicPartition(topic, 0): (number + 1, f"note {number}")})
            producer.commit()
        assert producer.committed(group, topic, 0) == (3, "note 2")
        assert values_of(bootstrap, topic, 3) == [b"a0", b"a1", b"a2"]
        assert values_of(bootstrap, topic, 3, partition=1) == [b"b0", b"b1", b"b2"]

    def test_what_is_aborted_is_not_seen(
        self, bootstrap: str, make: Make, topics: Callable[[int], str], name: Callable[[str], str]
    ) -> None:
        topic, group = topics(1), name("group")
        producer = make(name("txn"))
        producer.begin()
        producer.send(topic, 0, batch_of(b"never"))
        producer.send_offsets(group, {TopicPartition(topic, 0): (9, "")})
        producer.flush()
        producer.abort()
        assert producer.committed(group, topic, 0) is None
        producer.begin()
        producer.send(topic, 0, batch_of(b"seen"))
        producer.commit()
        assert values_of(bootstrap, topic, 1) == [b"seen"]

    def test_opening_takes_the_id_over_and_aborts_what_was_open(
        self, bootstrap: str, make: Make, topics: Callable[[int], str], name: Callable[[str], str]
    ) -> None:
        topic, group, txn = topics(1), name("group"), name("txn")
        first = make(txn)
        first.begin()
        first.send(topic, 0, batch_of(b"zombie"))
        first.send_offsets(group, {TopicPartition(topic, 0): (1, "zombie")})
        first.flush()
        second = make(txn)
        assert second.committed(group, topic, 0) is None
        second.begin()
        second.send(topic, 0, batch_of(b"heir"))
        with pytest.raises(KafkaError) as caught:
            first.commit()
        assert isinstance(caught.value, ProducerFenced | TransactionAborted)
        assert not caught.value.retriable
        second.commit()
        assert values_of(bootstrap, topic, 1) == [b"heir"]

    def test_a_producer_that_was_kept_takes_the_id_back(
        self, bootstrap: str, make: Make, topics: Callable[[int], str], name: Callable[[str], str]
    ) -> None:
        topic, txn = topics(1), name("txn")
        kept, other = make(txn), make(txn)
        other.begin()
        other.send(topic, 0, batch_of(b"other"))
        other.commit()
        other.begin()
        other.send(topic, 0, batch_of(b"aborted"))
        other.flush()
        kept.take_over()
        kept.begin()
        with pytest.raises(Misuse, match="has a transaction open"):
            kept.take_over()
        kept.send(topic, 0, batch_of(b"kept"))
        kept.commit()
        with pytest.raises(KafkaError):
            other.commit()
        assert values_of(bootstrap, topic, 2) == [b"other", b"kept"]

    def test_a_refused_batch_fails_the_commit_and_nothing_is_seen(
        self, bootstrap: str, admin: Admin, make: Make, name: Callable[[str], str]
    ) -> None:
        topic = name("small")
        admin.create_topic(topic, partitions=1, configs={"max.message.bytes": "300", **KEPT})
        producer = make(name("txn"))
        producer.begin()
        producer.send(topic, 0, batch_of(b"good"))
        producer.send(topic, 0, batch_of(b"x" * 1000))
        with pytest.raises(TransactionAborted, match="MESSAGE_TOO_LARGE"):
            producer.commit()
        with pytest.raises(TransactionAborted):
            producer.send(topic, 0, batch_of(b"later"))
        producer.abort()
        producer.begin()
        producer.send(topic, 0, batch_of(b"after"))
        producer.commit()
        assert values_of(bootstrap, topic, 1) == [b"after"]

    def test_closing_aborts(
        self, bootstrap: str, make: Make, topics: Callable[[int], str], name: Callable[[str], str]
    ) -> None:
        topic, txn = topics(1), name("txn")
        with make(txn) as left:
            left.begin()
            left.send(topic, 0, batch_of(b"left"))
        producer = make(txn)
        producer.begin()
        producer.send(topic, 0, batch_of(b"kept"))
        producer.commit()
        assert values_of(bootstrap, topic, 1) == [b"kept"]


class TestReadyBatch:
    def test_a_new_number_changes_other_bytes_than_those_that_were_sent(self) -> None:
        ready = ReadyBatch("t", 0, NOBODY, batch_of(b"a"), 1, number=(1,), reserved=0, now_ms=0)
        ready.set_sequence(Identity(7, 1), 10)
        first = ready.seal(Compression(), is_transactional=True)
        before = bytes(first)
        assert ready.seal(Compression(), is_transactional=True) is first
        ready.set_sequence(Identity(7, 2), 0)
        second = ready.seal(Compression(), is_transactional=True)
        assert bytes(first) == before
        with memoryview(second) as view:
            batch = RecordBatch(view)
            batch.check()
            batch.check_produced()
            assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 2, 0)
            assert batch.is_transactional


class _Nobody:
    def hasten(self, batch: object) -> None: ...
    def hasten_soon(self, batch: object) -> None: ...


NOBODY = _Nobody()


@pytest.mark.slow
def test_connections_that_break_anywhere_neither_lose_nor_double_a_batch() -> None:
    with faulty_broker() as broker:
        broker.broker.create_topic("t", config=KEPT)
        settings = settings_for(broker.bootstrap_servers)
        with BulkProducer(settings, transactional_id="x") as producer:
            for number in range(30):
                broker.proxy.cut_after(3000 + 97 * number)
                producer.begin()
                for part in range(4):
                    producer.send("t", 0, batch_of(b"%d.%d" % (number, part)))
                producer.send_offsets("g", {TopicPartition("t", 0): (number, "")})
                producer.commit()
            broker.proxy.heal()
            assert producer.committed("g", "t", 0) == (29, "")
        values = values_of(broker.direct, "t", 120)
    assert values == [b"%d.%d" % (number, part) for number in range(30) for part in range(4)]


@pytest.mark.slow
def test_a_broker_that_restarts_under_it_gets_every_batch_once() -> None:
    with faulty_broker() as broker:
        broker.broker.create_topic("t", config=KEPT)
        with BulkProducer(settings_for(broker.bootstrap_servers)) as producer:
            for number in range(60):
                if number in (20, 40):
                    broker.restart()
                producer.send("t", 0, batch_of(b"%d" % number))
        values = values_of(broker.direct, "t", 60)
    assert values == [b"%d" % number for number in range(60)]
