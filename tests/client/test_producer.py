"""Tests of the synchronous producer against a real broker (Apache Kafka too, see conftest)."""

import gc
import itertools
import threading
import time
from collections.abc import Iterator

import pytest

from barnabas.base.errors import ConfigFault, Misuse
from barnabas.client.admin import Admin
from barnabas.client.delivery import RecordMetadata
from barnabas.client.errors import (
    BufferFull,
    ClientClosed,
    DeliveryFailed,
    InvalidTopic,
    KafkaError,
    NoBrokersAvailable,
    RecordTooLarge,
    RequestTimedOut,
    Serialization,
    UnknownTopic,
)
from barnabas.client.hot import RecordFuture
from barnabas.client.interceptors import ProducerRecord
from barnabas.client.partitioners import choose_by_key
from barnabas.client.producer import Producer
from tests._kafka import free_ports
from tests.client._faulty import faulty_broker, read_all
from tests.client._kit import settings_for


@pytest.fixture
def producer(bootstrap: str) -> Iterator[Producer]:
    with Producer(settings_for(bootstrap)) as opened:
        yield opened


class TestTheThreeWaysToSend:
    def test_and_wait(self, producer: Producer, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1)
        before = int(time.time() * 1000)
        metadata = producer.send(topic, b"value", b"key").result(10)
        assert metadata[:3] == (topic, 0, 0)
        assert before <= metadata.timestamp <= before + 60_000
        assert (metadata.serialized_key_size, metadata.serialized_value_size) == (3, 5)

    def test_with_a_callback(self, producer: Producer, topic: str, bootstrap: str, admin: Admin) -> None:
        admin.create_topic(topic, 1)
        seen: list[tuple[RecordMetadata, KafkaError | None]] = []
        for _ in range(3):
            producer.send(topic, b"v", on_delivery=lambda metadata, error: seen.append((metadata, error)))
        producer.flush(10)
        assert [(metadata.offset, error) for metadata, error in seen] == [(0, None), (1, None), (2, None)]

    def test_and_forget(self, topic: str, bootstrap: str, admin: Admin) -> None:
        admin.create_topic(topic, 1)
        with Producer(settings_for(bootstrap)) as producer:
            for number in range(100):
                producer.send(topic, b"%d" % number)
        assert read_all(bootstrap, topic, 1, 100)[0] == [b"%d" % number for number in range(100)]


class TestPlacing:
    def test_keys_and_named_partitions(self, producer: Producer, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 5)
        for key in (b"a", b"bb", "text", b"\0" * 50):
            encoded = key.encode() if isinstance(key, str) else key
            assert producer.send(topic, b"", key).result(10).partition == choose_by_key(encoded, 5)
        assert producer.send(topic, b"", b"a", partition=4).result(10).partition == 4

    def test_without_a_key_records_stay_together_and_move_on(
        self, bootstrap: str, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 3)
        with Producer(settings_for(bootstrap, batch_size=1_000, linger_ms=100)) as producer:
            futures = [producer.send(topic, b"x" * 100) for _ in range(200)]
            producer.flush(10)
            placed = [future.result().partition for future in futures]
        changes = sum(one != two for one, two in itertools.pairwise(placed))
        assert set(placed) == {0, 1, 2}
        assert 10 < changes < 40

    def test_round_robin(self, bootstrap: str, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 3)
        with Producer(settings_for(bootstrap, partitioner_class="round_robin")) as producer:
            futures = [producer.send(topic, b"", b"same key") for _ in range(6)]
            assert [future.result(10).partition for future in futures] == [0, 1, 2, 0, 1, 2]

    def test_a_partitioner_of_one_s_own(self, bootstrap: str, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 3)
        settings = settings_for(
            bootstrap, partitioner_class=lambda t, key, value, count, available: count - 1
        )
        with Producer(settings) as producer:
            assert producer.send(topic, b"", b"k").result(10).partition == 2

    def test_partitions_are_told(self, producer: Producer, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 3)
        assert [each.index for each in producer.partitions_for(topic)] == [0, 1, 2]

    def test_partitions_that_are_added_are_found(self, producer: Producer, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1)
        producer.send(topic, b"").result(10)
        admin.create_partitions({topic: 3})
        assert producer.send(topic, b"", partition=2).result(10).partition == 2

    def test_partitions_that_are_not_there_are_refused(
        self, producer: Producer, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1)
        with pytest.raises(UnknownTopic, match="has no partition 9, only 0 to 0"):
            producer.send(topic, b"", partition=9)


class TestWhatTravels:
    @pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
    def test_every_codec(self, bootstrap: str, topic: str, admin: Admin, codec: str) -> None:
        admin.create_topic(topic, 1)
        with Producer(settings_for(bootstrap, compression_type=codec, linger_ms=50)) as producer:
            for number in range(300):
                producer.send(topic, b"value %d " % number * 5)
            producer.flush(10)
            assert (producer.metrics()["compression-rate-avg"] < 0.6) is (codec != "none")
        assert read_all(bootstrap, topic, 1, 300)[0] == [b"value %d " % number * 5 for number in range(300)]

    @pytest.mark.parametrize(("acks", "offset"), [("all", 0), (1, 0), (0, -1)])
    def test_every_acks(self, bootstrap: str, topic: str, admin: Admin, acks: object, offset: int) -> None:
        admin.create_topic(topic, 1)
        with Producer(settings_for(bootstrap, acks=acks)) as producer:
            assert producer.send(topic, b"v").result(10).offset == offset
        assert read_all(bootstrap, topic, 1, 1)[0] == [b"v"]

    def test_log_append_time(self, producer: Producer, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1, configs={"message.timestamp.type": "LogAppendTime"})
        assert producer.send(topic, b"v", timestamp_ms=5).result(10).timestamp > 1_600_000_000_000

    def test_the_given_time(self, producer: Producer, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1)
        assert producer.send(topic, b"v", timestamp_ms=12_345).result(10).timestamp == 12_345

    def test_a_batch_the_topic_finds_too_large_is_split(
        self, bootstrap: str, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1, configs={"max.message.bytes": "3000"})
        with Producer(settings_for(bootstrap, batch_size=100_000, linger_ms=200)) as producer:
            futures = [producer.send(topic, b"%03d" % number + b"x" * 500) for number in range(50)]
            producer.flush(20)
            assert [future.result().offset for future in futures] == list(range(50))
            assert producer.metrics()["batch-split-total"] > 0
        values = read_all(bootstrap, topic, 1, 50)[0]
        assert [value[:3] for value in values] == [b"%03d" % number for number in range(50)]

    def test_a_record_the_topic_finds_too_large_fails(
        self, producer: Producer, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1, configs={"max.message.bytes": "3000"})
        with pytest.raises(RecordTooLarge, match=f"{topic}-0"):
            producer.send(topic, b"x" * 5_000).result(10)
        assert producer.send(topic, b"small").result(10).offset == 0

    def test_interceptors_and_serializers(self, bootstrap: str, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1)
        outcomes: list[tuple[int, KafkaError | None]] = []

        class Stamp:
            def on_send(self, record: ProducerRecord) -> ProducerRecord:
                record.value = {**record.value, "stamped": True}
                return record

            def on_acknowledgement(self, metadata: RecordMetadata, error: KafkaError | None) -> None:
                outcomes.append((metadata.offset, error))

        class Broken:
            def on_send(self, record: ProducerRecord) -> ProducerRecord:
                raise ValueError("boom")

        settings = settings_for(bootstrap, value_serializer="json", interceptor_classes=[Stamp(), Broken()])
        with Producer(settings) as producer:
            producer.send(topic, {"a": 1}).result(10)
        assert read_all(bootstrap, topic, 1, 1)[0] == [b'{"a":1,"stamped":true}']
        assert outcomes == [(0, None)]


class TestWhatSendRefuses:
    def test_what_is_not_bytes(self, producer: Producer, topic: str) -> None:
        with pytest.raises(Serialization, match="the value of type dict cannot be serialized"):
            producer.send(topic, {})

    def test_a_name_no_topic_can_have(self, producer: Producer) -> None:
        with pytest.raises(InvalidTopic):
            producer.send("no such/name", b"")

    @pytest.mark.slow
    def test_a_topic_that_does_not_come(self) -> None:
        with faulty_broker({"auto.create.topics.enable": "false"}) as broker:
            settings = settings_for(broker.bootstrap_servers, max_block_ms=300)
            with Producer(settings) as producer, pytest.raises(UnknownTopic, match="'missing'"):
                producer.send("missing", b"")

    def test_a_topic_that_can_be_made_is(self, producer: Producer, topic: str) -> None:
        assert producer.send(topic, b"").result(10).offset == 0

    def test_a_closed_producer(self, bootstrap: str, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1)
        producer = Producer(settings_for(bootstrap))
        producer.send(topic, b"v")
        producer.close()
        producer.close()
        with pytest.raises(ClientClosed):
            producer.send(topic, b"v")
        with pytest.raises(ClientClosed):
            producer.flush()

    def test_a_wrong_setting(self) -> None:
        with pytest.raises(ConfigFault, match=r"did you mean linger\.ms"):
            Producer(bootstrap_servers="localhost:1", linger_mss=5)

    def test_no_broker(self) -> None:
        port = free_ports(1)[0]
        with pytest.raises(NoBrokersAvailable, match=f"127.0.0.1:{port}"):
            Producer(settings_for(f"127.0.0.1:{port}"))


class TestFlushAndClose:
    def test_flush_waits_for_everything_before_it(self, producer: Producer, topic: str) -> None:
        futures = [producer.send(topic, b"v") for _ in range(100)]
        producer.flush(10)
        assert all(future.done() for future in futures)

    def test_flush_of_nothing(self, producer: Producer) -> None:
        producer.flush(1)

    def test_a_batch_somebody_waits_for_does_not_linger(
        self, bootstrap: str, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1)
        with Producer(settings_for(bootstrap, linger_ms=60_000, request_timeout_ms=30_000)) as producer:
            assert producer.send(topic, b"v").result(10).offset == 0

    def test_records_that_failed_unseen_are_raised_once(
        self, producer: Producer, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1, configs={"max.message.bytes": "100"})
        for _ in range(3):
            producer.send(topic, b"x" * 500)
        with pytest.raises(DeliveryFailed, match=r"3 records were not delivered") as caught:
            producer.flush(10)
        assert caught.value.code.name == "MESSAGE_TOO_LARGE"
        producer.flush(10)

    def test_those_that_somebody_saw_are_not(self, producer: Producer, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1, configs={"max.message.bytes": "100"})
        errors: list[object] = []
        producer.send(topic, b"x" * 500, on_delivery=lambda metadata, error: errors.append(error))
        future = producer.send(topic, b"x" * 500)
        assert isinstance(future.exception(10), RecordTooLarge)
        producer.flush(10)
        assert [type(error) for error in errors] == [RecordTooLarge]

    def test_the_end_of_a_block_raises_them(self, bootstrap: str, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1, configs={"max.message.bytes": "100"})
        with (
            pytest.raises(DeliveryFailed, match="1 record was not delivered"),
            Producer(settings_for(bootstrap)) as producer,
        ):
            producer.send(topic, b"x" * 500)

    def test_but_not_over_the_block_s_own_error(self, bootstrap: str, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1, configs={"max.message.bytes": "100"})

        def send_and_fail() -> None:
            with Producer(settings_for(bootstrap)) as producer:
                producer.send(topic, b"x" * 500)
                raise ValueError("mine")

        with pytest.raises(ValueError, match="mine"):
            send_and_fail()

    def test_a_dropped_producer_says_what_is_lost(self, bootstrap: str, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1)

        def drop() -> None:
            producer = Producer(settings_for(bootstrap, linger_ms=60_000))
            producer.send(topic, b"v")
            producer.send(topic, b"v")
            del producer
            gc.collect()

        with pytest.warns(ResourceWarning, match=r"dropped without close\(\): 2 records are lost"):
            drop()

    def test_metrics_count(self, producer: Producer, topic: str) -> None:
        for _ in range(10):
            producer.send(topic, b"v")
        producer.flush(10)
        found = producer.metrics()
        assert found["record-send-total"] - found["record-retry-total"] == 10
        assert found["buffer-available-bytes"] == found["buffer-total-bytes"]
        assert found["request-latency-avg"] >= 0


class TestTheBuffer:
    @pytest.mark.slow
    def test_a_full_one_is_waited_for_and_then_named(self) -> None:
        with faulty_broker() as broker:
            broker.broker.create_topic("t", 1)
            settings = settings_for(
                broker.bootstrap_servers, buffer_memory=40_000, batch_size=10_000, max_block_ms=200
            )
            with Producer(settings) as producer:
                producer.send("t", b"first").result(10)
                broker.proxy.stall()

                def fill() -> None:
                    for _ in range(20):
                        producer.send("t", b"x" * 9_000)

                with pytest.raises(BufferFull, match=r"of 40000 bytes \(buffer\.memory\) wait"):
                    fill()
                assert producer.metrics()["waiting-threads"] == 0
                broker.proxy.resume()
                producer.flush(10)
                producer.send("t", b"x" * 9_000).result(10)

    @pytest.mark.slow
    def test_whoever_waits_goes_on_when_there_is_room(self, bootstrap: str, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1)
        settings = settings_for(bootstrap, buffer_memory=20_000, batch_size=5_000, linger_ms=60_000)
        with Producer(settings) as producer:
            for _ in range(300):
                producer.send(topic, b"x" * 1_000)
            producer.flush(10)
            assert producer.metrics()["record-send-total"] == 300

    @pytest.mark.slow
    def test_closing_sends_waiters_away(self) -> None:
        with faulty_broker() as broker:
            broker.broker.create_topic("t", 1)
            settings = settings_for(broker.bootstrap_servers, buffer_memory=20_000, batch_size=10_000)
            producer = Producer(settings)
            producer.send("t", b"first").result(10)
            broker.proxy.stall()
            caught: list[BaseException] = []

            def fill() -> None:
                try:
                    for _ in range(20):
                        producer.send("t", b"x" * 9_000)
                except ClientClosed as error:
                    caught.append(error)

            thread = threading.Thread(target=fill)
            thread.start()
            while producer.metrics()["waiting-threads"] == 0:
                thread.join(0.005)
            with pytest.raises(DeliveryFailed, match="2 records were not delivered"):
                producer.close(0)
            thread.join(10)
            assert len(caught) == 1
            broker.proxy.heal()


class TestCallbacksMayNotWait:
    def test_for_a_future_nor_for_a_flush(self, producer: Producer, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1)
        caught: list[BaseException] = []

        def callback(future: RecordFuture) -> None:
            for wait in (lambda: producer.send(topic, b"again").result(), producer.flush):
                try:
                    wait()
                except Misuse as error:
                    caught.append(error)

        first = producer.send(topic, b"v")
        first.add_done_callback(callback)
        first.result(10)
        producer.flush(10)
        assert len(caught) == 2


class TestThreads:
    @pytest.mark.slow
    def test_many_may_send_at_once(self, bootstrap: str, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 4)
        count, workers = 3_000, 8
        with Producer(settings_for(bootstrap, batch_size=2_000)) as producer:

            def run(worker: int) -> None:
                for number in range(count):
                    producer.send(topic, b"%d:%d" % (worker, number), partition=worker % 4)

            threads = [threading.Thread(target=run, args=(worker,)) for worker in range(workers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            producer.flush(30)
        found = read_all(bootstrap, topic, 4, workers * count)
        for worker in range(workers):
            mine = [value for value in found[worker % 4] if value.startswith(b"%d:" % worker)]
            assert mine == [b"%d:%d" % (worker, number) for number in range(count)]

    @pytest.mark.slow
    def test_flushes_from_many_threads(self, producer: Producer, topic: str) -> None:
        def run() -> None:
            for _ in range(20):
                future = producer.send(topic, b"v")
                producer.flush(10)
                assert future.done()

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = producer.metrics()
        assert found["record-send-total"] - found["record-retry-total"] == 80


class TestASilentBroker:
    @pytest.mark.slow
    def test_a_flush_with_a_limit_ends_and_the_records_arrive_later(self) -> None:
        with faulty_broker() as broker:
            broker.broker.create_topic("t", 1)
            with Producer(settings_for(broker.bootstrap_servers)) as producer:
                producer.send("t", b"first").result(10)
                broker.proxy.stall()
                future = producer.send("t", b"second")
                with pytest.raises(RequestTimedOut):
                    producer.flush(0.1)
                with pytest.raises(TimeoutError):
                    future.result(0.05)
                broker.proxy.resume()
                assert future.result(10).offset == 1
