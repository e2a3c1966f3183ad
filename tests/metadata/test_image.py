"""Looking things up in an image, and what an image refuses to be."""

import dataclasses

import pytest

from barnabas.base.types import TopicPartition
from barnabas.metadata.image import ClusterImage, ConfigResourceType, PartitionImage, TopicImage

TOPIC = TopicImage("t", b"t" * 16, (PartitionImage(1, 0, (1,), (1, 2)), PartitionImage(-1, 3, (), (2,))))
IMAGE = ClusterImage(
    topics={"t": TOPIC},
    topics_by_id={TOPIC.id: TOPIC},
    configs={(ConfigResourceType.TOPIC, "t"): {"retention.ms": "1"}},
)


def test_a_partition_is_found_or_none() -> None:
    assert IMAGE.partition("t", 1) is TOPIC.partitions[1]
    assert IMAGE.partition("t", 2) is None
    assert IMAGE.partition("t", -1) is None
    assert IMAGE.partition("u", 0) is None


def test_a_config_is_what_was_set_or_empty() -> None:
    assert IMAGE.config(ConfigResourceType.TOPIC, "t") == {"retention.ms": "1"}
    assert IMAGE.config(ConfigResourceType.BROKER, "t") == {}


def test_the_partitions_of_a_broker() -> None:
    assert [tp for tp, _ in IMAGE.partitions_of(1)] == [TopicPartition("t", 0)]
    assert [tp for tp, _ in IMAGE.partitions_of(2)] == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert list(IMAGE.partitions_of(3)) == []


def test_an_image_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        IMAGE.cluster_id = "x"  # type: ignore[misc]  # what is tested


@pytest.mark.parametrize(
    "fields",
    [
        {"leader": 9},
        {"isr": (9,)},
        {"adding": (9,)},
        {"removing": (9,)},
        {"offline": (9,)},
        {"replicas": (1, 1)},
    ],
)
def test_a_partition_names_only_its_replicas(fields: dict[str, tuple[int, ...]]) -> None:
    good = PartitionImage(1, 0, (1,), (1, 2))
    with pytest.raises(AssertionError, match="I3"):
        dataclasses.replace(good, **fields)  # type: ignore[arg-type]  # one field each
