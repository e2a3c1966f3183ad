"""Names of files and folders are Kafka's."""

import pytest

from barnabas.base.types import TopicPartition
from barnabas.log.layout import (
    FOLDER_DELETE,
    marked_folder_name,
    offset_name,
    parse_file_name,
    parse_folder_name,
)

UNIQUE = "0123456789abcdef0123456789abcdef"


def test_a_segment_is_named_by_twenty_digits() -> None:
    assert offset_name(42) == "00000000000000000042"
    assert parse_file_name("00000000000000000042.log") == (42, ".log", "")
    assert parse_file_name("00000000000000000042.timeindex.deleted") == (42, ".timeindex", ".deleted")


@pytest.mark.parametrize("name", ["42.log", "00000000000000000042.bin", "leader-epoch-checkpoint", "x.tmp"])
def test_other_files_are_none_of_ours(name: str) -> None:
    assert parse_file_name(name) is None


def test_the_last_dash_separates_topic_and_partition() -> None:
    assert parse_folder_name("a-b-7") == (TopicPartition("a-b", 7), "")
    assert parse_folder_name("__consumer_offsets-0") == (TopicPartition("__consumer_offsets", 0), "")


@pytest.mark.parametrize("name", ["lost+found", "topic", "topic-", "topic-x", "-1"])
def test_other_folders_are_none_of_ours(name: str) -> None:
    assert parse_folder_name(name) is None


@pytest.mark.parametrize("mark", ["-delete", "-stray", "-future"])
def test_a_marked_folder_keeps_its_partition(mark: str) -> None:
    partition = TopicPartition("my.topic", 3)
    name = marked_folder_name(partition, UNIQUE, mark)
    assert name == f"my.topic-3.{UNIQUE}{mark}"
    assert parse_folder_name(name) == (partition, mark)


def test_the_longest_topic_name_still_fits_a_file_name() -> None:
    name = marked_folder_name(TopicPartition("t" * 249, 12345), UNIQUE, FOLDER_DELETE)
    assert len(name) == 255
    parsed = parse_folder_name(name)
    assert parsed is not None
    assert parsed[0].partition == 12345
