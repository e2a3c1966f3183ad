"""barnabas.base.types: ids and the partition pair."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.types import ZERO_UUID, TopicPartition, uuid_from_text, uuid_text


def test_a_partition_prints_as_its_folder() -> None:
    assert str(TopicPartition("orders", 3)) == "orders-3"


def test_the_zero_id_prints_as_kafka_prints_it() -> None:
    assert uuid_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"


@given(st.binary(min_size=16, max_size=16))
def test_an_id_survives_its_text(raw: bytes) -> None:
    text = uuid_text(raw)
    assert len(text) == 22
    assert uuid_from_text(text) == raw


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("AA", "'AA' is not a topic id: 1 bytes instead of 16"),
        ("AAAA", "'AAAA' is not a topic id: 3 bytes instead of 16"),
    ],
)
def test_a_text_of_the_wrong_length_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        uuid_from_text(text)
    assert str(caught.value) == said


@pytest.mark.parametrize("text", ["", "!" * 22, "A" * 21 + "é"])
def test_a_text_that_is_not_base64_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a topic id"):
        uuid_from_text(text)
