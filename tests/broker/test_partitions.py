"""barnabas.broker.partitions: the partitions on this broker, by name."""

from pathlib import Path

import pytest

from barnabas.base.types import TopicPartition
from barnabas.controller.topics import NewTopic
from tests.broker._calls import batch, now_ms
from tests.broker._parts import open_log_parts, run


def test_they_are_found_by_topic_and_index(folder: Path) -> None:
    async def main() -> None:
        async with open_log_parts(folder) as parts:
            await parts.topics.create(NewTopic("a", 2))
            await parts.topics.create(NewTopic("b"))
            table = parts.partitions
            assert len(table) == 3
            found = table.get("a", 1)
            assert found is not None
            assert found.topic_partition == TopicPartition("a", 1)
            assert table.get("a", 2) is None
            assert table.get("c", 0) is None
            assert [p.topic_partition for p in table.of_topic("a")] == [("a", 0), ("a", 1)]

    run(main())


def test_one_is_here_once_and_goes_once(folder: Path) -> None:
    async def main() -> None:
        async with open_log_parts(folder) as parts:
            await parts.topics.create(NewTopic("a"))
            table = parts.partitions
            partition = table.get("a", 0)
            assert partition is not None
            with pytest.raises(AssertionError, match="a-0 is here already"):
                table.add(partition)
            assert table.remove(TopicPartition("a", 0)) is partition
            assert table.remove(TopicPartition("a", 0)) is None
            assert len(table) == 0
            table.add(partition)

    run(main())


def test_it_may_change_while_it_is_walked_through(folder: Path) -> None:
    async def main() -> None:
        async with open_log_parts(folder) as parts:
            await parts.topics.create(NewTopic("a", 3))
            for partition in parts.partitions:
                parts.partitions.remove(partition.topic_partition)
            assert len(parts.partitions) == 0

    run(main())


def test_a_topic_holds_records_once_something_was_written(folder: Path) -> None:
    async def main() -> None:
        async with open_log_parts(folder) as parts:
            await parts.topics.create(NewTopic("a", 2))
            table = parts.partitions
            partition = table.get("a", 1)
            assert partition is not None
            assert not table.holds_records("a")
            partition.append(memoryview(bytearray(batch(b"x"))), acks_all=False, now_ms=now_ms())
            assert table.holds_records("a")
            partition.log.truncate_fully_and_start_at(1, now_ms=now_ms())
            assert table.holds_records("a")

    run(main())
