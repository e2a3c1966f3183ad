"""Versions that kio does not have, and what coordinators store, pinned by Kafka's own bytes.

`data/golden.jsonl` holds random messages that Apache Kafka's Java classes wrote: those of
kafka-clients 3.9.1 for versions that newer releases dropped, those of 4.3.1 and its coordinators
for stored records.  Each line has the fields as JSON (bytes in hex) and the body in hex; Kafka's
`JsonConverter` read the fields, its `write` made the bytes.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.buffers import join_buffers
from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.schema import Field, Struct
from barnabas.protocol.storage.stored import Stored

from . import oracle
from .declared import classes

_KINDS = ("bytes", "records", "uuid")


@cache
def rows() -> list[dict[str, Any]]:
    path = Path(__file__).parent / "data" / "golden.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def built(cls: type[Struct], values: dict[str, Any]) -> Any:
    """The message that a row's fields describe."""
    fields = {field.name: field for field in cls.FIELDS}
    return cls(**{name: value_of(fields[name], value) for name, value in values.items()})


def value_of(field: Field, value: Any) -> Any:
    if value is None:
        return None
    if field.is_array:
        return [item_of(field, item) for item in value]
    return item_of(field, value)


def item_of(field: Field, value: Any) -> Any:
    if field.struct is not None:
        return built(field.struct, value)
    assert field.kind is not None
    return bytes.fromhex(value) if field.kind.name in _KINDS else value


@pytest.mark.parametrize("name", sorted({row["message"] for row in rows()}))
def test_a_message_is_byte_for_byte_what_kafka_writes(name: str) -> None:
    cls = classes()[name]
    for row in rows():
        if row["message"] == name:
            message, data = built(cls, row["fields"]), bytes.fromhex(row["bytes"])
            assert join_buffers(message.encode(row["version"])) == data
            assert cls.decode(row["version"], data) == message


def test_kio_or_a_golden_line_covers_every_declared_version() -> None:
    golden = {(row["message"], row["version"]) for row in rows()}
    bare = [
        (cls.__name__, version)
        for key in ApiKey
        for cls in (API[key].request, API[key].response)
        for version in range(cls.VERSIONS.low, cls.VERSIONS.high + 1)
        if version not in oracle.known_versions(key.name.lower()) and (cls.__name__, version) not in golden
    ]
    stored = [
        (name, version)
        for name, cls in classes().items()
        if issubclass(cls, Stored)
        for version in range(cls.VERSIONS.low, cls.VERSIONS.high + 1)
        if (name, version) not in golden
    ]
    assert bare == []
    assert stored == []
