"""Topic names: Kafka's rules and texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.names import (
    InvalidTopicName,
    check_collision,
    check_topic_name,
    is_internal,
    topic_name_fault,
)


@pytest.mark.parametrize("name", ["a", "A-1_b.c", "...", "a" * 249, "__consumer_offsets"])
def test_good_names_pass(name: str) -> None:
    check_topic_name(name)
    assert topic_name_fault(name) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "Topic name is invalid: the empty string is not allowed"),
        (".", "Topic name is invalid: '.' is not allowed"),
        ("..", "Topic name is invalid: '..' is not allowed"),
        (
            "a" * 250,
            f"Topic name is invalid: the length of '{'a' * 250}' is longer than the max allowed length 249",
        ),
        (
            "a b",
            "Topic name is invalid: 'a b' contains one or more characters other than"
            " ASCII alphanumerics, '.', '_' and '-'",
        ),
    ],
)
def test_bad_names_are_refused_with_kafkas_text(name: str, text: str) -> None:
    with pytest.raises(InvalidTopicName) as caught:
        check_topic_name(name)
    assert str(caught.value) == text


@pytest.mark.parametrize("name", ["a\n", "é", "٣", "a/b", "a\x00"])
def test_only_ascii_passes(name: str) -> None:
    with pytest.raises(InvalidTopicName, match="contains one or more characters"):
        check_topic_name(name)


def test_names_that_differ_in_dot_and_underscore_collide() -> None:
    with pytest.raises(InvalidTopicName) as caught:
        check_collision("foo.bar", ["x", "foo_bar"])
    assert str(caught.value) == "Topic 'foo.bar' collides with existing topic: foo_bar"
    check_collision("foo.bar", ["foo.bar", "foobar", "foo-bar"])
    check_collision("foobar", ["foo_bar"])


@given(st.text("a._-", min_size=1, max_size=6), st.text("a._-", min_size=1, max_size=6))
def test_a_collision_is_the_same_from_both_sides(one: str, other: str) -> None:
    def collides(name: str, existing: str) -> bool:
        try:
            check_collision(name, [existing])
        except InvalidTopicName:
            return True
        return False

    assert (
        collides(one, other)
        == collides(other, one)
        == (one != other and one.replace(".", "_") == other.replace(".", "_"))
    )


def test_internal_topics_are_known() -> None:
    assert is_internal("__consumer_offsets")
    assert is_internal("__transaction_state")
    assert not is_internal("__mine")
