"""Fetching when brokers answer with errors, move, redirect, or send what is wrong."""

import asyncio

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.aio_consumer import Consumer
from barnabas.client.errors import KafkaError, TopicAuthorization
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.versions import Versions
from barnabas.records.record import Record
from tests.client._log_broker import TOPIC, TOPIC_ID, LogBroker, Script, consumer_of, two_brokers
from tests.client._records import batch, values_of
from tests.net._kit import until

TP = TopicPartition(TOPIC, 0)


def script_of(*batches: list[bytes]) -> Script:
    script = Script()
    for values in batches:
        script.batches[script.end] = batch(list(values), base_offset=script.end)
        script.end += len(values)
    return script


async def read(consumer: Consumer, count: int) -> list[Record]:
    records: list[Record] = []
    async with asyncio.timeout(10):
        while len(records) < count:
            records += await consumer.poll(1, count - len(records))
    return records


class TestVersions:
    def test_newer_brokers_are_asked_by_topic_id(self) -> None:
        async def main() -> None:
            async with LogBroker(script_of([b"a"])) as broker, consumer_of(broker) as consumer:
                await consumer.assign([TP])
                assert values_of(await read(consumer, 1)) == [b"a"]
                assert broker.fetches()[0].topics[0].topic_id == TOPIC_ID

        asyncio.run(main())

    def test_older_brokers_are_asked_by_name(self) -> None:
        async def main() -> None:
            async with LogBroker(script_of([b"a"])) as broker:
                broker.offered[ApiKey.FETCH] = Versions(4, 11)
                broker.offered[ApiKey.METADATA] = Versions(0, 8)
                async with consumer_of(broker) as consumer:
                    await consumer.assign([TP])
                    assert values_of(await read(consumer, 1)) == [b"a"]
                assert broker.fetches()[0].topics[0].topic == TOPIC

        asyncio.run(main())


class TestErrors:
    @pytest.mark.parametrize(
        "code",
        [
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.KAFKA_STORAGE_ERROR,
            ErrorCode.OFFSET_NOT_AVAILABLE,
        ],
    )
    def test_what_passes_is_tried_again(self, code: ErrorCode) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            script.fetch_errors = [code, code]
            async with LogBroker(script) as broker, consumer_of(broker) as consumer:
                await consumer.assign([TP])
                assert values_of(await read(consumer, 1)) == [b"a"]

        asyncio.run(main())

    def test_what_does_not_pass_is_raised_from_poll_and_tried_again_after(self) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            script.fetch_errors = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
            async with LogBroker(script) as broker, consumer_of(broker) as consumer:
                await consumer.assign([TP])
                with pytest.raises(TopicAuthorization, match="fetching t-0"):
                    await read(consumer, 1)
                assert values_of(await read(consumer, 1)) == [b"a"]

        asyncio.run(main())

    def test_an_offset_below_the_log_is_reset(self) -> None:
        async def main() -> None:
            script = script_of([b"a"], [b"b"])
            script.start = 1
            async with LogBroker(script) as broker, consumer_of(broker) as consumer:
                await consumer.assign([TP])
                await consumer.seek(TP, 0)
                assert values_of(await read(consumer, 1)) == [b"b"]

        asyncio.run(main())

    def test_bytes_that_are_wrong_stop_the_partition_in_front_of_them(self) -> None:
        async def main() -> None:
            script = script_of([b"a"], [b"bad"], [b"c"])
            bad = bytearray(script.batches[1])
            bad[-1] ^= 1
            script.batches[1] = bytes(bad)
            async with LogBroker(script) as broker, consumer_of(broker) as consumer:
                await consumer.assign([TP])
                assert values_of(await read(consumer, 1)) == [b"a"]
                for _ in range(2):
                    with pytest.raises(KafkaError, match="batch at offset 1: the stored CRC") as caught:
                        await read(consumer, 1)
                    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
                await consumer.seek(TP, 2)
                assert values_of(await read(consumer, 1)) == [b"c"]

        asyncio.run(main())

    def test_framing_that_is_wrong_is_an_error_too(self) -> None:
        async def main() -> None:
            script = script_of([b"a"], [b"b"])
            script.batches[0] = b"\xff" * 80
            async with LogBroker(script) as broker, consumer_of(broker) as consumer:
                await consumer.assign([TP])
                with pytest.raises(KafkaError, match="cannot be read"):
                    await read(consumer, 1)
                await consumer.seek(TP, 1)
                assert values_of(await read(consumer, 1)) == [b"b"]

        asyncio.run(main())


class TestLeaders:
    def test_a_leader_that_moves_is_followed(self) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            async with two_brokers(script) as (first, second):
                async with consumer_of(first) as consumer:
                    await consumer.assign([TP])
                    assert values_of(await read(consumer, 1)) == [b"a"]
                    script.batches[1], script.end = batch([b"b"], base_offset=1, leader_epoch=1), 2
                    script.leader, script.leader_epoch, script.epoch_end = 2, 1, (0, 1)
                    assert values_of(await read(consumer, 1)) == [b"b"]
                assert second.fetches()

        asyncio.run(main())

    def test_a_replica_nearby_is_read_when_the_leader_says_so(self) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            script.preferred = 2
            async with two_brokers(script) as (first, second):
                async with consumer_of(first, client_rack="r1") as consumer:
                    await consumer.assign([TP])
                    assert values_of(await read(consumer, 1)) == [b"a"]
                assert first.fetches()[0].rack_id == "r1"
                assert second.fetches()

        asyncio.run(main())

    def test_a_connection_that_breaks_is_made_again(self) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            async with LogBroker(script) as broker, consumer_of(broker) as consumer:
                await consumer.assign([TP])
                await read(consumer, 1)
                broker.cut_all()
                script.batches[1], script.end = batch([b"b"], base_offset=1), 2
                assert values_of(await read(consumer, 1)) == [b"b"]

        asyncio.run(main())


class TestRoom:
    def test_no_more_is_fetched_than_there_is_room_for(self) -> None:
        async def main() -> None:
            script = script_of(*[[b"x" * 1000] for _ in range(50)])
            size = len(script.batches[0])
            limits = {"max_partition_fetch_bytes": size, "barnabas_prefetch_bytes": 100 * size}
            async with LogBroker(script) as broker, consumer_of(broker, **limits) as consumer:
                await consumer.assign([TP])
                await until(lambda: consumer.metrics()["bytes-queued"] >= 4 * size)
                for _ in range(20):
                    await asyncio.sleep(0)
                assert len(broker.fetches()) == 4, "four answers fill the partition's room"
                assert len(await read(consumer, 50)) == 50, "and taking makes room again"

        asyncio.run(main())

    def test_the_whole_consumer_is_bounded_too(self) -> None:
        async def main() -> None:
            script = script_of(*[[b"x" * 1000] for _ in range(50)])
            limits = {"barnabas_prefetch_bytes": 2500}
            async with LogBroker(script) as broker, consumer_of(broker, **limits) as consumer:
                await consumer.assign([TP])
                await until(lambda: consumer.metrics()["bytes-queued"] >= 2500)
                for _ in range(20):
                    await asyncio.sleep(0)
                assert len(broker.fetches()) == 3

        asyncio.run(main())
