"""Tests of the sender against a broker whose answers the test writes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from barnabas.base.types import ZERO_UUID
from barnabas.client.aio_producer import Producer
from barnabas.client.delivery import RecordMetadata
from barnabas.client.errors import (
    BadAnswer,
    ClientClosed,
    ClusterAuthorization,
    ConnectionLost,
    DeliveryFailed,
    RecordTooLarge,
    SendTimeout,
    UnsupportedByBroker,
)
from barnabas.client.hot import RecordFuture
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from barnabas.protocol.versions import Versions
from barnabas.records.batch import RecordBatch
from tests.client._fake import CUT, HOLD
from tests.client._kit import settings_for
from tests.client._produce_fake import Judge, ProduceFake, refuse
from tests.net._kit import until

Body = Callable[[ProduceFake, Producer], Awaitable[None]]


def run(body: Body, fake: Callable[[], ProduceFake] = ProduceFake, **settings: object) -> None:
    async def main() -> None:
        broker = fake()
        async with (
            broker,
            Producer(settings_for(broker.address, **{"linger.ms": 0, **settings})) as producer,
        ):
            await body(broker, producer)

    asyncio.run(main())


async def outcome(future: RecordFuture) -> RecordMetadata:
    return await asyncio.wait_for(asyncio.ensure_future(_awaited(future)), 10)


async def _awaited(future: RecordFuture) -> RecordMetadata:
    return await future


class TestARequest:
    def test_it_carries_a_batch_of_every_partition_that_is_due(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            futures = [await producer.send("t", b"%d" % index, partition=index) for index in range(3)]
            await producer.flush()
            assert len(broker.requests) == 1
            assert [len(topic.partition_data) for topic in broker.requests[0].topic_data] == [3]
            assert [(await future).partition for future in futures] == [0, 1, 2]

        run(body, lambda: ProduceFake(3), linger_ms=50)

    def test_records_of_one_batch_get_offsets_that_follow(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            futures = [await producer.send("t", b"%d" % number) for number in range(5)]
            assert [(await outcome(future)).offset for future in futures] == [0, 1, 2, 3, 4]
            assert broker.values() == [b"0", b"1", b"2", b"3", b"4"]

        run(body)

    def test_a_full_one_leaves_the_rest_for_the_next(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            for index in range(4):
                await producer.send("t", b"x" * 400, partition=index)
            await producer.flush()
            assert [len(request.topic_data[0].partition_data) for request in broker.requests] == [2, 2]

        run(body, lambda: ProduceFake(4), linger_ms=50, max_request_size=1_100, batch_size=1_000)

    def test_topics_with_an_id_go_by_it(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            await outcome(await producer.send("t", b"x"))
            assert broker.versions_of(ApiKey.PRODUCE) == [13]

        run(body)

    def test_without_an_id_they_go_by_name(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            await outcome(await producer.send("t", b"x"))
            assert broker.versions_of(ApiKey.PRODUCE) == [12]

        run(body, lambda: ProduceFake(topic_id=ZERO_UUID))

    @pytest.mark.parametrize("version", range(3, 14))
    def test_every_version_of_produce_works(self, version: int) -> None:
        def fake() -> ProduceFake:
            broker = ProduceFake()
            broker.offered[ApiKey.PRODUCE] = Versions(0, version)
            return broker

        async def body(broker: ProduceFake, producer: Producer) -> None:
            assert (await outcome(await producer.send("t", b"x"))).offset == 0
            assert broker.versions_of(ApiKey.PRODUCE) == [version]

        run(body, fake)

    def test_zstd_needs_a_broker_that_knows_it(self) -> None:
        def fake() -> ProduceFake:
            broker = ProduceFake()
            broker.offered[ApiKey.PRODUCE] = Versions(0, 6)
            return broker

        async def body(broker: ProduceFake, producer: Producer) -> None:
            with pytest.raises(UnsupportedByBroker, match="too old for zstd"):
                await outcome(await producer.send("t", b"x"))

        run(body, fake, compression_type="zstd")

    def test_with_acks_0_nothing_is_waited_for(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [HOLD]
            assert (await outcome(await producer.send("t", b"x"))).offset == -1
            await broker.wait_for(ApiKey.PRODUCE)
            assert broker.requests[0].acks == 0

        run(body, acks=0)


class TestInFlight:
    def test_no_more_than_the_limit_are_under_way(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            await outcome(await producer.send("t", b"the first goes alone"))
            broker.script = [HOLD] * 3
            futures = [await producer.send("t", b"x" * 400) for _ in range(6)]
            await broker.wait_for(ApiKey.PRODUCE, 3)
            for _ in range(5):
                await asyncio.sleep(0)
            assert broker.count(ApiKey.PRODUCE) == 3
            assert producer.metrics()["requests-in-flight"] == 2
            for number in range(1, 4):
                await broker.wait_for(ApiKey.PRODUCE, number + 1)
                broker.release(broker.judged(broker.requests[number], lambda partition, batch: None))
            await asyncio.gather(*(outcome(future) for future in futures))

        run(body, max_in_flight_requests_per_connection=2, batch_size=300)

    def test_the_first_batch_of_a_partition_goes_alone(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [refuse(6)]  # a leader that is none yet, as right after a topic was made
            futures = [await producer.send("t", b"%d" % number + b"x" * 400) for number in range(4)]
            assert [(await outcome(future)).offset for future in futures] == [0, 1, 2, 3]
            assert [value and value[:1] for value in broker.values()] == [b"0", b"1", b"2", b"3"]

        run(body, batch_size=300)

    def test_a_broker_that_throttles_is_left_alone(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.throttle_ms = 60
            loop = asyncio.get_running_loop()
            await outcome(await producer.send("t", b"x"))
            broker.throttle_ms = 0
            start = loop.time()
            await outcome(await producer.send("t", b"y"))
            assert loop.time() - start > 0.03  # the lower bound only: nothing may leave before
            assert producer.metrics()["produce-throttle-time-max"] == 60

        run(body)


def sequence_of(batch: RecordBatch) -> tuple[int, int, int]:
    return batch.producer_id, batch.producer_epoch, batch.base_sequence


class TestSequences:
    def test_every_batch_has_the_next_one(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            for _ in range(3):
                await outcome(await producer.send("t", b"x"))
            assert [sequence_of(batch) for batch in broker.batches[0]] == [
                (101, 0, 0),
                (101, 0, 1),
                (101, 0, 2),
            ]
            assert broker.ids == 1

        run(body)

    def test_without_idempotence_there_are_none(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            await outcome(await producer.send("t", b"x"))
            assert sequence_of(broker.batches[0][0]) == (-1, -1, -1)
            assert broker.count(ApiKey.INIT_PRODUCER_ID) == 0

        run(body, acks=1)

    def test_a_gap_that_is_real_raises_the_epoch(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            await outcome(await producer.send("t", b"a"))
            broker.script = [refuse(45)]
            assert (await outcome(await producer.send("t", b"b"))).offset == 1
            assert [sequence_of(batch) for batch in broker.batches[0]] == [(101, 0, 0), (101, 1, 0)]

        run(body)

    def test_so_does_a_broker_that_forgot_the_producer(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [refuse(59)]
            await outcome(await producer.send("t", b"b"))
            assert sequence_of(broker.batches[0][0]) == (101, 1, 0)

        run(body)

    def test_a_duplicate_counts_as_written_somewhere(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [refuse(46)]
            assert (await outcome(await producer.send("t", b"b"))).offset == -1

        run(body)

    def test_an_id_that_is_refused_fails_what_waits_for_it(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            answers = [31, 0]
            broker.responses[ApiKey.INIT_PRODUCER_ID] = lambda message: InitProducerIdResponse(
                error_code=answers.pop(0), producer_id=7
            )
            with pytest.raises(ClusterAuthorization, match="producer id: Not allowed on the cluster"):
                await outcome(await producer.send("t", b"x"))
            await outcome(await producer.send("t", b"y"))  # it is asked for again
            assert broker.values() == [b"y"]

        run(body)

    def test_an_id_is_asked_for_until_it_comes(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            answers = [14, 15, 0]
            broker.responses[ApiKey.INIT_PRODUCER_ID] = lambda message: InitProducerIdResponse(
                error_code=answers.pop(0), producer_id=7
            )
            await outcome(await producer.send("t", b"x"))
            assert sequence_of(broker.batches[0][0]) == (7, 0, 0)

        run(body)


class TestRepeats:
    @pytest.mark.parametrize("code", [2, 3, 5, 6, 7, 19, 20, 56, 100])
    def test_what_may_pass_is_sent_again_with_its_number(self, code: int) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [refuse(code)]
            assert (await outcome(await producer.send("t", b"x"))).offset == 0
            assert sequence_of(broker.batches[0][0]) == (101, 0, 0)
            assert broker.count(ApiKey.PRODUCE) == 2
            assert producer.metrics()["record-retry-total"] == 1

        run(body)

    def test_another_leader_is_asked_for(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            await outcome(await producer.send("t", b"x"))
            asked = broker.count(ApiKey.METADATA)
            broker.script = [refuse(6)]
            await outcome(await producer.send("t", b"x"))
            await broker.wait_for(ApiKey.METADATA, asked + 1)

        run(body)

    def test_a_partition_without_a_leader_waits_for_one(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.leader = -1
            future = await producer.send("t", b"x")
            asked = broker.count(ApiKey.METADATA)
            await broker.wait_for(ApiKey.METADATA, asked + 2)
            broker.leader = broker.node
            assert (await outcome(future)).offset == 0

        run(body)

    def test_a_cut_connection_is_one_more_try(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [CUT, CUT]
            assert (await outcome(await producer.send("t", b"x"))).offset == 0
            assert broker.count(ApiKey.PRODUCE) == 3

        run(body)

    def test_order_holds_when_the_first_of_several_fails(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            tail = 0

            def like_a_log(partition: int, batch: RecordBatch) -> PartitionProduceResponse | None:
                nonlocal tail
                if batch.base_sequence != tail:
                    return PartitionProduceResponse(error_code=45, base_offset=-1)
                tail += batch.record_count
                return None

            broker.script = [refuse(6), *[like_a_log] * 40]
            futures = [await producer.send("t", b"%d" % number + b"x" * 400) for number in range(8)]
            offsets = [(await outcome(future)).offset for future in futures]
            assert offsets == list(range(8))
            assert [sequence_of(batch)[1] for batch in broker.batches[0]] == [0] * 8

        run(body, batch_size=300)

    def test_retries_come_to_an_end(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [CUT] * 3
            with pytest.raises(ConnectionLost):
                await outcome(await producer.send("t", b"x"))
            assert broker.count(ApiKey.PRODUCE) == 3

        run(body, retries=2)

    def test_without_idempotence_too(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [refuse(6)]
            await outcome(await producer.send("t", b"x"))

        run(body, acks=1)

    def test_one_in_flight_keeps_the_order_without_idempotence(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [refuse(6), refuse(6), CUT]
            futures = [await producer.send("t", b"%d" % number + b"x" * 400) for number in range(5)]
            assert [(await outcome(future)).offset for future in futures] == list(range(5))

        run(body, acks=1, max_in_flight_requests_per_connection=1, batch_size=300)


class TestRefusals:
    def test_they_reach_the_future_with_the_broker_s_words(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [
                lambda partition, batch: PartitionProduceResponse(error_code=87, error_message="no key")
            ]
            with pytest.raises(DeliveryFailed, match=r"t-0: no key \(INVALID_RECORD\)") as caught:
                await outcome(await producer.send("t", b"x"))
            assert caught.value.code is ErrorCode.INVALID_RECORD
            assert producer.metrics()["record-error-total"] == 1

        run(body)

    def test_what_comes_after_starts_a_new_epoch(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [refuse(87)]
            with pytest.raises(DeliveryFailed):
                await outcome(await producer.send("t", b"x"))
            await outcome(await producer.send("t", b"y"))
            assert sequence_of(broker.batches[0][0]) == (101, 1, 0)

        run(body)

    def test_other_partitions_of_the_request_are_not_touched(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [
                lambda partition, batch: PartitionProduceResponse(error_code=87) if partition else None
            ]
            futures = [await producer.send("t", b"x", partition=index) for index in range(2)]
            assert (await outcome(futures[0])).offset == 0
            with pytest.raises(DeliveryFailed):
                await outcome(futures[1])

        run(body, lambda: ProduceFake(2), linger_ms=20)

    def test_an_answer_that_leaves_a_partition_out(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [ProduceResponse(responses=[])]
            with pytest.raises(BadAnswer, match="t-0: the broker's answer leaves it out"):
                await outcome(await producer.send("t", b"x"))

        run(body)


def at_most(records: int) -> Judge:
    return lambda partition, batch: (
        PartitionProduceResponse(error_code=10, base_offset=-1) if batch.record_count > records else None
    )


class TestTooLarge:
    def test_a_batch_is_split_until_it_fits_and_keeps_its_order(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [at_most(2)] * 30
            seen: list[int] = []
            futures = [
                await producer.send(
                    "t", b"%d" % n, on_delivery=lambda metadata, error: seen.append(metadata.offset)
                )
                for n in range(7)
            ]
            await producer.flush()
            assert broker.values() == [b"%d" % number for number in range(7)]
            assert [(await future).offset for future in futures] == list(range(7))
            assert seen == list(range(7))
            assert [batch.base_sequence for batch in broker.batches[0]] == sorted(
                batch.base_sequence for batch in broker.batches[0]
            )
            assert producer.metrics()["batch-split-total"] >= 2
            assert producer.metrics()["buffer-available-bytes"] == 33_554_432

        run(body, linger_ms=50)

    def test_one_record_that_is_too_large_alone_fails_alone(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            def small(partition: int, batch: RecordBatch) -> PartitionProduceResponse | None:
                too_large = PartitionProduceResponse(error_code=10, base_offset=-1)
                return too_large if batch.size_bytes > 300 else None

            broker.script = [small] * 30
            values = [b"a", b"b", b"x" * 500, b"c", b"d"]
            futures = [await producer.send("t", value) for value in values]
            results = await asyncio.gather(*(outcome(future) for future in futures), return_exceptions=True)
            assert [type(result) for result in results] == [
                RecordMetadata, RecordMetadata, RecordTooLarge, RecordMetadata, RecordMetadata
            ]  # fmt: skip
            assert broker.values() == [b"a", b"b", b"c", b"d"]

        run(body, linger_ms=50)


class TestGivingUp:
    def test_a_silent_broker_is_waited_for_as_long_as_the_delivery_may_take(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [HOLD] * 50
            with pytest.raises(
                SendTimeout, match=r"t-0: 1 records were not acknowledged within 300 ms"
            ) as caught:
                await outcome(await producer.send("t", b"x"))
            assert not caught.value.retriable

        run(body, request_timeout_ms=200, delivery_timeout_ms=300)

    def test_what_was_given_up_leaves_no_gap_behind(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [HOLD] * 2
            with pytest.raises(SendTimeout):
                await outcome(await producer.send("t", b"x"))
            broker.script = []
            await outcome(await producer.send("t", b"y"))
            assert sequence_of(broker.batches[0][-1])[1:] == (1, 0)

        run(body, request_timeout_ms=100, delivery_timeout_ms=150)

    def test_an_answer_that_comes_too_late_is_ignored(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [HOLD]
            future = await producer.send("t", b"x")
            with pytest.raises(SendTimeout):
                await outcome(future)
            broker.release(broker.judged(broker.requests[0], lambda partition, batch: None))
            await until(lambda: producer.metrics()["requests-in-flight"] == 0)
            assert isinstance(future.exception(), SendTimeout)

        run(body, request_timeout_ms=100, delivery_timeout_ms=100)

    def test_closing_with_no_time_fails_what_is_under_way(self) -> None:
        async def body(broker: ProduceFake, producer: Producer) -> None:
            broker.script = [HOLD]
            futures: list[Any] = [await producer.send("t", b"x")]
            await broker.wait_for(ApiKey.PRODUCE)
            futures.append(await producer.send("t", b"y"))
            futures[0].add_done_callback(lambda future: None)
            with pytest.raises(DeliveryFailed, match="1 record was not delivered"):
                await producer.close(0)
            for future in futures:
                assert isinstance(future.exception(), ClientClosed)

        run(body)
