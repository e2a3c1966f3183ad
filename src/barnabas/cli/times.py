"""Times as people write them: 10m, PT1H30M, -2d, 2026-05-01T10:00Z, now, @1767225600000.

A moment without a zone is UTC, as in Kafka's tools, so that a command means the same on every machine.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import click

__all__ = ["parse_duration", "parse_moment", "time_text"]

_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_SHORT: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")
_ISO: Final = re.compile(
    r"P(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?"
    r"(?:T(?=\d)(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


def parse_duration(text: str) -> timedelta:
    """10m, 1h30m, 500ms, 2d, or ISO 8601 as PT1H30M.  Raises UsageError."""
    try:
        if _SHORT.fullmatch(text):
            pieces = (float(amount) * _UNITS[unit] for amount, unit in _PART.findall(text))
            return sum(pieces, timedelta())
        if (found := _ISO.fullmatch(text)) and any(found.groups()):
            weeks, days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
            return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError as error:
        raise click.UsageError(f"{text!r} is too long.") from error
    raise click.UsageError(f"{text!r} is not a duration; write 10m, 1h30m, 2d or PT1H30M.")


def parse_moment(text: str, now: datetime | None = None) -> datetime:
    """A date and time, a duration before now as -10m, now, or milliseconds since 1970 as @1767225600000.

    Raises UsageError.
    """
    if text == "now":
        return now or datetime.now(UTC)
    if text.startswith("-"):
        ago = parse_duration(text[1:])
        try:
            return (now or datetime.now(UTC)) - ago
        except OverflowError as error:
            raise click.UsageError(f"{text!r} is before any time.") from error
    try:
        if text.startswith("@"):
            return datetime.fromtimestamp(int(text[1:]) / 1000, UTC)
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError) as error:
        raise click.UsageError(
            f"{text!r} is not a time; write 2026-05-01T10:00:00 (UTC unless it has a zone), -10m, now "
            "or @ and milliseconds since 1970."
        ) from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def time_text(ms: int) -> str:
    """The time of a record, in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
