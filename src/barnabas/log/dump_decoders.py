"""Internal topics made readable: group, offset and transaction records as kafka-dump-log's JSON.

A decoder takes key and value of one record and gives both as text, or None for nothing to print.
It never raises for bad bytes: it says what is wrong in place of the key, and the dump goes on.
"""

import base64
import json
from collections.abc import Callable
from typing import Any, Final

from barnabas.base.types import uuid_text
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.fields import UUID
from barnabas.protocol.schema import Field, Struct
from barnabas.protocol.storage import consumer_groups, offsets, transactions
from barnabas.protocol.storage.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from barnabas.protocol.storage.stored import Stored, stored_version
from barnabas.records.record import Record

__all__ = ["Decoder", "Printed", "decode_offsets", "decode_text", "decode_transactions"]

Printed = tuple[str | None, str | None]
Decoder = Callable[[Record], Printed]

_DELETED: Final = "<DELETE>"
_OFFSETS: Final[dict[int, tuple[type[Stored], type[Stored]]]] = {
    0: (offsets.OffsetCommitKey, offsets.OffsetCommitValue),
    1: (offsets.OffsetCommitKey, offsets.OffsetCommitValue),
    2: (offsets.GroupMetadataKey, offsets.GroupMetadataValue),
    3: (consumer_groups.ConsumerGroupMetadataKey, consumer_groups.ConsumerGroupMetadataValue),
    4: (
        consumer_groups.ConsumerGroupPartitionMetadataKey,
        consumer_groups.ConsumerGroupPartitionMetadataValue,
    ),
    5: (consumer_groups.ConsumerGroupMemberMetadataKey, consumer_groups.ConsumerGroupMemberMetadataValue),
    6: (
        consumer_groups.ConsumerGroupTargetAssignmentMetadataKey,
        consumer_groups.ConsumerGroupTargetAssignmentMetadataValue,
    ),
    7: (
        consumer_groups.ConsumerGroupTargetAssignmentMemberKey,
        consumer_groups.ConsumerGroupTargetAssignmentMemberValue,
    ),
    8: (
        consumer_groups.ConsumerGroupCurrentMemberAssignmentKey,
        consumer_groups.ConsumerGroupCurrentMemberAssignmentValue,
    ),
    16: (
        consumer_groups.ConsumerGroupRegularExpressionKey,
        consumer_groups.ConsumerGroupRegularExpressionValue,
    ),
}
_TRANSACTIONS: Final[dict[int, tuple[type[Stored], type[Stored]]]] = {
    0: (transactions.TransactionLogKey, transactions.TransactionLogValue),
}


def decode_text(record: Record) -> Printed:
    """Key and value as UTF-8, with U+FFFD for bytes that are not."""
    return (
        None if record.key is None else record.key.decode("utf-8", "replace"),
        None if record.value is None else record.value.decode("utf-8", "replace"),
    )


def decode_offsets(record: Record) -> Printed:
    """A record of `__consumer_offsets`."""
    return _decode(record, _OFFSETS)


def decode_transactions(record: Record) -> Printed:
    """A record of `__transaction_state`."""
    return _decode(record, _TRANSACTIONS)


def _decode(record: Record, kinds: dict[int, tuple[type[Stored], type[Stored]]]) -> Printed:
    if record.key is None:
        return f"Error at offset {record.offset}, skipping. The record has no key.", None
    try:
        kind = stored_version(record.key)
        if kind not in kinds:
            return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
        key_type, value_type = kinds[kind]
        key = _compact({"type": str(kind), "data": to_json(key_type.decode_versioned(record.key), kind)})
        if record.value is None:
            return key, _DELETED
        version = stored_version(record.value)
        data = to_json(value_type.decode_versioned(record.value), version)
        if data.get("protocolType") == "consumer":
            _open_members(data)
        return key, _compact({"version": str(version), "data": data})
    except ProtocolError as error:
        return f"Error at offset {record.offset}, skipping. {error}", None


def _open_members(group: dict[str, Any]) -> None:
    """Members of a classic consumer group carry blobs that are messages of their own."""
    for member in group["members"]:
        for name, kind in (
            ("subscription", ConsumerProtocolSubscription),
            ("assignment", ConsumerProtocolAssignment),
        ):
            blob = base64.b64decode(member[name])
            try:
                member[name] = to_json(kind.decode_versioned(blob), stored_version(blob))
            except ProtocolError:
                continue  # another client's own bytes: they stay as they are


def to_json(message: Struct, version: int) -> dict[str, Any]:
    """The fields that the version has, named and shown as Kafka's generated JSON converters do."""
    shown: dict[str, Any] = {}
    for declared in message.FIELDS:
        value = getattr(message, declared.name)
        if declared.versions.has(version) and not (declared.tag is not None and value == declared.default):
            shown[_camel(declared.name)] = _value(declared, value, version)
    return shown


def _value(declared: Field, value: Any, version: int) -> Any:
    if value is None:
        return None
    if declared.is_array:
        return [_item(declared, item, version) for item in value]
    return _item(declared, value, version)


def _item(declared: Field, value: Any, version: int) -> Any:
    if isinstance(value, Struct):
        return to_json(value, version)
    if declared.kind is UUID:
        return uuid_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    return value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _compact(shown: dict[str, Any]) -> str:
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)
