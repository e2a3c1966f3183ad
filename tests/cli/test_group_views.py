"""barnabas.cli.group_views: what is shown of a group."""

import pytest

from barnabas.base.types import TopicPartition
from barnabas.cli.group_views import group_json, lag_json, print_group
from barnabas.client.admin_types import GroupDescription, GroupLag, MemberDescription, PartitionLag
from barnabas.client.metadata import BrokerInfo

PLACES = (TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1))
MEMBER = MemberDescription("m-1", "reader", "/10.0.0.1", "static-1", ("a", "b"), PLACES)
GROUP = GroupDescription("g", "Stable", "consumer", "range", BrokerInfo(3, "host", 9092), (MEMBER,))
LAG = GroupLag(
    GROUP,
    (
        PartitionLag(PLACES[0], 5, 0, 12, 1000, 7.25, MEMBER),
        PartitionLag(PLACES[2], None, 0, 3, None, None, None),
    ),
)


def test_the_lag_stands_where_kafka_puts_it_and_seconds_behind(capsys: pytest.CaptureFixture[str]) -> None:
    print_group(lag_json(LAG), "offsets", False)
    head, first, second = (line.split() for line in capsys.readouterr().out.splitlines())
    assert head[5] == "LAG"
    assert first == ["g", "a", "0", "5", "12", "7", "m-1", "/10.0.0.1", "reader", "7.2"]
    assert second == ["g", "b", "1", "-", "3", "-", "-", "-", "-", "-"], "what was never committed has no lag"


def test_members_with_their_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    print_group(group_json(GROUP), "members", True)
    row = capsys.readouterr().out.splitlines()[1]
    assert row.split(maxsplit=6) == ["g", "m-1", "/10.0.0.1", "reader", "3", "static-1", "a(0,2), b(1)"]


def test_the_state(capsys: pytest.CaptureFixture[str]) -> None:
    print_group(group_json(GROUP), "state", False)
    assert capsys.readouterr().out.splitlines()[1].split() == [
        "g",
        "host:9092",
        "(3)",
        "range",
        "Stable",
        "1",
    ]


def test_a_group_without_members_and_offsets_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    empty = GroupDescription("g", "Empty", "consumer", "", BrokerInfo(3, "host", 9092))
    for view in ("offsets", "members"):
        print_group(lag_json(GroupLag(empty, ())), view, False)
        assert capsys.readouterr() == ("", "Group 'g' has no members; it is Empty.\n")


def test_json_has_the_sum_and_the_worst() -> None:
    shown = lag_json(LAG)
    assert (shown["lag"], shown["lag_seconds"]) == (10, 7.25)
    assert [part["lag"] for part in shown["partitions"]] == [7, None]
