"""The core under both faces: errands inside poll, errors to be raised once."""

import asyncio

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.config import CONSUMER, parse
from barnabas.client.consumer_core import ConsumerCore
from barnabas.client.errors import KafkaError
from barnabas.client.group_member import Release

TP = TopicPartition("t", 0)


def core_of(**settings: object) -> ConsumerCore:
    parsed = parse(CONSUMER, {"bootstrap.servers": "localhost:1", **settings})
    return ConsumerCore(parsed, post=asyncio.get_running_loop().call_soon, signal=lambda: None)


def test_an_errand_is_done_by_the_side_that_polls() -> None:
    async def main() -> None:
        core = core_of()
        waiting = asyncio.create_task(core.in_poll(lambda: 42))
        await asyncio.sleep(0)
        errand = core.errands.popleft()
        errand.done(errand.work(), None)
        assert await waiting == 42

    asyncio.run(main())


def test_an_errand_that_nobody_waits_for_any_more_is_not_done() -> None:
    async def main() -> None:
        core = core_of()
        waiting = asyncio.create_task(core.in_poll(lambda: 42))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert not core.errands

    asyncio.run(main())


def test_an_error_is_raised_once_and_not_at_all_when_it_is_out_of_date() -> None:
    async def main() -> None:
        core = core_of()
        core.subscription.assign([TP])
        state = core.subscription.state(TP)
        core._on_partition_error(KafkaError("one"), state)
        with pytest.raises(KafkaError, match="one"):
            core.raise_fault()
        core.raise_fault()
        core._on_partition_error(KafkaError("two"), state)
        await core.seek(TP, 5)
        core.raise_fault()
        core._on_partition_error(KafkaError("three"), state)
        await core.assign([])
        core.raise_fault()
        await core.close(0)

    asyncio.run(main())


def test_listeners_hear_in_order_and_the_other_way_round() -> None:
    class First:
        def on_assigned(self, partitions: list[TopicPartition]) -> str:
            return "first"

        def on_revoked(self, partitions: list[TopicPartition]) -> str:
            return "first revoked"

    class Second(First):
        def on_assigned(self, partitions: list[TopicPartition]) -> str:
            return "second"

        def on_lost(self, partitions: list[TopicPartition]) -> str:
            return "second lost"

    async def main() -> None:
        core = core_of()
        core.listeners = (First(), Second(), object())
        assert [told([]) for told in core.told("on_assigned")] == ["first", "second"]
        assert [told([]) for told in core.told("on_lost")] == ["second lost", "first revoked"]

    asyncio.run(main())


def test_partitions_that_go_are_closed_before_the_user_is_told() -> None:
    async def main() -> None:
        core = core_of(group_id="g", enable_auto_commit=False)
        core.subscription.assign([TP])
        state = core.subscription.state(TP)
        state.seek(5)
        order: list[str] = []

        class Listener:
            def on_revoked(self, partitions: list[TopicPartition]) -> None:
                order.append("told")

        core.listeners = (Listener(),)
        going = asyncio.create_task(
            core.release([TP], lambda: Release.REVOKED, lambda: order.append("taken away"))
        )
        await asyncio.sleep(0)
        assert not state.is_open
        while not going.done():
            while core.errands:
                errand = core.errands.popleft()
                errand.done(errand.work(), None)
            await asyncio.sleep(0)
        assert order == ["told", "taken away"]

    asyncio.run(main())


def test_lag_is_known_after_the_first_fetch() -> None:
    async def main() -> None:
        core = core_of()
        core.subscription.assign([TP])
        assert core.lag() == {TP: None}
        state = core.subscription.state(TP)
        state.seek(5)
        state.high_watermark = 9
        assert core.lag() == {TP: 4}

    asyncio.run(main())
