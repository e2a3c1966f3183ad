"""Tests of the transactional calls of both faces; what transactions do is tested in test_transactions."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client import aio
from barnabas.client.admin import Admin
from barnabas.client.errors import ProducerFenced
from barnabas.client.offsets import GroupIdentity
from barnabas.client.producer import Producer
from barnabas.client.transaction_calls import AsyncTransactionCalls, TransactionCalls
from tests.client._consumers import consumer_of, read
from tests.client._kit import settings_for


def transactional(bootstrap: str, name: str) -> dict[str, object]:
    return settings_for(bootstrap, **{"transactional.id": name, "linger.ms": 0})


def reading(bootstrap: str, group: str) -> dict[str, Any]:
    more = {
        "group.id": group,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "fetch.max.wait.ms": 50,
    }
    return settings_for(bootstrap, **more)


def committed_values(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    with consumer_of(bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        return [record.value for record in read(consumer, count)]


def test_both_faces_have_the_same_calls() -> None:
    def calls(face: type) -> set[str]:
        return {name for name in vars(face) if not name.startswith("_")}

    assert calls(TransactionCalls) == calls(AsyncTransactionCalls)


def test_the_asynchronous_face(bootstrap: str, topic: str, name: Callable[[str], str], admin: Admin) -> None:
    admin.create_topic(topic, 1)

    async def main() -> None:
        async with aio.Producer(transactional(bootstrap, name("txn"))) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await (await producer.send(topic, b"aborted"))
            await producer.abort_transaction()
            await producer.begin_transaction()
            await producer.send(topic, b"a")
            await producer.commit_transaction()
            async with producer.transaction():
                await producer.send(topic, b"b")

    asyncio.run(main())
    assert committed_values(bootstrap, topic, 2) == [b"a", b"b"]


def test_an_asynchronous_block_with_a_consumer(
    bootstrap: str, topic: str, group: str, name: Callable[[str], str], admin: Admin
) -> None:
    out = name("out")
    admin.create_topic(topic, 1)
    admin.create_topic(out, 1)

    async def copy(producer: aio.Producer, consumer: aio.Consumer, *, fail: bool) -> None:
        async with producer.transaction(consumer):
            found = 0
            while found < 2:
                for record in await consumer.poll(1):
                    found += 1
                    await producer.send(out, record.value)
            if fail:
                raise ZeroDivisionError

    async def main() -> int:
        async with (
            aio.Producer(transactional(bootstrap, name("txn"))) as producer,
            aio.Consumer(reading(bootstrap, group)) as consumer,
        ):
            async with producer.transaction():
                await producer.send(topic, b"1")
                await producer.send(topic, b"2")
            await consumer.subscribe(topic)
            with pytest.raises(ZeroDivisionError):
                await copy(producer, consumer, fail=True)
            await copy(producer, consumer, fail=False)
            tp = TopicPartition(topic, 0)
            return (await consumer.committed(tp))[tp].offset - await consumer.position(tp)

    assert asyncio.run(main()) == 0
    assert committed_values(bootstrap, out, 2) == [b"1", b"2"]


def test_offsets_by_hand(
    bootstrap: str, topic: str, group: str, name: Callable[[str], str], admin: Admin
) -> None:
    admin.create_topic(topic, 1)
    tp = TopicPartition(topic, 0)

    async def main() -> int:
        async with aio.Producer(transactional(bootstrap, name("txn"))) as producer, producer.transaction():
            await producer.send_offsets_to_transaction({tp: 4}, GroupIdentity(group))
        async with aio.Consumer(reading(bootstrap, group)) as consumer:
            return (await consumer.committed(tp))[tp].offset

    assert asyncio.run(main()) == 4


def test_without_a_transactional_id_they_say_what_is_missing(bootstrap: str) -> None:
    async def main() -> None:
        async with aio.Producer(settings_for(bootstrap)) as producer:
            with pytest.raises(Misuse, match=r"transactional\.id"):
                await producer.begin_transaction()

    asyncio.run(main())


def test_the_error_of_a_block_is_raised_and_tells_what_followed(
    bootstrap: str, topic: str, name: Callable[[str], str], admin: Admin, caplog: pytest.LogCaptureFixture
) -> None:
    admin.create_topic(topic, 1)
    settings = transactional(bootstrap, name("txn"))
    with Producer(settings) as zombie, Producer(settings) as successor:

        def be_taken_over() -> None:
            with zombie.transaction():
                zombie.send(topic, b"x").result(10)
                successor.init_transactions()
                raise ZeroDivisionError

        with caplog.at_level(logging.CRITICAL), pytest.raises(ZeroDivisionError) as caught:
            be_taken_over()
        assert "PRODUCER_FENCED" in caught.value.__notes__[0]
        with pytest.raises(ProducerFenced):
            zombie.begin_transaction()
