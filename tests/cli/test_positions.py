"""barnabas.cli.positions: where reading begins and ends."""

import click
import pytest

from barnabas.base.types import TopicPartition
from barnabas.cli.connection import Connection
from barnabas.cli.positions import Place, Position, offsets_of, parse_position
from barnabas.client.producer import Producer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beginning", Position(Place.BEGINNING)),
        ("Earliest", Position(Place.BEGINNING)),
        ("latest", Position(Place.END)),
        ("end", Position(Place.END)),
        ("0", Position(Place.OFFSET, 0)),
        ("12", Position(Place.OFFSET, 12)),
        ("-5", Position(Place.BEFORE_END, 5)),
        ("@77", Position(Place.TIME, 77)),
        ("1970-01-01T00:00:02Z", Position(Place.TIME, 2000)),
    ],
)
def test_a_position_is_a_word_a_number_or_a_time(text: str, expected: Position) -> None:
    assert parse_position(text) == expected


def test_a_duration_ago_is_a_time() -> None:
    assert parse_position("-10m").place is Place.TIME


def test_what_is_no_position_is_wrong_usage() -> None:
    with pytest.raises(click.UsageError, match="'middle' is not a time"):
        parse_position("middle")


def test_offsets_stay_inside_the_log(bootstrap: str, topic: str) -> None:
    zero = TopicPartition(topic, 0)
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number in range(10):
            producer.send(topic, b"x", partition=0, timestamp_ms=1000 + number)
    with Connection(bootstrap).consumer({}) as consumer:

        def offset(text: str) -> int:
            return offsets_of(consumer, [zero], parse_position(text))[zero]

        assert [offset(text) for text in ("beginning", "end", "4", "99", "-3", "-99")] == [0, 10, 4, 10, 7, 0]
        assert [offset(text) for text in ("@1005", "@0", "-1s")] == [5, 0, 10]
