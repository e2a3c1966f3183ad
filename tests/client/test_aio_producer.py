"""Tests of the asynchronous producer: the same behaviour, awaited."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from barnabas.base.errors import Misuse
from barnabas.client import aio
from barnabas.client.admin import Admin
from barnabas.client.aio_producer import Producer
from barnabas.client.errors import (
    BufferFull,
    ClientClosed,
    DeliveryFailed,
    NoBrokersAvailable,
    RecordTooLarge,
    RequestTimedOut,
    UnknownTopic,
)
from tests._kafka import free_ports
from tests.client._faulty import faulty_broker, read_all
from tests.client._kit import settings_for
from tests.net._kit import until


def run(bootstrap: str, body: Callable[[Producer], Awaitable[None]], **settings: object) -> None:
    async def main() -> None:
        async with Producer(settings_for(bootstrap, **settings)) as producer:
            await body(producer)

    asyncio.run(main())


def test_it_is_the_producer_of_aio() -> None:
    assert aio.Producer is Producer


class TestSending:
    def test_and_awaiting(self, bootstrap: str, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1)

        async def body(producer: Producer) -> None:
            future = await producer.send(topic, b"v", "k")
            metadata = await future
            assert metadata[:3] == (topic, 0, 0)
            assert (await future) == metadata

        run(bootstrap, body)

    def test_many_at_once_share_batches(self, bootstrap: str, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1)

        async def body(producer: Producer) -> None:
            async def one(number: int) -> int:
                return (await (await producer.send(topic, b"%d" % number))).offset

            offsets = await asyncio.gather(*(one(number) for number in range(500)))
            assert sorted(offsets) == list(range(500))
            assert producer.metrics()["request-total"] < 100

        run(bootstrap, body)

    def test_callbacks_run_on_the_loop(self, bootstrap: str, topic: str) -> None:
        async def body(producer: Producer) -> None:
            loops: list[object] = []
            await producer.send(
                topic, b"v", on_delivery=lambda metadata, error: loops.append(asyncio.get_running_loop())
            )
            await producer.flush()
            assert loops == [asyncio.get_running_loop()]

        run(bootstrap, body)

    def test_the_loop_may_not_wait_for_itself(self, bootstrap: str, topic: str) -> None:
        async def body(producer: Producer) -> None:
            future = await producer.send(topic, b"v")
            with pytest.raises(Misuse, match="await the future"):
                future.result()

        run(bootstrap, body)

    def test_partitions(self, bootstrap: str, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 2)

        async def body(producer: Producer) -> None:
            assert len(await producer.partitions_for(topic)) == 2
            with pytest.raises(UnknownTopic, match="has no partition 2"):
                await producer.send(topic, b"", partition=2)
            assert (await (await producer.send(topic, b"", partition=1))).partition == 1

        run(bootstrap, body)

    def test_leaving_the_block_sends_the_rest(self, bootstrap: str, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1)

        async def body(producer: Producer) -> None:
            for number in range(50):
                await producer.send(topic, b"%d" % number)

        run(bootstrap, body, linger_ms=60_000)
        assert read_all(bootstrap, topic, 1, 50)[0] == [b"%d" % number for number in range(50)]


class TestFailures:
    def test_unseen_ones_are_raised_by_flush(self, bootstrap: str, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1, configs={"max.message.bytes": "100"})

        async def body(producer: Producer) -> None:
            await producer.send(topic, b"x" * 500)
            with pytest.raises(DeliveryFailed, match="1 record was not delivered"):
                await producer.flush()
            with pytest.raises(RecordTooLarge):
                await (await producer.send(topic, b"x" * 500))

        run(bootstrap, body)

    def test_and_by_the_end_of_the_block(self, bootstrap: str, topic: str, admin: Admin) -> None:
        admin.create_topic(topic, 1, configs={"max.message.bytes": "100"})

        async def body(producer: Producer) -> None:
            await producer.send(topic, b"x" * 500)

        with pytest.raises(DeliveryFailed):
            run(bootstrap, body)

        async def broken(producer: Producer) -> None:
            await producer.send(topic, b"x" * 500)
            raise ValueError("mine")

        with pytest.raises(ValueError, match="mine"):
            run(bootstrap, broken)

    def test_no_broker(self) -> None:
        async def body(producer: Producer) -> None: ...

        with pytest.raises(NoBrokersAvailable):
            run(f"127.0.0.1:{free_ports(1)[0]}", body)


class TestLife:
    def test_before_the_start_and_after_the_end(self, bootstrap: str, topic: str) -> None:
        async def main() -> None:
            producer = Producer(settings_for(bootstrap))
            with pytest.raises(Misuse, match="was not started"):
                await producer.send(topic, b"v")
            await producer.start()
            with pytest.raises(Misuse, match="started already"):
                await producer.start()
            await producer.send(topic, b"v")
            await asyncio.gather(producer.close(), producer.close())
            await producer.close()
            with pytest.raises(ClientClosed):
                await producer.send(topic, b"v")
            with pytest.raises(ClientClosed):
                await producer.start()

        asyncio.run(main())

    def test_one_that_was_never_started_can_be_closed(self, bootstrap: str) -> None:
        asyncio.run(Producer(settings_for(bootstrap)).close())


class TestTheBuffer:
    @pytest.mark.slow
    def test_it_is_waited_for_and_a_cancelled_wait_leaves_nothing(self) -> None:
        async def main(bootstrap: str, stall: Callable[[], None], resume: Callable[[], None]) -> None:
            settings = settings_for(bootstrap, buffer_memory=20_000, batch_size=10_000, max_block_ms=300)
            async with Producer(settings) as producer:
                await (await producer.send("t", b"first"))
                stall()
                for _ in range(2):
                    await producer.send("t", b"x" * 9_000)
                waiting = asyncio.create_task(producer.send("t", b"x" * 9_000))
                await until(lambda: producer.metrics()["waiting-threads"] > 0)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                assert producer.metrics()["waiting-threads"] == 0
                with pytest.raises(BufferFull):
                    await producer.send("t", b"x" * 9_000)
                with pytest.raises(RequestTimedOut, match=r"did not finish within 0\.05 s"):
                    await producer.flush(0.05)
                resume()
                await (await producer.send("t", b"x" * 9_000))

        with faulty_broker() as broker:
            broker.broker.create_topic("t", 1)
            asyncio.run(main(broker.bootstrap_servers, broker.proxy.stall, broker.proxy.resume))
