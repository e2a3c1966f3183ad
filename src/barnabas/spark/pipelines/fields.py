"""Strict reading of declared values: every key is asked for by name and type; the rest is an error.

    fields = Fields({"topic": "orders", "trigger": "10s"}, "orders.yaml")
    topic = fields.text("topic")
    trigger_ms = fields.duration_ms("trigger", default=0)
    fields.finish()                       # refuses keys that nobody asked for, with the nearest one there is

Pure; knows no file format.  `lines` maps the path of a value to its line, for messages.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar, overload

from barnabas.spark.pipelines.errors import SpecError

__all__ = ["Fields", "Path", "parse_duration_ms", "parse_size"]

Path = tuple[str | int, ...]
"""Where a value stands in the document: keys and indexes from the top."""

Value = TypeVar("Value")

_MISSING: Final = object()
_DURATION: Final = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)"
)
_DURATION_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(b|kb|mb|gb|tb)?", re.IGNORECASE)
_SIZE_BYTES: Final = {"b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}


def parse_duration_ms(text: str) -> int | None:
    """Milliseconds of `10s`, `500 ms`, `5 minutes`; None when it is no duration."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        return None
    unit = found[2]
    short = "ms" if unit.startswith(("ms", "milli")) else unit[0]
    return round(float(found[1]) * _DURATION_MS[short])


def parse_size(text: str) -> int | None:
    """Bytes of `128mb`, `1.5 GB`, `4096`; None when it is no size."""
    found = _SIZE.fullmatch(text.strip())
    return None if found is None else round(float(found[1]) * _SIZE_BYTES[(found[2] or "b").lower()])


class Fields:
    """One mapping of the document.  Reading a key marks it as known; `finish` refuses the others."""

    def __init__(
        self,
        values: Mapping[str, object],
        origin: str,
        path: Path = (),
        lines: Mapping[Path, int] | None = None,
    ) -> None:
        self._values = values
        self._origin = origin
        self._path = path
        self._lines = lines or {}
        self._known: dict[str, None] = {}

    @property
    def origin(self) -> str:
        """The file, for messages and for paths relative to it."""
        return self._origin

    def has(self, name: str) -> bool:
        self._known[name] = None
        return self._values.get(name) is not None

    def fault(self, name: str | None, why: str) -> SpecError:
        """An error about the value of `name`, or about the whole mapping, with its place."""
        path = self._path if name is None else (*self._path, name)
        line = next(
            (self._lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self._lines), None
        )
        place = self._origin if line is None else f"{self._origin}:{line}"
        label = _label(path)
        return SpecError(f"{place}: {label}{' ' if label else ''}{why}")

    @overload
    def text(self, name: str) -> str: ...
    @overload
    def text(self, name: str, default: Value) -> str | Value: ...
    def text(self, name: str, default: object = _MISSING) -> object:
        """A text; numbers and booleans count as what they look like."""
        value = self._take(name, default)
        if value is default:
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            return str(value)
        if not isinstance(value, str):
            raise self.fault(name, f"must be a text, not {_kind(value)}")
        if not value.strip():
            raise self.fault(name, "is empty")
        return value

    @overload
    def integer(self, name: str, *, least: int = ...) -> int: ...
    @overload
    def integer(self, name: str, default: Value, *, least: int = ...) -> int | Value: ...
    def integer(self, name: str, default: object = _MISSING, *, least: int = 0) -> object:
        value = self._take(name, default)
        if value is default:
            return value
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.fault(name, f"must be a whole number, not {value!r}")
        if value < least:
            raise self.fault(name, f"must be at least {least}, not {value}")
        return value

    def boolean(self, name: str, default: bool) -> bool:
        value = self._take(name, default)
        if not isinstance(value, bool):
            raise self.fault(name, f"must be true or false, not {value!r}")
        return value

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        value = self.text(name) if default is None else self.text(name, default)
        if value not in choices:
            raise self.fault(name, f"must be {_either(choices)}, not {value!r}{_nearest(value, choices)}")
        return value

    def texts(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """A list of texts, or one text with commas."""
        value = self._take(name, _MISSING if default is None else default)
        if value is default:
            return default or ()
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        if not isinstance(value, list | tuple) or not all(isinstance(part, str) and part for part in value):
            raise self.fault(name, f"must be a name or a list of names, not {_kind(value)}")
        if not value:
            raise self.fault(name, "is empty")
        return tuple(value)

    @overload
    def duration_ms(self, name: str) -> int: ...
    @overload
    def duration_ms(self, name: str, default: Value) -> int | Value: ...
    def duration_ms(self, name: str, default: object = _MISSING) -> object:
        value = self._take(name, default)
        if value is default:
            return value
        ms = parse_duration_ms(value) if isinstance(value, str) else None
        if ms is None:
            raise self.fault(name, f"must be a duration as 10s, 5m or 1h, not {value!r}")
        return ms

    @overload
    def size(self, name: str) -> int: ...
    @overload
    def size(self, name: str, default: Value) -> int | Value: ...
    def size(self, name: str, default: object = _MISSING) -> object:
        """A number of bytes."""
        value = self._take(name, default)
        if value is default:
            return value
        found = (
            parse_size(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else None
        )
        if not found:
            raise self.fault(name, f"must be a size as 128mb or 1gb, not {value!r}")
        return found

    def pairs(self, name: str) -> dict[str, str]:
        """A mapping of names to texts; empty when it is not there."""
        section = self.section(name)
        if section is None:
            return {}
        return {key: section.text(key) for key in section.keys()}  # noqa: SIM118 -- not a dict

    def keys(self) -> list[str]:
        return list(self._values)

    def section(self, name: str) -> "Fields | None":
        """The mapping under `name`, None when it is not there."""
        value = self._take(name, None)
        return None if value is None else self._section(name, (*self._path, name), value)

    def sections(self, name: str) -> "list[Fields]":
        """The mappings listed under `name`; one mapping counts as a list of one."""
        value = self._take(name, None)
        if value is None:
            return []
        path = (*self._path, name)
        if isinstance(value, Mapping):
            return [self._section(name, path, value)]
        if not isinstance(value, list | tuple):
            raise self.fault(name, f"must be a mapping or a list of mappings, not {_kind(value)}")
        return [self._section(name, (*path, number), each) for number, each in enumerate(value)]

    def value(self, name: str, default: object = None) -> object:
        """The value as it stands, for what no other method reads."""
        return self._take(name, default)

    def finish(self) -> None:
        """Raises SpecError for the first key that nobody asked for."""
        for name in self._values:
            if name not in self._known:
                known = ", ".join(self._known)
                near = _nearest(str(name), list(self._known))
                raise self.fault(str(name), f"is not known{near or f'; known are {known}'}")

    def refuse_misspelt(self, *names: str) -> None:
        """Raises SpecError when one of `names` is missing and a key looks like it."""
        for key in self._values:
            near = difflib.get_close_matches(key, names, n=1, cutoff=0.6)
            if near and key not in self._known:
                raise self.fault(key, f"is not known; did you mean {near[0]}?")

    def _section(self, name: str, path: Path, value: object) -> "Fields":
        if not isinstance(value, Mapping):
            raise self.fault(name, f"must be a mapping of names to values, not {_kind(value)}")
        wrong = next((key for key in value if not isinstance(key, str)), None)
        if wrong is not None:
            raise self.fault(name, f"has the key {wrong!r}, which is no name")
        return Fields(value, self._origin, path, self._lines)

    def _take(self, name: str, default: object) -> object:
        self._known[name] = None
        value = self._values.get(name)
        if value is not None:
            return value
        if default is _MISSING:
            self.refuse_misspelt(name)
            raise self.fault(None, f"wants the key {name!r}")
        return default


def _label(path: Path) -> str:
    label = ""
    for part in path:
        label += f"[{part}]" if isinstance(part, int) else f".{part}" if label else part
    return label


def _kind(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case _:
            return repr(value)


def _either(choices: Sequence[str]) -> str:
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
