"""barnabas.broker.topics: defaults filled in, decisions carried out."""

from pathlib import Path

import pytest

from barnabas.base.errors import ConfigFault
from barnabas.broker.topics import DEFAULT_COUNT, PARTITIONS_PER_COMMAND_MAX, TooManyPartitions
from barnabas.controller.changes import InvalidPartitions, TopicExists, UnknownTopic
from barnabas.controller.topics import NewTopic
from barnabas.metadata.image import ConfigResourceType
from tests.broker._parts import open_parts, run


def test_counts_of_minus_one_are_the_brokers_settings(folder: Path) -> None:
    async def main() -> None:
        async with open_parts(folder, {"num.partitions": "6"}) as parts:
            made = await parts.topics.create(NewTopic("t", DEFAULT_COUNT, DEFAULT_COUNT))
            assert len(made.partitions) == 6
            assert parts.cluster.image.topics["t"] is made

    run(main())


def test_wrong_settings_are_found_before_anything_is_made(folder: Path) -> None:
    async def main() -> None:
        async with open_parts(folder) as parts:
            with pytest.raises(ConfigFault, match=r"^retention\.ms: 'x' is not a whole number$"):
                await parts.topics.create(NewTopic("t", config={"retention.ms": "x"}))
            assert "t" not in parts.cluster.image.topics

    run(main())


def test_validating_gives_what_would_be_made_and_makes_nothing(folder: Path) -> None:
    async def main() -> None:
        async with open_parts(folder) as parts:
            would = await parts.topics.create(NewTopic("t", 4), validate_only=True)
            assert len(would.partitions) == 4
            assert "t" not in parts.cluster.image.topics
            await parts.topics.create(NewTopic("t", 4))
            with pytest.raises(TopicExists):
                await parts.topics.create(NewTopic("t", 4), validate_only=True)
            await parts.topics.add_partitions("t", 9, None, validate_only=True)
            assert len(parts.cluster.image.topics["t"].partitions) == 4

    run(main())


def test_too_many_partitions_at_once_are_refused_before_they_cost_anything(folder: Path) -> None:
    async def main() -> None:
        async with open_parts(folder) as parts:
            most = PARTITIONS_PER_COMMAND_MAX
            for new in (NewTopic("t", most + 1), NewTopic("t", assignment=[[1]] * (most + 1))):
                with pytest.raises(TooManyPartitions, match=r"^Excessively large number of partitions"):
                    await parts.topics.create(new)
            await parts.topics.create(NewTopic("t"))
            with pytest.raises(TooManyPartitions):
                await parts.topics.add_partitions("t", most + 2, None, validate_only=True)
            await parts.topics.add_partitions("t", most + 1, None, validate_only=True)

    run(main())


def test_ensuring_makes_a_topic_once(folder: Path) -> None:
    async def main() -> None:
        async with open_parts(folder) as parts:
            first = await parts.topics.ensure("t")
            assert await parts.topics.ensure("t") is first

    run(main())


def test_the_offsets_topic_has_its_own_shape(folder: Path) -> None:
    async def main() -> None:
        settings = {"offsets.topic.num.partitions": "7", "offsets.topic.segment.bytes": "5000000"}
        async with open_parts(folder, settings) as parts:
            made = await parts.topics.ensure("__consumer_offsets")
            assert (len(made.partitions), made.internal) == (7, True)
            assert parts.cluster.image.config(ConfigResourceType.TOPIC, "__consumer_offsets") == {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": "5000000",
            }
            assert {part.replicas for part in made.partitions} == {(1,)}, "as many as there are brokers"

    run(main())


def test_growing_and_deleting(folder: Path) -> None:
    async def main() -> None:
        async with open_parts(folder) as parts:
            await parts.topics.create(NewTopic("t", config={"retention.ms": "5"}))
            await parts.topics.add_partitions("t", 3, None, validate_only=False)
            assert len(parts.cluster.image.topics["t"].partitions) == 3
            with pytest.raises(InvalidPartitions):
                await parts.topics.add_partitions("t", 2, None, validate_only=False)
            await parts.topics.delete("t")
            assert "t" not in parts.cluster.image.topics
            assert parts.cluster.image.config(ConfigResourceType.TOPIC, "t") == {}
            with pytest.raises(UnknownTopic, match=r"^The topic 't' does not exist\.$"):
                await parts.topics.delete("t")

    run(main())
