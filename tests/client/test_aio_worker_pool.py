"""`run` with tasks: order, retries, commits that pass nothing, and a clean stop."""

import asyncio

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.work import Retry, RunReport
from barnabas.records.record import Record
from tests.client._records import produce
from tests.client.test_aio_consumer import consumer_of, read

pytestmark = pytest.mark.slow

COUNT = 100


@pytest.fixture
def keyed(bootstrap: str, admin: Admin, topic: str) -> str:
    admin.create_topic(topic, 2)
    for partition in (0, 1):
        produce(bootstrap, topic, [(b"%d" % (n % 5), b"%d" % n) for n in range(COUNT)], partition=partition)
    return topic


@pytest.mark.parametrize("order", ["key", "partition", "none"])
def test_every_record_is_handled_once_and_committed(
    bootstrap: str, keyed: str, group: str, order: str
) -> None:
    done: list[Record] = []

    async def main() -> RunReport:
        async with consumer_of(bootstrap, group_id=group) as consumer:
            await consumer.subscribe(keyed)

            async def handler(record: Record) -> None:
                await asyncio.sleep(0)
                done.append(record)

            report = await consumer.run(
                handler,
                order=order,  # type: ignore[arg-type]  # one of three
                until=lambda: len(done) == 2 * COUNT,
            )
            found = await consumer.committed()
            assert {tp.partition: at.offset for tp, at in found.items()} == {0: COUNT, 1: COUNT}
            return report

    assert asyncio.run(main()).processed == 2 * COUNT
    if order != "none":
        for key in {(r.key, r.partition) for r in done}:
            offsets = [r.offset for r in done if (r.key, r.partition) == key]
            assert offsets == sorted(offsets)


def test_a_record_that_keeps_failing_stops_the_run_in_front_of_it(
    bootstrap: str, keyed: str, group: str
) -> None:
    async def main() -> None:
        async with consumer_of(bootstrap, group_id=group) as consumer:
            await consumer.subscribe(keyed)
            tries: list[int] = []

            async def handler(record: Record) -> None:
                if record.offset == 50:
                    tries.append(record.partition)
                    raise LookupError("for ever")

            with pytest.raises(LookupError, match="for ever"):
                await consumer.run(handler, order="partition", retry=Retry(attempts=2, first_ms=1))
            assert len(tries) in (2, 3, 4)
            assert all(at.offset <= 50 for at in (await consumer.committed()).values())
            assert min(record.offset for record in await read(consumer, 50)) <= 50

    asyncio.run(main())


def test_failing_records_can_be_skipped_or_taken_over(bootstrap: str, keyed: str, group: str) -> None:
    dead: list[int] = []

    async def fail(record: Record) -> None:
        raise LookupError

    async def keep(record: Record, error: BaseException) -> None:
        dead.append(record.offset)

    async def main() -> None:
        async with consumer_of(bootstrap, group_id=group) as consumer:
            await consumer.subscribe(keyed)
            report = await consumer.run(fail, on_error=keep, until=lambda: len(dead) == 2 * COUNT)
            assert report.skipped == 2 * COUNT
            await consumer.seek_to_beginning()
            count = 0

            async def count_and_fail(record: Record) -> None:
                nonlocal count
                count += 1
                raise LookupError

            report = await consumer.run(count_and_fail, on_error="skip", until=lambda: count == 2 * COUNT)
            assert report.skipped == 2 * COUNT

    asyncio.run(main())


def test_wakeup_stops_the_run(bootstrap: str, keyed: str, group: str) -> None:
    async def main() -> None:
        async with consumer_of(bootstrap, group_id=group) as consumer:
            await consumer.subscribe(keyed)

            async def handler(record: Record) -> None:
                consumer.wakeup()

            await consumer.run(handler, workers=1, order="none")

    asyncio.run(main())


def test_partitions_that_go_are_committed_first(bootstrap: str, keyed: str, group: str) -> None:
    done: list[Record] = []

    async def main() -> None:
        async with (
            consumer_of(bootstrap, group_id=group) as consumer,
            consumer_of(bootstrap, group_id=group) as other,
        ):
            await consumer.subscribe(keyed)

            everything = asyncio.Event()

            async def handler(record: Record) -> None:
                done.append(record)
                if len(done) == 2 * COUNT:
                    everything.set()

            parted = False

            async def join() -> None:
                nonlocal parted
                await everything.wait()
                await other.subscribe(keyed)
                while len(other.assignment()) != 1:
                    assert await other.poll(0.05) == []
                assert await other.poll(0.2) == []
                parted = True

            joining = asyncio.create_task(join())
            await consumer.run(handler, workers=2, until=lambda: parted)
            await joining
            assert consumer.assignment() | other.assignment() == {
                TopicPartition(keyed, 0),
                TopicPartition(keyed, 1),
            }

    asyncio.run(main())
    assert len(done) == 2 * COUNT
