"""Positions: the reset rule, committed offsets, and logs that were truncated."""

import asyncio
import logging

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.config import CONSUMER, parse
from barnabas.client.errors import NoOffset, OffsetOutOfRange
from barnabas.client.positions import reset_rule
from barnabas.client.subscription import OffsetAndMetadata, Reset
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from tests.client._log_broker import TOPIC, LogBroker, Script, consumer_of
from tests.client._records import batch, values_of
from tests.client.test_fetcher import read, script_of

TP = TopicPartition(TOPIC, 0)
DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("earliest", Reset(-2)),
        ("latest", Reset(-1)),
        ("none", None),
        ("by_duration:P1D", Reset(9 * DAY_MS)),
        ("by_duration:PT1H30M", Reset(10 * DAY_MS - 5_400_000)),
        ("by_duration:P1DT0.5S", Reset(9 * DAY_MS - 500)),
        ("by_duration:P99D", Reset(0)),
    ],
)
def test_the_reset_rule_is_read(rule: str, expected: Reset | None) -> None:
    settings = parse(CONSUMER, bootstrap_servers="localhost:1", auto_offset_reset=rule)
    assert reset_rule(settings, 10 * DAY_MS) == expected


class TestTruncation:
    """The leader changed after two records were read in epoch 0."""

    async def change_leader(self, script: Script, epoch_end: tuple[int, int]) -> None:
        script.leader_epoch, script.epoch_end = 1, epoch_end
        script.batches[2], script.end = batch([b"new"], base_offset=2, leader_epoch=1), 3

    def test_a_log_that_still_has_it_is_read_on(self) -> None:
        async def main() -> None:
            script = script_of([b"a", b"b"])
            async with LogBroker(script) as broker, consumer_of(broker) as consumer:
                await consumer.assign([TP])
                await read(consumer, 2)
                await self.change_leader(script, (0, 2))
                await consumer._core.cluster.refresh()
                assert values_of(await read(consumer, 1)) == [b"new"]
                assert broker.count(ApiKey.OFFSET_FOR_LEADER_EPOCH) == 1
                assert broker.fetches()[-1].topics[0].partitions[0].current_leader_epoch == 1

        asyncio.run(main())

    def test_a_log_that_lost_it_is_read_from_where_they_part(self, caplog: pytest.LogCaptureFixture) -> None:
        async def main() -> None:
            script = script_of([b"a", b"b"])
            async with LogBroker(script) as broker, consumer_of(broker) as consumer:
                await consumer.assign([TP])
                await read(consumer, 2)
                script.batches = {0: batch([b"a"]), 1: batch([b"B"], base_offset=1, leader_epoch=1)}
                script.leader_epoch, script.epoch_end = 1, (0, 1)
                with caplog.at_level(logging.WARNING):
                    await consumer._core.cluster.refresh()
                    assert values_of(await read(consumer, 1)) == [b"B"]
                assert "t-0: the log was truncated to offset 1, below the position 2" in caplog.text

        asyncio.run(main())

    def test_without_a_rule_truncation_is_an_error(self) -> None:
        async def main() -> None:
            script = script_of([b"a", b"b"])
            async with LogBroker(script) as broker, consumer_of(broker, auto_offset_reset="none") as consumer:
                await consumer.assign([TP])
                await consumer.seek(TP, 0)
                await read(consumer, 2)
                await self.change_leader(script, (0, 1))
                await consumer._core.cluster.refresh()
                with pytest.raises(OffsetOutOfRange, match="truncated to offset 1, below the position 2"):
                    await read(consumer, 1)

        asyncio.run(main())

    def test_an_epoch_that_is_not_known_any_more_is_a_reset(self) -> None:
        async def main() -> None:
            script = script_of([b"a", b"b"])
            async with LogBroker(script) as broker, consumer_of(broker) as consumer:
                await consumer.assign([TP])
                await read(consumer, 2)
                await self.change_leader(script, (-1, -1))
                await consumer._core.cluster.refresh()
                assert values_of(await read(consumer, 1)) == [b"a"]

        asyncio.run(main())

    def test_the_question_is_asked_again_when_it_is_not_answered(self) -> None:
        async def main() -> None:
            script = script_of([b"a", b"b"])
            async with LogBroker(script) as broker, consumer_of(broker) as consumer:
                await consumer.assign([TP])
                await read(consumer, 2)
                script.epoch_error = ErrorCode.UNKNOWN_LEADER_EPOCH
                await self.change_leader(script, (0, 2))
                await consumer._core.cluster.refresh()
                await broker.wait_for(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2)
                script.epoch_error = 0
                assert values_of(await read(consumer, 1)) == [b"new"]

        asyncio.run(main())

    def test_an_offset_with_an_epoch_is_checked_when_it_is_sought(self) -> None:
        async def main() -> None:
            script = script_of([b"a", b"b"])
            script.leader_epoch, script.epoch_end = 3, (2, 1)
            async with LogBroker(script) as broker, consumer_of(broker) as consumer:
                await consumer.assign([TP])
                await consumer.seek(TP, OffsetAndMetadata(2, "", 2))
                assert values_of(await read(consumer, 1)) == [b"b"]

        asyncio.run(main())

    def test_a_broker_without_the_question_is_trusted(self) -> None:
        async def main() -> None:
            script = script_of([b"a", b"b"])
            async with LogBroker(script) as broker:
                del broker.offered[ApiKey.OFFSET_FOR_LEADER_EPOCH]
                async with consumer_of(broker) as consumer:
                    await consumer.assign([TP])
                    await consumer.seek(TP, OffsetAndMetadata(1, "", 0))
                    assert values_of(await read(consumer, 1)) == [b"b"]

        asyncio.run(main())


def test_a_position_is_known_without_a_poll() -> None:
    async def main() -> None:
        async with LogBroker(script_of([b"a", b"b"])) as broker, consumer_of(broker) as consumer:
            await consumer.assign([TP])
            assert await consumer.position(TP) == 0

    asyncio.run(main())


def test_asking_for_a_position_that_cannot_be_is_an_error() -> None:
    async def main() -> None:
        async with (
            LogBroker(script_of([b"a"])) as broker,
            consumer_of(broker, auto_offset_reset="none") as consumer,
        ):
            await consumer.assign([TP])
            with pytest.raises(
                NoOffset, match=r"t-0: no offset is committed, and auto\.offset\.reset is none"
            ):
                await consumer.position(TP)

    asyncio.run(main())
