"""Reading JSON with errors that name node, field and cause."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.store.errors import DocumentFault
from barnabas.store.fields import Fields, dump


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda f: f.integer("text"), "/n: 'text' is 'a', not a whole number"),
        (lambda f: f.integer("flag"), "/n: 'flag' is True, not a whole number"),
        (lambda f: f.integer("none"), "/n: 'none' is missing, not a whole number"),
        (lambda f: f.integer_text("text"), "/n: 'text' is 'a', not a whole number as text"),
        (lambda f: f.integers("texts"), "/n: 'texts' is ['a'], not a list of whole numbers"),
        (lambda f: f.text("number"), "/n: 'number' is 1, not text"),
        (lambda f: f.texts("numbers"), "/n: 'numbers' is [1, 2], not a list of texts"),
        (lambda f: f.texts_by_name("number"), "/n: 'number' is 1, not an object of texts"),
        (
            lambda f: f.integers_by_number("named"),
            "/n: 'named' is {'x': 1}, not an object with whole numbers as names",
        ),
        (
            lambda f: f.integers_by_number("numbered"),
            "/n: 'numbered.0' is ['a'], not a list of whole numbers",
        ),
        (lambda f: f.fields("number"), "/n: number: 1 is not a JSON object"),
        (lambda f: f.rows("number"), "/n: 'number' is 1, not a list"),
        (lambda f: f.rows("numbers"), "/n: numbers[0]: 1 is not a JSON object"),
    ],
)
def test_a_wrong_field_is_named(read: Callable[[Fields], object], text: str) -> None:
    document = {
        "text": "a", "flag": True, "number": 1, "texts": ["a"], "numbers": [1, 2],
        "named": {"x": 1}, "numbered": {"0": ["a"]},
    }  # fmt: skip
    with pytest.raises(DocumentFault) as caught:
        read(Fields.parse("/n", dump(document)))
    assert str(caught.value) == text


def test_absent_fields_have_their_defaults() -> None:
    fields = Fields.parse("/n", b"{}")
    assert fields.integer("x", default=3) == 3
    assert fields.integer_text("x", default=-1) == -1
    assert fields.text("x", optional=True) is None
    assert fields.texts_by_name("x", optional=True) is None
    assert fields.integers_by_number("x", optional=True) == {}
    assert fields.fields("x", optional=True) is None


def test_long_rubbish_is_shown_in_part() -> None:
    with pytest.raises(DocumentFault) as caught:
        Fields.parse("/n", b"?" * 500)
    assert str(caught.value).startswith("/n: b'????")
    assert len(str(caught.value)) < 200


@given(st.binary())
def test_any_bytes_give_an_object_or_a_fault(data: bytes) -> None:
    with suppress(DocumentFault):
        Fields.parse("/n", data)


def test_deep_nesting_is_a_fault() -> None:
    with pytest.raises(DocumentFault, match="is not JSON"):
        Fields.parse("/n", b"[" * 100_000)
