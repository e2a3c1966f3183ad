"""Random messages of any class and version, from the declarations alone."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st

from barnabas.protocol.schema import Field, Kind, Struct

S = TypeVar("S", bound=Struct)
Values = st.SearchStrategy[Any]
Choice = Callable[[Field], Values | None]  # a narrower choice for some fields

_INTEGERS = {"int8": (-(2**7), 2**7 - 1), "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1)}
_INTEGERS |= {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


@cache
def of_kind(name: str) -> Values:
    """Any value of a primitive kind."""
    if name in _INTEGERS:
        return st.integers(*_INTEGERS[name])
    return {
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False),
        "uuid": st.binary(min_size=16, max_size=16) | st.just(bytes(16)),
        "string": st.text(max_size=8),
        "bytes": st.binary(max_size=12),
        "records": st.binary(max_size=12),
    }[name]


def messages(cls: type[S], version: int, narrowed: Any = None) -> st.SearchStrategy[S]:
    """Messages that the version can carry; `narrowed` mirrors the struct and narrows some fields."""
    values = {
        field.name: _of_field(field, version, narrowed) for field in cls.FIELDS if field.versions.has(version)
    }
    return st.builds(cls, **values)


def _of_field(field: Field, version: int, narrowed: Any) -> Values:
    inner = None if narrowed is None else narrowed(field)
    element = _of_element(field.kind, field.struct, version, inner)
    if field.is_array:
        element = st.lists(element, max_size=3)
    if field.struct is not None and not field.is_array and field.tag is not None:
        empty = field.struct()  # what is left out comes back as None
        element = element.map(lambda value: None if value == empty else value) | st.none()
    elif field.nullable.has(version):
        element = st.none() | element
    return element


def _of_element(kind: Kind[Any] | None, struct: type[Struct] | None, version: int, inner: Any) -> Values:
    if struct is not None:
        return messages(struct, version, inner)
    assert kind is not None
    return of_kind(kind.name) if inner is None else inner
