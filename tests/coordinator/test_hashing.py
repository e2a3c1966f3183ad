"""The partition of a group is the one Kafka would choose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordinator.hashing import java_hash, partition_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("abc", 96354),
        ("hello world", 1794106052),
        ("polygenelubricants", -(2**31)),
        ("é", 233),
        ("\U0001f600", 1772899),  # two UTF-16 units: 0xD83D * 31 + 0xDE00
    ],
)
def test_the_hash_is_that_of_java(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_the_smallest_number_counts_as_zero() -> None:
    assert partition_of("polygenelubricants", 50) == 0


def test_a_negative_hash_counts_as_its_absolute_value() -> None:
    assert java_hash("consumer-group") == -1738392088
    assert partition_of("consumer-group", 50) == 1738392088 % 50


@given(st.text(max_size=20), st.integers(1, 200))
def test_the_partition_is_one_of_the_topic(key: str, partition_count: int) -> None:
    assert 0 <= partition_of(key, partition_count) < partition_count
