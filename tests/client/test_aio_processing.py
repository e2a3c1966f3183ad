"""Tests of consume-process-produce on an event loop, exactly once."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from barnabas.base.errors import Misuse
from barnabas.client.admin import Admin
from barnabas.client.aio import Consumer, Producer
from barnabas.client.aio_processing import process
from barnabas.client.errors import ProducerFenced
from barnabas.client.interceptors import ProducerRecord
from barnabas.records.record import Record
from tests.client._kit import settings_for
from tests.client.test_processing import COUNT, ONCE, Crash, Job


@pytest.fixture
def job(bootstrap: str, name: Callable[[str], str], admin: Admin) -> Job:
    return Job(bootstrap, name, admin)


class AsyncJob:
    """Members and producers of a job, closed with the block."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "AsyncJob":
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.aclose()

    async def consumer(self, **more: object) -> Consumer:
        settings = settings_for(
            self.job.bootstrap,
            **{
                "group.id": self.job.group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "heartbeat.interval.ms": 100,
                **more,
            },
        )
        consumer = await self._stack.enter_async_context(Consumer(settings))
        await consumer.subscribe(self.job.source)
        return consumer

    async def producer(self, name: str) -> Producer:
        settings = settings_for(
            self.job.bootstrap, **{"transactional.id": f"{self.job.group}-{name}", "linger.ms": 0}
        )
        return await self._stack.enter_async_context(Producer(settings))


def until_done(job: Job, consumer: Consumer, seen: set[bytes]) -> Callable[[Record], ProducerRecord]:
    def fn(record: Record) -> ProducerRecord:
        assert record.value is not None
        seen.add(record.value)
        if len(seen) == COUNT:
            consumer.wakeup()
        return job.copy(record)

    return fn


def test_every_record_is_processed_once(job: Job) -> None:
    async def main() -> None:
        async with AsyncJob(job) as work:
            consumer, producer = await work.consumer(), await work.producer("a")
            fn = until_done(job, consumer, set())
            assert await process(consumer, producer, fn, max_records=30) == COUNT

    asyncio.run(main())
    assert job.seen() == ONCE


def test_a_coroutine_that_crashes_is_begun_again_where_the_last_commit_was(job: Job) -> None:
    async def main() -> None:
        calls, seen = 0, set[bytes]()
        async with AsyncJob(job) as work:
            consumer, producer = await work.consumer(), await work.producer("a")
            copy = until_done(job, consumer, seen)

            async def fn(record: Record) -> ProducerRecord:
                nonlocal calls
                calls += 1
                await asyncio.sleep(0)
                if calls == 75:
                    raise Crash
                return copy(record)

            with pytest.raises(Crash):
                await process(consumer, producer, fn, max_records=20)
            await process(consumer, producer, fn, max_records=20)

    asyncio.run(main())
    assert job.seen() == ONCE


def test_a_cancelled_task_leaves_nothing_half(job: Job) -> None:
    async def main() -> None:
        async with AsyncJob(job) as work:
            consumer, producer = await work.consumer(), await work.producer("a")
            stuck = asyncio.Event()

            async def fn(record: Record) -> ProducerRecord:
                await producer.send(job.target, record.value, record.key)
                stuck.set()
                await asyncio.Event().wait()
                raise AssertionError("cancelled before")

            task = asyncio.create_task(process(consumer, producer, fn))
            await stuck.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await process(consumer, producer, until_done(job, consumer, set()))

    asyncio.run(main())
    assert job.seen() == ONCE


def test_a_zombie_writes_nothing(job: Job) -> None:
    async def main() -> None:
        async with AsyncJob(job) as work:
            consumer = await work.consumer()
            zombie, successor = await work.producer("a"), await work.producer("a")

            async def fn(record: Record) -> ProducerRecord:
                await successor.init_transactions()
                return job.copy(record)

            with pytest.raises(ProducerFenced):
                await process(consumer, zombie, fn, max_records=10)
            assert await process(consumer, successor, until_done(job, consumer, set())) == COUNT

    asyncio.run(main())
    assert job.seen() == ONCE


def test_a_consumer_of_uncommitted_data_is_refused(job: Job) -> None:
    async def main() -> None:
        async with AsyncJob(job) as work:
            consumer = await work.consumer(**{"isolation.level": "read_uncommitted"})
            with pytest.raises(Misuse, match="read_committed"):
                await process(consumer, await work.producer("a"), job.copy)

    asyncio.run(main())
