"""What can be wrong inside one record, and the text for it, shared by both kernels.

A kernel finds a fault as five integers (kind, field, index, got, left), so that the compiled walk needs
no Python object and no lock to report it; `malformed` makes the error of them.
"""

from typing import Final

from barnabas.records.errors import InvalidRecord

__all__ = ["FIELDS", "MalformedRecord", "malformed"]


class MalformedRecord(InvalidRecord):
    """The bytes of one record contradict themselves; `index` counts the records of the batch from 0."""

    index: int = -1


# Kinds; `_kernel_walk.pxi` declares the same numbers.
ENDED: Final = 1  # the payload ends where record `index` should begin; got = records announced
CUT: Final = 2  # the bytes end inside `field`
NOT_VARINT: Final = 3  # more bytes than the width of `field` allows
LENGTH: Final = 4  # the record's own length `got` is impossible with `left` bytes behind it
SIZE: Final = 5  # length or count `got` of `field` is impossible with `left` bytes left in the record
LEFTOVER: Final = 6  # `got` bytes of the record behind its last header
DELTA: Final = 7  # offset delta `got` instead of `left`
FALLING: Final = 8  # offset delta `got` instead of `left` or more
TRAILING: Final = 9  # `got` bytes behind the last record
COUNT: Final = 10  # `got` records cannot be in `left` bytes

LENGTH_FIELD: Final = 0
TIMESTAMP_DELTA: Final = 1
OFFSET_DELTA: Final = 2
KEY_LENGTH: Final = 3
VALUE_LENGTH: Final = 4
HEADER_COUNT: Final = 5
HEADER_KEY_LENGTH: Final = 6
HEADER_VALUE_LENGTH: Final = 7
FIELDS: Final = (
    "length",
    "timestamp delta",
    "offset delta",
    "key length",
    "value length",
    "header count",
    "header key length",
    "header value length",
)

# Length, attributes, timestamp delta, offset delta, key length, value length, header count.
RECORD_BYTES_MIN: Final = 7


def malformed(kind: int, field: int, index: int, got: int, left: int) -> MalformedRecord:
    """The error that names record, field and cause."""
    error = MalformedRecord(_text(kind, FIELDS[field], index, got, left))
    error.index = index
    return error


def _text(kind: int, field: str, index: int, got: int, left: int) -> str:
    match kind:
        case 1:
            return f"the payload ends after {index} of {got} records"
        case 2:
            return f"record {index}: the bytes end inside its {field}"
        case 3:
            return f"record {index}: its {field} is not a varint of that width"
        case 4:
            return f"record {index}: its length is {got}, {left} bytes follow"
        case 5:
            return f"record {index}: its {field} is {got}, {left} bytes follow in the record"
        case 6:
            return f"record {index}: {got} bytes are left over behind its headers"
        case 7:
            return f"record {index}: its offset delta is {got} instead of {left}"
        case 8:
            return f"record {index}: its offset delta is {got} instead of {left} or more"
        case 9:
            return f"{got} bytes follow the last record"
        case _:
            return f"{got} records cannot be in {left} bytes"
