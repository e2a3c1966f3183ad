"""The asynchronous consumer: the same calls, on the caller's loop."""

import asyncio
import datetime

import pytest

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.aio_consumer import Consumer
from barnabas.client.consumer import Consumer as SyncConsumer
from barnabas.client.errors import ClientClosed, NoBrokersAvailable
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.records.record import Record
from tests.client._kit import settings_for
from tests.client._records import produce, values_of

pytestmark = pytest.mark.slow

LIMIT_S = 45.0


def consumer_of(bootstrap: str, **more: object) -> Consumer:
    chosen: dict[str, object] = {
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 50,
        "fetch_max_wait_ms": 50,
        **more,
    }
    return Consumer(settings_for(bootstrap), **chosen)


async def read(consumer: Consumer, count: int) -> list[Record]:
    records: list[Record] = []
    async with asyncio.timeout(LIMIT_S):
        while len(records) < count:
            records += await consumer.poll(0.2, count - len(records))
    return records


@pytest.fixture
def filled(bootstrap: str, admin: Admin, topic: str) -> str:
    admin.create_topic(topic, 2, configs={"retention.ms": "-1"})
    for partition in (0, 1):
        produce(bootstrap, topic, [b"%d-%d" % (partition, n) for n in range(10)], partition=partition)
    return topic


def test_both_faces_have_the_same_calls() -> None:
    def calls(cls: type) -> set[str]:
        return {name for name in dir(cls) if not name.startswith("_")}

    assert calls(Consumer) - {"start"} == calls(SyncConsumer)


def test_assigned_partitions_are_read_and_sought(bootstrap: str, filled: str) -> None:
    async def main() -> None:
        first, second = TopicPartition(filled, 0), TopicPartition(filled, 1)
        async with consumer_of(bootstrap) as consumer:
            await consumer.assign([first, second])
            assert len(await read(consumer, 20)) == 20
            assert consumer.lag() == {first: 0, second: 0}
            await consumer.seek(first, 8)
            assert values_of(await read(consumer, 2)) == [b"0-8", b"0-9"]
            await consumer.seek_to_beginning(first)
            assert await consumer.position(first) == 0
            await consumer.seek_to_end()
            assert await consumer.position(first) == 10
            await consumer.seek_to_time(datetime.datetime.fromtimestamp(1, datetime.UTC), first)
            assert await consumer.position(first) == 0
            await consumer.pause(first)
            assert consumer.paused() == {first}
            assert await consumer.poll(0.1) == []
            await consumer.resume(first)
            assert len(await read(consumer, 10)) == 10
            assert await consumer.beginning_offsets() == {first: 0, second: 0}
            assert await consumer.end_offsets(first) == {first: 10}
            found = (await consumer.offsets_for_times({first: 0}))[first]
            assert found is not None
            assert found.offset == 0
            assert len(await consumer.partitions_for(filled)) == 2
            assert consumer.metrics()["records-consumed-total"] == 32

    asyncio.run(main())


def test_a_member_reads_commits_and_hears_of_its_partitions(bootstrap: str, filled: str, group: str) -> None:
    events: list[str] = []

    async def main() -> None:
        async with consumer_of(bootstrap, group_id=group) as consumer:

            class Listener:
                async def on_assigned(self, partitions: list[TopicPartition]) -> None:
                    await asyncio.sleep(0)
                    events.append("assigned")

                async def on_revoked(self, partitions: list[TopicPartition]) -> None:
                    await consumer.commit()
                    events.append("revoked")

            await consumer.subscribe([filled], listener=Listener())
            assert len(await read(consumer, 20)) == 20
            assert consumer.subscription() == {filled}
            told: list[object] = []
            consumer.commit_async(callback=lambda offsets, error: told.append(error))
            async with asyncio.timeout(LIMIT_S):
                while not told:
                    await consumer.poll(0.01)
            assert told == [None]
            assert (await consumer.committed())[TopicPartition(filled, 0)] == OffsetAndMetadata(10, "", 0)
            await consumer.unsubscribe()
            assert consumer.assignment() == set()

    asyncio.run(main())
    assert events == ["assigned", "revoked"]


def test_iterating_ends_with_wakeup(bootstrap: str, filled: str) -> None:
    async def main() -> list[bytes | None]:
        async with consumer_of(bootstrap) as consumer:
            await consumer.assign([TopicPartition(filled, 0)])
            found = []
            async for record in consumer:
                found.append(record.value)
                if len(found) == 10:
                    consumer.wakeup()
            return found

    assert asyncio.run(main()) == [b"0-%d" % n for n in range(10)]


def test_polling_leaves_the_loop_to_others(bootstrap: str, filled: str) -> None:
    async def main() -> int:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with consumer_of(bootstrap) as consumer:
            await consumer.assign([TopicPartition(filled, 0)])
            await consumer.poll(5, 1)
            other = asyncio.create_task(count())
            for _ in range(9):
                assert len(await consumer.poll(0, 1)) == 1
            other.cancel()
        return turns

    assert asyncio.run(main()) >= 9


def test_arrow_batches_come_without_an_object_per_record(bootstrap: str, filled: str) -> None:
    pytest.importorskip("pyarrow")

    async def main() -> int:
        async with consumer_of(bootstrap) as consumer:
            await consumer.assign([TopicPartition(filled, 0)])
            return sum(batch.num_rows for batch in await consumer.poll_batches(5))

    assert asyncio.run(main()) == 10


def test_what_a_listener_raises_is_raised_from_poll(bootstrap: str, filled: str, group: str) -> None:
    class Listener:
        async def on_assigned(self, partitions: list[TopicPartition]) -> None:
            raise LookupError("from the listener")

    async def main() -> None:
        async with consumer_of(bootstrap, group_id=group) as consumer:
            await consumer.subscribe(filled, listener=Listener())
            with pytest.raises(LookupError, match="from the listener"):
                await read(consumer, 1)
            assert len(await read(consumer, 20)) == 20

    asyncio.run(main())


def test_a_consumer_that_is_not_started_or_closed_says_so(bootstrap: str) -> None:
    async def main() -> None:
        consumer = consumer_of(bootstrap)
        with pytest.raises(ClientClosed, match="not started"):
            await consumer.poll()
        async with consumer:
            with pytest.raises(Misuse, match=r"needs group\.id"):
                await consumer.subscribe("t")
        await consumer.close()
        with pytest.raises(ClientClosed):
            await consumer.poll()
        assert [record async for record in consumer] == []
        assert repr(consumer) == "Consumer(group=None, 0 partitions)"
        with pytest.raises(NoBrokersAvailable):
            await Consumer(settings_for("127.0.0.1:1")).start()

    asyncio.run(main())
