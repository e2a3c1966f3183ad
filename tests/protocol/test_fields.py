"""What a type checker and a codec see of a declared field."""

from typing import Any, cast

import pytest

from barnabas.protocol import fields
from barnabas.protocol.fields import INT32, array, binary, boolean, int32, records, string, struct, uuid
from barnabas.protocol.schema import Field, Struct


class Inner(Struct):
    number: int = int32(default=-1)


def declared(value: Any) -> Field:
    assert isinstance(value, Field)
    return value


def test_versions_tag_and_ignorable_are_kept() -> None:
    field = declared(string(versions="3-7", nullable="5+", default=None, tag=2, ignorable=True))
    assert (str(field.versions), str(field.nullable), field.tag) == ("3-7", "5+", 2)
    assert field.ignorable
    assert field.default is None


@pytest.mark.parametrize(
    ("field", "default"),
    [
        (int32(), 0),
        (boolean(), False),
        (string(), ""),
        (uuid(), bytes(16)),
        (binary(), b""),
        (records(nullable="0+"), b""),
        (array(INT32), ()),
        (array(Inner, nullable="0+", default=None), None),
        (struct(Inner, nullable="0+"), None),
        (struct(Inner, tag=0), None),
        (struct(Inner), Inner),
    ],
)
def test_a_field_knows_what_it_holds_where_it_is_absent(field: Any, default: Any) -> None:
    assert declared(field).default == default


def test_an_array_keeps_the_kind_or_the_struct_of_its_elements() -> None:
    assert declared(array(INT32)).kind is INT32
    assert declared(array(Inner)).struct is Inner
    assert declared(array(INT32)).is_array


def test_the_annotations_for_bulk_fields_do_nothing_at_run_time() -> None:
    for annotation in (fields.Bulk(), fields.NullableBulk()):
        with pytest.raises(NotImplementedError):
            annotation.__get__(None)
        with pytest.raises(NotImplementedError):
            annotation.__set__(None, cast(Any, b""))
