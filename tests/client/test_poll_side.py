"""What both faces share where the user polls: arguments, iteration, commits in time."""

import asyncio
import datetime
from typing import NamedTuple

import pytest

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.config import CONSUMER, parse
from barnabas.client.consumer_core import ConsumerCore
from barnabas.client.poll_side import PollSide, as_offsets, as_partitions, as_timestamp
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.records.record import Record

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


class TestArguments:
    def test_partitions_may_be_given_one_by_one_or_as_a_list(self) -> None:
        assert as_partitions((A, B)) == [A, B]
        assert as_partitions(([A, B],)) == [A, B]
        assert as_partitions((("a", 0), {B})) == [A, B]
        assert as_partitions(()) == []

    def test_what_is_no_partition_is_refused(self) -> None:
        with pytest.raises(Misuse, match="not 'a'"):
            as_partitions(("a",))

    def test_a_number_stands_for_an_offset(self) -> None:
        assert as_offsets({A: 5}) == {A: OffsetAndMetadata(5)}

    def test_times_are_moments(self) -> None:
        zone = datetime.timezone(datetime.timedelta(hours=2))
        assert as_timestamp(datetime.datetime(1970, 1, 1, 2, 0, 1, tzinfo=zone)) == 1000
        assert as_timestamp(1500.7) == 1500
        with pytest.raises(Misuse, match="before 1970"):
            as_timestamp(-1)


class Side(NamedTuple):
    core: ConsumerCore
    polling: PollSide
    posted: list[tuple[object, ...]]


def side(**settings: object) -> Side:
    parsed = parse(CONSUMER, {"bootstrap.servers": "localhost:1", **settings})
    posted: list[tuple[object, ...]] = []
    core = ConsumerCore(parsed, post=lambda *work: posted.append(work), signal=lambda: None)
    return Side(core, PollSide(core, parsed), posted)


def record(offset: int, where: TopicPartition = A) -> Record:
    return Record(offset, 0, None, b"v", (), where.topic, where.partition)


class TestIterating:
    def test_what_was_not_yielded_is_not_consumed(self) -> None:
        async def main() -> None:
            core, polling, _ = side(group_id="g")
            core.subscription.assign([A, B])
            for tp in (A, B):
                core.subscription.state(tp).seek(10)
            polling.iterate([record(8), record(9), record(9, B)])
            assert polling.next_unseen() == record(8)
            assert {tp: at.offset for tp, at in core.consumed().items()} == {A: 9, B: 9}
            assert polling.unseen_position(A) == 9
            polling.drop_unseen([A])
            assert polling.unseen_position(A) is None
            assert polling.take_unseen(5) == [record(9, B)]
            assert polling.next_unseen() is None
            polling.iterate([record(8)])
            polling.drop_unseen()
            assert polling.next_unseen() is None

        asyncio.run(main())


class TestAutomaticCommits:
    def test_they_come_at_the_start_of_a_poll_when_it_is_time(self) -> None:
        async def main() -> None:
            core, polling, posted = side(group_id="g", auto_commit_interval_ms=0)
            core.subscription.assign([A])
            core.subscription.state(A).seek(3)
            posted.clear()
            polling.begin()
            ((_, offsets),) = posted
            assert offsets == {A: OffsetAndMetadata(3)}
            assert core.idle_ms() == 0
            polling.end()

        asyncio.run(main())

    @pytest.mark.parametrize(
        "settings", [{"group_id": "g", "enable_auto_commit": False}, {"auto_commit_interval_ms": 0}]
    )
    def test_without_a_group_or_when_switched_off_there_are_none(self, settings: dict[str, object]) -> None:
        async def main() -> None:
            _, polling, posted = side(**settings)
            polling.begin()
            assert posted == []

        asyncio.run(main())
