"""barnabas.cli.formatters: Kafka's formatters by name."""

import json
from collections.abc import Callable

import click
import pytest

from barnabas.cli.formatters import formatter
from barnabas.records.record import Record
from tests.cli.conftest import Tool


@pytest.mark.parametrize(
    "name",
    [
        "default",
        "kafka.tools.DefaultMessageFormatter",
        "org.apache.kafka.tools.consumer.LoggingMessageFormatter",
    ],
)
def test_the_default_takes_the_properties(name: str) -> None:
    render = formatter(name, {"print.key": "true", "key.separator": "="})
    assert render([Record(0, 0, b"k", b"v", [])]) == b"k=v\n"


def test_noop_prints_nothing() -> None:
    assert (
        formatter("org.apache.kafka.tools.consumer.NoOpMessageFormatter", {})([Record(0, 0, b"k", b"v", [])])
        == b""
    )


def test_wrong_names_and_properties() -> None:
    with pytest.raises(click.UsageError, match=r"--formatter: there is no 'x\.Y'; there are default, noop"):
        formatter("x.Y", {})
    with pytest.raises(click.UsageError, match=r"print\.key means nothing to the formatter offsets\."):
        formatter("OffsetsMessageFormatter", {"print.key": "true"})


def test_records_of_another_kind_are_left_out() -> None:
    assert formatter("offsets", {})([Record(0, 0, None, b"v", []), Record(1, 0, b"x", b"v", [])]) == b""


class TestInternalTopics:
    def test_offsets_of_groups(self, tool: Tool, topic: str, name: Callable[[str], str]) -> None:
        group = name("group")
        tool("groups", "reset-offsets", group, "--topic", topic, "--to-latest", "--execute").ok()
        flags = ["--topic", "__consumer_offsets", "--from-beginning", "-e", "--formatter"]
        kafkas = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
        rows = [json.loads(line) for line in tool("consume", *flags, kafkas).ok().lines]
        ours = [row for row in rows if row["key"]["data"]["group"] == group]
        assert ours[0]["key"] == {
            "type": 1, "data": {"group": group, "topic": topic, "partition": 0}
        }  # fmt: skip
        assert ours[0]["value"]["data"]["offset"] == 0
        assert all(row["key"]["type"] in (0, 1) for row in rows)
        groups = [json.loads(line) for line in tool("consume", *flags, "groupmetadata").ok().lines]
        assert all(row["key"]["type"] == 2 for row in groups)

    def test_transactions(self, tool: Tool, topic: str, name: Callable[[str], str]) -> None:
        tid = name("tx")
        tool("perf", "produce", topic, "-n", "5", "--transactional-id", tid).ok()
        flags = ["--topic", "__transaction_state", "--from-beginning", "-e", "--formatter", "transactionlog"]
        rows = [json.loads(line) for line in tool("consume", *flags).ok().lines]
        assert tid in {row["key"]["data"]["transactionalId"] for row in rows}
