"""Lines of files and pipes to records: plain values, keys and headers in the line, JSON lines.

The rules are those of kafka-console-producer: headers first, then the key, then the value, each ended by its
separator; a part that equals the null marker is null.  Bytes stay bytes: nothing is decoded but header names.
A wrong line is an error with its number, or is taken as a value alone when errors are ignored.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, NamedTuple

import click

from barnabas.base.errors import BarnabasError

__all__ = ["BadLine", "Input", "LineFormat", "json_parser", "line_parser", "lines_of"]

_BLOCK_BYTES: Final = 1 << 18


class BadLine(BarnabasError):
    """A line of the input does not have the form that was asked for."""


class Input(NamedTuple):
    """A record to send; what is None is left to the producer."""

    value: bytes | None
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] | None = None
    partition: int | None = None
    timestamp_ms: int | None = None


Parser = Callable[[Iterable[bytes]], Iterator[Input]]


def lines_of(stream: BinaryIO, delimiter: bytes = b"\n") -> Iterator[list[bytes]]:
    """The lines of a stream as they come, some at a time; the last one need not be ended."""
    read = getattr(stream, "read1", stream.read)
    rest: list[bytes] = []
    while block := read(_BLOCK_BYTES):
        if delimiter not in block and len(delimiter) == 1:
            rest.append(block)
            continue
        lines = b"".join([*rest, block]).split(delimiter)
        rest = [lines.pop()]
        if lines:
            yield _without_returns(lines) if delimiter == b"\n" and b"\r" in block else lines
    if last := b"".join(rest):
        yield [last]


def _without_returns(lines: list[bytes]) -> list[bytes]:
    return [line.removesuffix(b"\r") for line in lines]


@dataclass(frozen=True, slots=True)
class LineFormat:
    """How key and headers stand in a line; None means that there are none."""

    key_separator: bytes | None = None
    headers_delimiter: bytes | None = None
    headers_separator: bytes = b","
    headers_key_separator: bytes = b":"
    null_marker: bytes | None = None
    ignores_errors: bool = False

    @classmethod
    def of_properties(cls, properties: Mapping[str, str]) -> "LineFormat":
        """From the properties of Kafka's reader, as parse.key=true.  Raises UsageError."""
        unknown = [name for name in properties if name not in _PROPERTIES]
        if unknown:
            raise click.UsageError(
                f"{unknown[0]} is no property of the input; there are {', '.join(_PROPERTIES)}."
            )

        def is_on(name: str) -> bool:
            return properties.get(name, "false").strip().lower() == "true"

        def separator(name: str, default: str) -> bytes:
            return properties.get(name, default).encode()

        made = cls(
            separator("key.separator", "\t") if is_on("parse.key") else None,
            separator("headers.delimiter", "\t") if is_on("parse.headers") else None,
            separator("headers.separator", ","),
            separator("headers.key.separator", ":"),
            properties["null.marker"].encode() if "null.marker" in properties else None,
            is_on("ignore.error"),
        )
        made.check()
        return made

    def check(self) -> None:
        """Raises UsageError when two separators cannot be told apart, or one is empty."""
        parts: dict[str, bytes | None] = {
            "key separator": self.key_separator if self.headers_delimiter is None else None,
            "headers delimiter": self.headers_delimiter,
            "headers separator": self.headers_separator,
            "headers key separator": self.headers_key_separator,
            "null marker": self.null_marker,
        }
        seen: dict[bytes, str] = {}
        for name, part in parts.items():
            if part is None or (self.headers_delimiter is None and name.startswith("headers")):
                continue
            if not part and name != "null marker":
                raise click.UsageError(f"The {name} may not be empty.")
            if part in seen:
                raise click.UsageError(f"The {name} and the {seen[part]} may not be equal.")
            seen[part] = name


_PROPERTIES: Final = (
    "parse.key",
    "parse.headers",
    "ignore.error",
    "key.separator",
    "headers.delimiter",
    "headers.separator",
    "headers.key.separator",
    "null.marker",
)


def line_parser(form: LineFormat) -> Parser:
    """Reads lines in this form; counts them from 1 over all calls."""
    number = 0

    def part(line: bytes, separator: bytes, what: str) -> tuple[bytes | None, bytes]:
        head, found, tail = line.partition(separator)
        if found:
            return head, tail
        if form.ignores_errors:
            return None, line
        raise BadLine(f"line {number}: there is no {what} {separator.decode()!r} in {_shown(line)}")

    def null(data: bytes | None) -> bytes | None:
        return None if data == form.null_marker else data

    def header(pair: bytes) -> tuple[str, bytes | None]:
        name, found, value = pair.partition(form.headers_key_separator)
        if not found and not form.ignores_errors:
            raise BadLine(f"line {number}: there is no {form.headers_key_separator.decode()!r} in the header "
                          f"{_shown(pair)}")  # fmt: skip
        try:
            return name.decode(), null(value) if found else None
        except UnicodeDecodeError as error:
            raise BadLine(f"line {number}: the header name {_shown(name)} is not UTF-8") from error

    def parse(lines: Iterable[bytes]) -> Iterator[Input]:
        nonlocal number
        for line in lines:
            number += 1
            key: bytes | None = None
            headers: list[tuple[str, bytes | None]] | None = None
            rest = line
            if form.headers_delimiter is not None:
                stated, rest = part(rest, form.headers_delimiter, "headers delimiter")
                if stated and stated != form.null_marker:
                    headers = [header(pair) for pair in stated.split(form.headers_separator)]
            if form.key_separator is not None:
                key, rest = part(rest, form.key_separator, "key separator")
            yield Input(null(rest), None if key is None else null(key), headers)

    return parse


def json_parser(*, keeps_partitions: bool = False) -> Parser:
    """Reads JSON objects as `barnabas consume --json` writes them; `value` alone is enough.

    Strings are UTF-8, {"base64": "..."} is bytes, null is null, anything else is kept as compact JSON.
    Times are kept; partitions only if asked for, because another topic may have fewer.
    """
    import json

    number = 0

    def parse(lines: Iterable[bytes]) -> Iterator[Input]:
        nonlocal number
        for line in lines:
            number += 1
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except ValueError as error:
                raise BadLine(f"line {number} is not JSON: {error}") from error
            record = _input_of(found, number)
            yield record if keeps_partitions else record._replace(partition=None)

    return parse


def _input_of(found: Any, number: int) -> Input:
    if not isinstance(found, dict) or not found.keys() & {"key", "value"}:
        raise BadLine(f"line {number}: a record is an object with key, value or both")
    headers = found.get("headers") or []
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs
    ):
        raise BadLine(f"line {number}: headers are [name, value] pairs, or an object")
    for name in ("partition", "timestamp"):
        if not isinstance(found.get(name), int | None) or isinstance(found.get(name), bool):
            raise BadLine(f"line {number}: {name} is a whole number")
    return Input(
        _bytes_of(found.get("value"), number),
        _bytes_of(found.get("key"), number),
        [(name, _bytes_of(value, number)) for name, value in pairs] or None,
        found.get("partition"),
        found.get("timestamp"),
    )


def _bytes_of(value: Any, number: int) -> bytes | None:
    match value:
        case None:
            return None
        case str():
            return value.encode("utf-8", "surrogatepass")
        case {"base64": str(text)} if len(value) == 1:
            from base64 import b64decode

            try:
                return b64decode(text, validate=True)
            except ValueError as error:
                raise BadLine(f"line {number}: {text!r} is not base64") from error
        case _:
            import json

            return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _shown(data: bytes) -> str:
    text = data[:60].decode(errors="replace")
    return repr(text if len(data) <= 60 else text + "…")
