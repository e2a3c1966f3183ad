"""barnabas.cli.offset_files: CSV and JSON with offsets."""

import io

import pytest

from barnabas.base.errors import ConfigFault
from barnabas.base.types import TopicPartition
from barnabas.cli.offset_files import read_json_offsets, read_offsets, write_offsets
from barnabas.client.admin_types import OffsetChange

CHANGE = OffsetChange(TopicPartition('a,"b', 1), None, 7, 0, 9)


def test_what_is_written_is_read_again() -> None:
    lines = list(write_offsets([("g", CHANGE)], with_group=False))
    assert read_offsets(io.StringIO("\n".join(lines)), "any") == {CHANGE.partition: 7}


def test_of_several_groups_only_one_is_read() -> None:
    lines = list(write_offsets([("g", CHANGE), ("h", CHANGE)], with_group=True))
    assert lines[0].startswith('"g",')
    assert read_offsets(io.StringIO("\n".join(lines)), "h") == {CHANGE.partition: 7}
    assert read_offsets(io.StringIO("\n".join(lines)), "none") == {}


@pytest.mark.parametrize("line", ["t,0", "t,zero,1", "g,t,0,1,2", "t"])
def test_a_wrong_line_is_named(line: str) -> None:
    with pytest.raises(ConfigFault, match=r"line 2 is not \[group,\]topic,partition,offset"):
        read_offsets(io.StringIO(f"t,0,1\n{line}\n"), "g")


def test_the_json_of_kafka_is_read() -> None:
    text = '{"partitions": [{"topic": "t", "partition": 0, "offset": -1}], "version": 1}'
    assert read_json_offsets(text) == {TopicPartition("t", 0): -1}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"partitions": 3}',
        '{"partitions": [{"topic": "t"}]}',
        '{"partitions": [{"topic": "t", "partition": "x", "offset": 1}]}',
    ],
)
def test_wrong_json_is_told_the_form(text: str) -> None:
    with pytest.raises(ConfigFault, match="the file must be"):
        read_json_offsets(text)


def test_a_partition_twice_and_another_version_are_refused() -> None:
    row = '{"topic": "t", "partition": 0, "offset": 1}'
    with pytest.raises(ConfigFault, match="t-0 is named twice"):
        read_json_offsets(f'{{"partitions": [{row}, {row}]}}')
    with pytest.raises(ConfigFault, match="version 2"):
        read_json_offsets('{"partitions": [], "version": 2}')
