"""Kafka's formatters by their names, for the internal topics too.

    --formatter org.apache.kafka.tools.consumer.OffsetsMessageFormatter --topic __consumer_offsets

The class's full name of any Kafka version, its bare name and a short form mean the same.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from barnabas.cli.line_writer import Renderer, kafka_renderer

if TYPE_CHECKING:
    from barnabas.records.record import Record

__all__ = ["formatter"]

_SUFFIX: Final = "messageformatter"
_OFFSET_KEYS: Final = (0, 1)
_GROUP_KEYS: Final = (2,)


def formatter(name: str, properties: Mapping[str, str]) -> Renderer:
    """The renderer that a formatter is.  Raises UsageError for a name or a property that is not known."""
    bare = name.rpartition(".")[2].rpartition("$")[2]
    short = bare.lower().removesuffix(_SUFFIX)
    if short in ("default", "logging"):
        return kafka_renderer(properties)
    if short not in _OTHERS:
        known = ", ".join(["default", *_OTHERS])
        raise click.UsageError(f"--formatter: there is no {name!r}; there are {known}.")
    if properties:
        raise click.UsageError(f"{next(iter(properties))} means nothing to the formatter {short}.")
    return _OTHERS[short]()


def _nothing() -> Renderer:
    return lambda records: b""


def _offsets() -> Renderer:
    from barnabas.log.dump_decoders import decode_offsets

    return _stored(decode_offsets, _OFFSET_KEYS)


def _groups() -> Renderer:
    from barnabas.log.dump_decoders import decode_offsets

    return _stored(decode_offsets, _GROUP_KEYS)


def _transactions() -> Renderer:
    from barnabas.log.dump_decoders import decode_transactions

    return _stored(decode_transactions, (0,))


def _stored(decode: "Callable[[Record], tuple[str | None, str | None]]", kinds: Sequence[int]) -> Renderer:
    """A JSON object a line for the records whose key is of one of these kinds."""

    def shown(record: "Record") -> str | None:
        key, value = decode(record)
        try:
            opened: dict[str, Any] = json.loads(key or "")
            opened["type"] = int(opened["type"])
        except (ValueError, KeyError):  # of another kind, or damaged
            return None
        if opened["type"] not in kinds:
            return None
        stored = None if record.value is None or value is None else json.loads(value)
        if stored is not None:
            stored["version"] = int(stored["version"])
        return json.dumps({"key": opened, "value": stored}, separators=(",", ":"), ensure_ascii=False)

    def render(records: "Sequence[Record]") -> bytes:
        lines = [line for record in records if (line := shown(record)) is not None]
        return "".join(f"{line}\n" for line in lines).encode()

    return render


_OTHERS: Final[dict[str, Callable[[], Renderer]]] = {
    "noop": _nothing,
    "offsets": _offsets,
    "groupmetadata": _groups,
    "transactionlog": _transactions,
}
