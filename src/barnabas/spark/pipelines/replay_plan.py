"""What a replay is told: which records, into which topic, how fast, and under which id.

A replay is done once for each id, however often it is started; its state is in the target cluster.
Values; pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal

from barnabas.base.errors import ConfigFault
from barnabas.spark.pipelines.fields import parse_duration_ms, parse_size

__all__ = ["Edge", "Rate", "ReplayPlan", "parse_edge", "parse_rate"]

_RATE: Final = re.compile(r"(?P<count>[\d.]+\s*(?:[kmg]?b)?)\s*/\s*s(?:ec(?:ond)?)?", re.IGNORECASE)
_SPEED: Final = re.compile(r"(?:x\s*(?P<a>\d+(?:\.\d+)?)|(?P<b>\d+(?:\.\d+)?)\s*x)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast: so many records or bytes a second, or `amount` times as fast as it was recorded."""

    kind: Literal["all", "records", "bytes", "speed"] = "all"
    amount: float = 0.0

    def __str__(self) -> str:
        match self.kind:
            case "all":
                return "as fast as it goes"
            case "speed":
                return f"{self.amount:g} times as fast as recorded"
            case _:
                return f"{self.amount:,.0f} {self.kind}/s"


def parse_rate(text: str) -> Rate:
    """`5000/s`, `10mb/s`, `x2`, `x1` (as recorded), `max`.  Raises ConfigFault."""
    word = text.strip().lower()
    if word in ("max", "all", ""):
        return Rate()
    if found := _SPEED.fullmatch(word):
        return _positive(Rate("speed", float(found["a"] or found["b"])), text)
    if found := _RATE.fullmatch(word):
        count = found["count"].strip()
        if count[-1] == "b":
            return _positive(Rate("bytes", float(parse_size(count) or 0)), text)
        try:
            return _positive(Rate("records", float(count)), text)
        except ValueError:
            pass
    raise ConfigFault(f"{text!r} is no rate; write 5000/s, 10mb/s, x2 (twice as fast as recorded) or max")


def _positive(rate: Rate, text: str) -> Rate:
    if rate.amount <= 0:
        raise ConfigFault(f"{text!r} is no rate: it never ends")
    return rate


@dataclass(frozen=True, slots=True)
class Edge:
    """A place in every partition: the start or end of the log, a time, or an offset (of each partition)."""

    kind: Literal["earliest", "latest", "time", "offset", "offsets"]
    amount: int = 0
    offsets: Mapping[int, int] = field(default_factory=dict)


def parse_edge(value: object, *, now_ms: int) -> Edge:
    """`earliest`, `latest`, an offset, offsets of partitions, a time as 2026-05-01T10:00 or `-2h`.

    A time without a zone is UTC.  Raises ConfigFault.
    """
    if isinstance(value, Mapping):
        try:
            return Edge("offsets", offsets={int(part): int(offset) for part, offset in value.items()})
        except (TypeError, ValueError):
            raise ConfigFault(f"{dict(value)!r} does not give an offset for each partition") from None
    text = str(value).strip()
    word = text.lower()
    if word in ("earliest", "beginning", "start"):
        return Edge("earliest")
    if word in ("latest", "end", "now"):
        return Edge("latest")
    if re.fullmatch(r"\d+", word):
        return Edge("offset", int(word))
    if re.fullmatch(r"@\d+", word):
        return Edge("time", int(word[1:]))
    if word.startswith("-") and (ago_ms := parse_duration_ms(word[1:])) is not None:
        return Edge("time", now_ms - ago_ms)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigFault(
            f"{text!r} is no place in a topic; write earliest, latest, an offset, -2h or 2026-05-01T10:00"
        ) from None
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return Edge("time", round(zoned.timestamp() * 1000))


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """One replay.  `topic` names the source, or with `path` the topic in a landing of several."""

    source: Mapping[str, str] = field(repr=False)
    target: Mapping[str, str] = field(repr=False)
    into: str
    id: str
    topic: str = ""
    path: str = ""
    """A folder of Parquet files, as `land` writes them."""
    begin: Edge = Edge("earliest")
    end: Edge = Edge("latest")
    partitions: tuple[int, ...] = ()
    """Only these; all if there are none."""
    rate: Rate = Rate()
    timeout_ms: int = 120_000

    @property
    def reads(self) -> list[str]:
        """For people: what is replayed."""
        return [self.path or self.topic]

    @property
    def writes(self) -> list[str]:
        return [self.into]

    @property
    def group(self) -> str:
        """Holds how far it is, in the target cluster."""
        return f"replay:{self.id}"
