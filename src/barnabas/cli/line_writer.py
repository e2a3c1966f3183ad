"""Records to bytes for stdout: by a template, in the manner of kafka-console-consumer, or as JSON lines.

A renderer takes the records of one poll and gives their bytes.  It is compiled once from the template, so
that a record costs one formatting and no look at the options.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

if TYPE_CHECKING:
    from barnabas.cli.deserializers import Deserializer
    from barnabas.records.record import Record

__all__ = ["Renderer", "json_renderer", "kafka_renderer", "template_renderer", "tolerant", "unescaped"]

Renderer = Callable[[Sequence["Record"]], bytes]

_NO_TIME: Final = -1
_AS_THEY_ARE: "Final[Mapping[str, Deserializer | None]]" = {"key": None, "value": None, "headers": None}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}


class _Field(NamedTuple):
    """How a field is written in a bytes template, and the expression for it over the record `r`."""

    code: str
    expression: str


_FIELDS: Final = {
    "s": _Field("%b", "(null if r.value is None else r.value)"),
    "S": _Field("%d", "(-1 if r.value is None else len(r.value))"),
    "k": _Field("%b", "(null if r.key is None else r.key)"),
    "K": _Field("%d", "(-1 if r.key is None else len(r.key))"),
    "t": _Field("%b", "r.topic.encode()"),
    "p": _Field("%d", "r.partition"),
    "o": _Field("%d", "r.offset"),
    "T": _Field("%d", "r.timestamp"),
    "D": _Field("%b", "time_text(r.timestamp).encode()"),
    "h": _Field("%b", "headers(r.headers)"),
    "e": _Field("%d", "r.leader_epoch"),
}


def unescaped(text: str) -> str:
    r"""Text with \n, \t, \r, \0, \\ and \xHH read as in C."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\\" or at + 1 == len(text):
            parts.append(text[at])
            at += 1
            continue
        kind = text[at + 1]
        if kind == "x":
            try:
                parts.append(chr(int(text[at + 2 : at + 4], 16)))
            except ValueError as error:
                raise click.UsageError(f"{text!r}: \\x needs two hexadecimal digits.") from error
            at += 4
        else:
            parts.append(_ESCAPES.get(kind, "\\" + kind))
            at += 2
    return "".join(parts)


def template_renderer(template: str, *, null: bytes = b"") -> Renderer:
    """A renderer for a template in the manner of kcat.  Raises UsageError.

    %s value, %S its length, %k key, %K its length, %t topic, %p partition, %o offset, %T time in ms,
    %D time as text, %h headers, %e leader epoch, %% a percent sign.
    """
    shown = unescaped(template)
    literals: list[str] = []
    expressions: list[str] = []
    pieces = shown.split("%")
    literals.append(pieces[0])
    at = 1
    while at < len(pieces):
        piece = pieces[at]
        if piece == "" and at + 1 < len(pieces):  # %% splits into an empty piece and what follows
            literals.append("%%" + pieces[at + 1])
            at += 2
            continue
        field = _FIELDS.get(piece[:1])
        if field is None:
            raise click.UsageError(f"%{piece[:1]} is no field; there are %{', %'.join(_FIELDS)} and %%.")
        literals.append(field.code + piece[1:])
        expressions.append(field.expression)
        at += 1
    return _compiled("".join(literals).encode(), expressions, null, b",")


def kafka_renderer(properties: Mapping[str, str]) -> Renderer:
    """A renderer for the properties of Kafka's console consumer, as print.key.  Raises UsageError."""
    unknown = [name for name in properties if name not in _KAFKA_PROPERTIES]
    if unknown:
        known = ", ".join(_KAFKA_PROPERTIES)
        raise click.UsageError(f"{unknown[0]} is no property of the output; there are {known}.")

    def is_on(name: str) -> bool:
        return properties.get(name, "true" if name == "print.value" else "false").strip().lower() == "true"

    readers = {name: _deserializer(properties, f"{name}.deserializer") for name in _AS_THEY_ARE}
    between = properties.get("key.separator", "\t").encode()
    null = properties.get("null.literal", "null").encode()
    line_end = properties.get("line.separator", "\n").encode()
    if not any(is_on(name) for name in _PRINTED) or (_only_value(is_on) and readers["value"] is None):
        return _values_renderer(line_end, null) if is_on("print.value") else lambda records: b""
    opened = {f"print.{what}": field for what, field in _OPENED.items() if readers[what] is not None}
    parts = [opened.get(name, _PRINTED[name]) for name in _PRINTED if is_on(name)]
    template = between.replace(b"%", b"%%").join(part.code.encode() for part in parts)
    return _compiled(
        template + line_end.replace(b"%", b"%%"),
        [part.expression for part in parts],
        null,
        properties.get("headers.separator", ",").encode(),
        empty_headers=b"NO_HEADERS",
        readers=readers,
    )


def _deserializer(properties: Mapping[str, str], name: str) -> "Deserializer | None":
    from barnabas.cli.deserializers import deserializer

    return deserializer(properties[name], name) if name in properties else None


def tolerant(render: Renderer) -> Renderer:
    """The same, but a record that cannot be printed is left out and reported."""
    from barnabas.base.errors import BarnabasError

    def one(record: "Record") -> bytes:
        try:
            return render([record])
        except BarnabasError as error:
            click.echo(f"barnabas: {error}", err=True)
            return b""

    def all_that_can_be(records: "Sequence[Record]") -> bytes:
        try:
            return render(records)
        except BarnabasError:
            return b"".join(map(one, records))

    return all_that_can_be


_PRINTED: Final = {
    "print.timestamp": _Field("%b", "stamp(r)"),
    "print.partition": _Field("Partition:%d", "r.partition"),
    "print.offset": _Field("Offset:%d", "r.offset"),
    "print.delivery": _Field("Delivery:%b", "b'NOT_PRESENT'"),  # only readers of share groups have one
    "print.epoch": _Field("Epoch:%b", "(b'NOT_PRESENT' if r.leader_epoch < 0 else b'%d' % r.leader_epoch)"),
    "print.headers": _Field("%b", "headers(r.headers)"),
    "print.key": _FIELDS["k"],
    "print.value": _FIELDS["s"],
}
_OPENED: Final = {  # with a deserializer: a call for each, which the plain ones are spared
    "key": _Field("%b", "read('key', r, r.key)"),
    "value": _Field("%b", "read('value', r, r.value)"),
}
_KAFKA_PROPERTIES: Final = (
    *_PRINTED, "key.separator", "line.separator", "headers.separator", "null.literal",
    "key.deserializer", "value.deserializer", "headers.deserializer",
)  # fmt: skip


def _only_value(is_on: Callable[[str], bool]) -> bool:
    return is_on("print.value") and not any(is_on(name) for name in _PRINTED if name != "print.value")


def _values_renderer(line_end: bytes, null: bytes) -> Renderer:
    """Values alone: the most common case, and the one for large pipes."""

    def render(records: "Sequence[Record]") -> bytes:
        values = [record.value for record in records]
        if None in values:
            values = [null if value is None else value for value in values]
        values.append(b"")
        return line_end.join(values)  # type: ignore[arg-type]  # no None is left

    return render


def _compiled(
    template: bytes,
    expressions: Sequence[str],
    null: bytes,
    headers_separator: bytes,
    *,
    empty_headers: bytes = b"",
    readers: "Mapping[str, Deserializer | None]" = _AS_THEY_ARE,
) -> Renderer:
    """`template % (expressions)` for each record, joined.  The expressions are of the tables above only."""
    from barnabas.cli.deserializers import NotDeserialized
    from barnabas.cli.times import time_text

    def headers(pairs: Sequence[tuple[str, bytes | None]]) -> bytes:
        if not pairs:
            return empty_headers
        shown = (b"%b:%b" % (name.encode(), opened(readers["headers"], value)) for name, value in pairs)
        return headers_separator.join(shown)

    def opened(reader: "Deserializer | None", data: bytes | None) -> bytes:
        if data is None:
            return null
        return data if reader is None else reader(data)

    def read(what: str, record: "Record", data: bytes | None) -> bytes:
        try:
            return opened(readers[what], data)
        except NotDeserialized as error:
            where = f"{record.topic}-{record.partition} at offset {record.offset}"
            raise NotDeserialized(f"the {what} of {where}: {error}") from error

    def stamp(record: "Record") -> bytes:
        if record.timestamp == _NO_TIME:
            return b"NO_TIMESTAMP"
        return b"%b:%d" % (b"LogAppendTime" if record.timestamp_type else b"CreateTime", record.timestamp)

    names: dict[str, Any] = {
        "null": null, "template": template, "headers": headers, "stamp": stamp, "time_text": time_text,
        "read": read,
    }  # fmt: skip
    values = "".join(f"{expression}, " for expression in expressions)
    render: Renderer = eval(f"lambda records: b''.join([template % ({values}) for r in records])", names)
    return render


def json_renderer() -> Renderer:
    """A JSON object a line, which `barnabas produce --json` takes back.

    Keys, values and header values are strings when they are UTF-8, else {"base64": "..."}; null is null.
    """
    from json.encoder import encode_basestring as quoted

    def text(data: bytes | None) -> str:
        if data is None:
            return "null"
        try:
            return quoted(data.decode())
        except UnicodeDecodeError:
            from base64 import b64encode

            return f'{{"base64": "{b64encode(data).decode()}"}}'

    def headers(record: "Record") -> str:
        return ", ".join(f"[{quoted(name)}, {text(value)}]" for name, value in record.headers)

    def render(records: "Sequence[Record]") -> bytes:
        topics = {name: quoted(name or "") for name in {record.topic for record in records}}
        return "".join(
            [
                f'{{"topic": {topics[r.topic]}, "partition": {r.partition}, "offset": {r.offset}, '
                f'"timestamp": {r.timestamp}, "key": {text(r.key)}, "value": {text(r.value)}, '
                f'"headers": [{headers(r) if r.headers else ""}]}}\n'
                for r in records
            ]
        ).encode()

    return render
