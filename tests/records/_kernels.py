"""Both kernels side by side, and what their tests share: raw records, mutations, outcomes to compare."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from barnabas.base.errors import BarnabasError
from barnabas.records.kernel import Kernel, load

PLAIN = load("plain")


def compiled() -> Kernel | None:
    try:
        return load("compiled")
    except ImportError:
        return None


COMPILED = compiled()
_not_built = pytest.mark.skipif(COMPILED is None, reason="the extension is not built")
KERNELS = [
    pytest.param(PLAIN, id="plain"),
    pytest.param(COMPILED, id="compiled", marks=_not_built),
]
needs_both = _not_built

Row = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]

INT64 = st.integers(-(2**63), 2**63 - 1)


def rows(*, max_size: int = 12) -> st.SearchStrategy[list[Row]]:
    """Any records, near and far in time, with lengths on both sides of a varint's steps."""
    size = st.sampled_from([0, 1, 2, 62, 63, 64, 65, 127, 128, 300, 8191, 8192])
    data = st.none() | st.binary(max_size=20) | size.map(lambda n: b"x" * n)
    header = st.tuples(st.text(max_size=8).filter(_encodes), st.none() | st.binary(max_size=70))
    timestamp = st.integers(0, 2**44) | INT64
    headers = st.lists(header, max_size=3).map(lambda pairs: tuple(pairs))
    return st.lists(st.tuples(timestamp, data, data, headers), max_size=max_size)


def _encodes(text: str) -> bool:
    return not any(0xD800 <= ord(letter) < 0xE000 for letter in text)


def varint(number: int) -> bytes:
    """A zig-zag varint of any width, so also of widths that no reader may take."""
    value = number << 1 if number >= 0 else (-number << 1) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def raw_record(
    *,
    length: int | None = None,
    attributes: int = 0,
    timestamp_delta: int = 0,
    offset_delta: int = 0,
    key_length: int | None = None,
    key: bytes = b"k",
    value_length: int | None = None,
    value: bytes = b"v",
    header_count: int = 0,
    headers: bytes = b"",
    rest: bytes = b"",
) -> bytes:
    """One record, with any of its lengths replaced by a lie."""
    body = bytes((attributes,)) + varint(timestamp_delta) + varint(offset_delta)
    body += varint(len(key) if key_length is None else key_length) + key
    body += varint(len(value) if value_length is None else value_length) + value
    body += varint(header_count) + headers + rest
    return varint(len(body) if length is None else length) + body


def mutations(payload: bytes, count: int, seed: int) -> list[bytes]:
    """`count` damaged copies of `payload`: bytes changed, cut, doubled, dropped; long ones and short ones."""
    source = random.Random(seed)
    damaged = []
    for _ in range(count):
        data = bytearray(payload)
        for _ in range(source.choice((1, 1, 1, 2, 5))):
            at = source.randrange(len(data)) if data else 0
            match source.randrange(6):
                case 0 | 1 if data:
                    data[at] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))
                case 2:
                    del data[at : at + source.choice((1, 2, 10))]
                case 3:
                    data[at:at] = source.randbytes(source.choice((1, 2, 10)))
                case 4:
                    del data[at:]
                case _:
                    data[at:at] = data[at : at + 20]
        damaged.append(bytes(data))
    return damaged


def outcome(run: Callable[[], Any]) -> object:
    """What a call came to, as a value that can be compared across the twins."""
    try:
        return plain_value(run())
    except (BarnabasError, TypeError, OverflowError) as error:
        # The text of an OverflowError is the interpreter's own.
        return type(error), "" if isinstance(error, OverflowError) else str(error)


def plain_value(value: Any) -> Any:
    """Records and buffers as tuples and bytes; containers keep their shape."""
    if type(value).__name__ == "Record":
        return ("Record", *value.__reduce__()[1])
    if type(value).__name__ == "Block":
        return bytes(value)
    if isinstance(value, tuple | list):
        return [plain_value(item) for item in value]
    return value
