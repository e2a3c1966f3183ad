"""Java's regular expressions on topic names."""

import contextlib
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.spark.topic_patterns import LEGAL, TopicPattern, to_python


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        ("orders", ["orders"], ["orders2", "my-orders", "Orders"]),
        ("orders.*", ["orders", "orders-eu"], ["my-orders"]),
        (r"\Qa.b\E\d+", ["a.b1"], ["axb1", "a.b"]),
        (r"\Qa.b", ["a.b"], ["axb"]),
        (r"\p{Alpha}+-\p{Digit}{2}", ["ab-01"], ["ab-1", "a1-01"]),
        (r"\P{Lower}+", ["ABC-1"], ["AbC"]),
        (r"\p{L}\p{Nd}", ["a1"], ["1a"]),
        (r"\p{IsAlphabetic}+", ["abC"], ["a1"]),
        ("[a-z&&[^b]]+", ["acd"], ["abc"]),
        ("[a-c[x-z]]+", ["axz"], ["ad"]),
        ("[^a-y]+", ["z9"], ["a9"]),
        (r"[\w&&[^\d]]+", ["a_b"], ["a1"]),
        (r"[.\-_]x", [".x", "-x", "_x"], ["ax"]),
        ("[]a]+", ["aa"], ["b"]),
        ("[a-]+", ["a-a"], ["b"]),
        ("(?<region>eu|us)-(?<n>[0-9])-\\k<region>", ["eu-1-eu"], ["eu-1-us"]),
        ("(?i)orders", ["ORDERS"], ["ordersx"]),
        ("a++b", ["aab"], ["aa"]),
        ("(?>a|ab)c", ["ac"], ["abc"]),
        ("(?<!x)a|(?<=b)c", ["a"], ["xa", "bc"]),
        (r"a\z", ["a"], ["ab"]),
        (r"\h*a", ["a"], [" a"]),
        (r"\Da", ["ba"], ["1a"]),
    ],
)
def test_an_expression_means_what_it_means_in_java(pattern: str, fits: list[str], fails: list[str]) -> None:
    compiled = re.compile(to_python(pattern), re.ASCII)
    assert [name for name in fits if compiled.fullmatch(name) is None] == []
    assert [name for name in fails if compiled.fullmatch(name) is not None] == []


def test_a_name_is_taken_when_the_expression_is_anywhere_in_it() -> None:
    assert TopicPattern("orders").matches("my-orders-eu")
    assert not TopicPattern("^orders$").matches("my-orders-eu")
    assert TopicPattern("^orders$").matches("orders")


@pytest.mark.parametrize(
    "pattern", ["[a", "(a", "a\\", r"\p{Greek}", r"\p{Alpha", "(?<a", "*", r"\R", "[z-a]", "[a&&", "[\\"]
)
def test_what_is_no_expression_is_refused_in_one_line(pattern: str) -> None:
    with pytest.raises(ValueError) as caught:
        TopicPattern(pattern)
    assert "\n" not in str(caught.value)
    assert repr(pattern) in str(caught.value)


@given(st.text(alphabet=LEGAL, min_size=1, max_size=20))
def test_a_quoted_name_fits_itself_alone(name: str) -> None:
    pattern = TopicPattern(f"^\\Q{name}\\E$")
    assert pattern.matches(name)
    assert not pattern.matches(name + "x")


@given(st.text(max_size=12))
def test_rubbish_is_an_expression_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        TopicPattern(text).matches("orders")


def test_it_travels() -> None:
    assert pickle.loads(pickle.dumps(TopicPattern("a|b"))) == TopicPattern("a|b")
