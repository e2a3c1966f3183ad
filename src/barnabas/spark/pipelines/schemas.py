"""The schema of JSON values, learnt from a sample; as the DDL text that Spark takes.

A field is BOOLEAN, BIGINT, DOUBLE, STRING, STRUCT or ARRAY.  Whole numbers and fractions together are DOUBLE;
whatever else does not agree is STRING, and so is a field that never had a value.  Pure.
"""

import json
from collections.abc import Iterable, Mapping

from barnabas.spark.pipelines.errors import PipelineError

__all__ = ["learn_ddl"]

_Type = str | dict[str, "_Type | None"] | list["_Type | None"]
"""A name; the fields of a struct; the one element type of an array.  None: nothing is known yet."""

_LONG_MAX = 2**63


def learn_ddl(values: Iterable[bytes | None], what: str) -> str:
    """The columns of JSON objects.  Values that are none are passed over, unless all are.

    Raises PipelineError, naming `what`, when nothing can be learnt.
    """
    found: _Type | None = None
    objects = 0
    for value in values:
        try:
            document = json.loads(value or b"")
        except ValueError:
            continue
        if isinstance(document, dict):
            objects += 1
            found = _merged(found, _type_of(document))
    if not objects or not isinstance(found, dict):
        raise PipelineError(
            f"the schema of {what} cannot be learnt: there is no JSON object in it yet; give `schema`"
        )
    return ", ".join(f"{_quoted(name)} {_text(kind)}" for name, kind in found.items())


def _type_of(value: object) -> _Type | None:
    match value:
        case None:
            return None
        case bool():
            return "BOOLEAN"
        case int():
            return "BIGINT" if -_LONG_MAX <= value < _LONG_MAX else "DOUBLE"
        case float():
            return "DOUBLE"
        case Mapping():
            return {str(name): _type_of(each) for name, each in value.items()}
        case list():
            element: _Type | None = None
            for each in value:
                element = _merged(element, _type_of(each))
            return [element]
        case _:
            return "STRING"


def _merged(one: _Type | None, other: _Type | None) -> _Type | None:
    if one is None or other is None:
        return one if other is None else other
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: _merged(one.get(name), other.get(name)) for name in {**one, **other}}
    if isinstance(one, list) and isinstance(other, list):
        return [_merged(one[0], other[0])]
    if one == other:
        return one
    if {str(one), str(other)} == {"BIGINT", "DOUBLE"}:
        return "DOUBLE"
    return "STRING"


def _text(kind: _Type | None) -> str:
    match kind:
        case dict():
            inner = ", ".join(f"{_quoted(name)}: {_text(each)}" for name, each in kind.items())
            return f"STRUCT<{inner}>" if kind else "STRING"
        case list():
            return f"ARRAY<{_text(kind[0])}>"
        case _:
            return kind or "STRING"


def _quoted(name: str) -> str:
    plain = name.isascii() and name.isidentifier()
    return name if plain else "`" + name.replace("`", "``") + "`"
