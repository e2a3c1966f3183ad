"""Settings, each declared once: parsing, documentation, DescribeConfigs and the CLI read the same row.

    TOPIC = ConfigTable(
        Key("segment.bytes", 2**30, at_least(2**20), live=Live.CLUSTER, doc="Roll at this size.",
            synonyms=(Synonym("log.segment.bytes"),)),
    )
    settings = TOPIC.parse({"segment.bytes": "1048576"})
    settings.integer("segment.bytes")

Names and defaults are Kafka's.  Values arrive as text (files, wire, command line) and leave typed.
Knows no concrete setting.
"""

import difflib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from barnabas.base.errors import ConfigFault

__all__ = [
    "ConfigTable",
    "Key",
    "Kind",
    "Live",
    "Settings",
    "Synonym",
    "Value",
    "at_least",
    "between",
    "listed",
    "not_blank",
    "one_of",
    "parse_properties",
]

Value = bool | int | float | str | tuple[str, ...] | None
Check = Callable[[Value], str | None]
"""Says what is wrong with a typed value, or None.  Carries its rule as `__doc__` for the docs page."""


class Kind(IntEnum):
    """Type of a setting; the numbers are those DescribeConfigs answers with."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Live(Enum):
    """Whether a running broker takes a new value, and for whom."""

    READ_ONLY = "read-only"
    BROKER = "per-broker"
    CLUSTER = "cluster-wide"


_WHOLE_LIMITS = {
    Kind.SHORT: (-(2**15), 2**15 - 1),
    Kind.INT: (-(2**31), 2**31 - 1),
    Kind.LONG: (-(2**63), 2**63 - 1),
}


@dataclass(frozen=True, slots=True)
class Synonym:
    """Another setting that supplies the value when this one is not set, `factor` times as large here."""

    name: str
    factor: int = 1


@dataclass(frozen=True, slots=True)
class Key:
    """One setting.  The kind follows from the default's type unless given; None needs it given."""

    name: str
    default: Value
    check: Check | None = None
    kind: Kind | None = None
    live: Live = Live.READ_ONLY
    doc: str = ""
    synonyms: tuple[Synonym, ...] = ()

    def __post_init__(self) -> None:
        if self.kind is None:
            object.__setattr__(self, "kind", _kind_of(self.name, self.default))
        if self.default is not None:
            assert self.fault_in(self.default) is None, f"{self.name}: {self.fault_in(self.default)}"

    @property
    def sensitive(self) -> bool:
        return self.kind is Kind.PASSWORD

    def fault_in(self, value: Value) -> str | None:
        """What is wrong with a typed value, or None."""
        limits = _WHOLE_LIMITS.get(self.kind) if self.kind is not None else None
        if limits is not None and isinstance(value, int) and not limits[0] <= value <= limits[1]:
            return f"must be between {limits[0]} and {limits[1]}"
        return None if self.check is None or value is None else self.check(value)

    def parse(self, text: str | None) -> Value:
        """The typed value of `text`.  Raises ConfigFault that names the setting and what it takes."""
        if text is None:
            if self.default is None:
                return None
            raise ConfigFault(f"{self.name}: a value is needed")
        try:
            value = _PARSERS[self.kind](text.strip()) if self.kind else text
        except ValueError as error:
            raise ConfigFault(f"{self.name}: {self._shown(text)} {error}") from None
        if fault := self.fault_in(value):
            raise ConfigFault(f"{self.name}: {self._shown(text)} {fault}")
        return value

    def text(self, value: Value) -> str | None:
        """The value as it is written in files and answered on the wire; the inverse of `parse`."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        return str(value)

    def _shown(self, text: str) -> str:
        return "the given value" if self.sensitive else repr(text)


def _kind_of(name: str, default: Value) -> Kind:
    match default:
        case bool():
            return Kind.BOOLEAN
        case int():
            return Kind.LONG if not -(2**31) <= default < 2**31 else Kind.INT
        case float():
            return Kind.DOUBLE
        case tuple():
            return Kind.LIST
        case str():
            return Kind.STRING
        case None:
            raise AssertionError(f"{name}: no default, so its kind must be given")


def _parse_boolean(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError("is not true or false")


def _parse_whole(text: str) -> int:
    try:
        return int(text.replace("_", "!"))  # int() takes 1_000, Kafka does not
    except ValueError:
        raise ValueError("is not a whole number") from None


def _parse_double(text: str) -> float:
    try:
        value = float(text.replace("_", "!"))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError("is not a number")
    return value


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",")) if text else ()


_PARSERS: dict[Kind, Callable[[str], Value]] = {
    Kind.BOOLEAN: _parse_boolean,
    Kind.STRING: str,
    Kind.INT: _parse_whole,
    Kind.SHORT: _parse_whole,
    Kind.LONG: _parse_whole,
    Kind.DOUBLE: _parse_double,
    Kind.LIST: _parse_list,
    Kind.CLASS: str,
    Kind.PASSWORD: str,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Typed values of every key of one table, defaults filled in; never changes."""

    table: "ConfigTable"
    values: Mapping[str, Value]
    given: frozenset[str] = field(default_factory=frozenset)
    """Names that were set, not defaulted."""

    def __getitem__(self, name: str) -> Value:
        return self.values[name]

    def integer(self, name: str) -> int:
        value = self.values[name]
        assert isinstance(value, int), f"{name} is not a whole number: {value!r}"
        return value

    def optional_integer(self, name: str) -> int | None:
        return None if self.values[name] is None else self.integer(name)

    def number(self, name: str) -> float:
        value = self.values[name]
        assert isinstance(value, int | float), f"{name} is not a number: {value!r}"
        return float(value)

    def boolean(self, name: str) -> bool:
        value = self.values[name]
        assert isinstance(value, bool), f"{name} is not a boolean: {value!r}"
        return value

    def string(self, name: str) -> str:
        value = self.values[name]
        assert isinstance(value, str), f"{name} is not text: {value!r}"
        return value

    def optional_string(self, name: str) -> str | None:
        return None if self.values[name] is None else self.string(name)

    def items(self, name: str) -> tuple[str, ...]:
        value = self.values[name]
        assert isinstance(value, tuple), f"{name} is not a list: {value!r}"
        return value

    def text(self, name: str) -> str | None:
        """The value as text, as DescribeConfigs answers it."""
        return self.table[name].text(self.values[name])

    def replaced(self, changes: Mapping[str, str | None]) -> "Settings":
        """The same settings with some given anew; None goes back to the default.  Raises ConfigFault."""
        values, given = dict(self.values), set(self.given)
        for name, text in changes.items():
            key = self.table.find(name)
            if text is None:
                values[name] = key.default
                given.discard(name)
            else:
                values[name] = key.parse(text)
                given.add(name)
        return Settings(self.table, values, frozenset(given))


class ConfigTable:
    """The settings of one kind of thing (topic, broker, producer …), in the order declared."""

    __slots__ = ("_keys",)

    def __init__(self, *keys: Key) -> None:
        self._keys = {key.name: key for key in keys}
        assert len(self._keys) == len(keys), "a setting is declared once"

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys.values())

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, name: str) -> bool:
        return name in self._keys

    def __getitem__(self, name: str) -> Key:
        return self._keys[name]

    def __add__(self, other: "ConfigTable") -> "ConfigTable":
        return ConfigTable(*self, *other)

    def find(self, name: str) -> Key:
        """The key called `name`.  Raises ConfigFault with the nearest names there are."""
        if key := self._keys.get(name):
            return key
        near = difflib.get_close_matches(name, self._keys, n=2, cutoff=0.6)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ConfigFault(f"{name}: there is no such setting{hint}")

    def parse(self, given: Mapping[str, str | None]) -> Settings:
        """All settings, with `given` over the defaults.  Raises ConfigFault for the first wrong one."""
        values: dict[str, Value] = {key.name: key.default for key in self}
        for name, text in given.items():
            values[name] = self.find(name).parse(text)
        return Settings(self, values, frozenset(given))

    def faults(self, given: Mapping[str, str | None]) -> list[str]:
        """Everything that `parse` would refuse, a sentence each, so that a user mends it in one go."""
        faults: list[str] = []
        for name, text in given.items():
            try:
                self.find(name).parse(text)
            except ConfigFault as fault:
                faults.append(str(fault))
        return faults

    def markdown(self) -> str:
        """The reference table of the docs page."""
        rows = ["| setting | type | default | takes | changes | meaning |", "|---|---|---|---|---|---|"]
        for key in self:
            kind = key.kind.name.lower() if key.kind else ""
            default = "" if key.default is None else f"`{key.text(key.default)}`"
            takes = (key.check.__doc__ or "") if key.check else ""
            rows.append(
                f"| `{key.name}` | {kind} | {default} | {takes} | {key.live.value} | {_cell(key.doc)} |"
            )
        return "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _rule(check: Check, rule: str) -> Check:
    check.__doc__ = rule
    return check


def at_least(low: float) -> Check:
    """A number not below `low`."""

    def check(value: Value) -> str | None:
        assert isinstance(value, int | float), value
        return None if value >= low else f"must be at least {low}"

    return _rule(check, f"at least {low}")


def between(low: float, high: float) -> Check:
    """A number from `low` to `high`, both included."""

    def check(value: Value) -> str | None:
        assert isinstance(value, int | float), value
        return None if low <= value <= high else f"must be between {low} and {high}"

    return _rule(check, f"{low} to {high}")


def one_of(*allowed: str) -> Check:
    """One of a few words, whatever the case the user writes it in is not changed."""

    def check(value: Value) -> str | None:
        return None if value in allowed else f"must be one of {', '.join(allowed)}"

    return _rule(check, ", ".join(allowed))


def listed(*allowed: str, empty: bool = True) -> Check:
    """A list of a few words, each at most once."""

    def check(value: Value) -> str | None:
        assert isinstance(value, tuple), value
        if not value and not empty:
            return f"must name at least one of {', '.join(allowed)}"
        if len(set(value)) != len(value):
            return "names something twice"
        wrong = [item for item in value if item not in allowed]
        return f"may hold only {', '.join(allowed)}" if wrong else None

    return _rule(check, f"list of {', '.join(allowed)}")


def not_blank(value: Value) -> str | None:
    """text that is not empty"""
    return None if isinstance(value, str) and value.strip() else "must not be empty"


def parse_properties(lines: Iterable[str]) -> dict[str, str]:
    """Settings of a Java properties file: `key=value` or `key: value`, `#` and `!` comments,
    a backslash at the end joins lines.  Raises ConfigFault with the line number."""
    settings: dict[str, str] = {}
    pending = ""
    for number, raw in enumerate(lines, 1):
        line = pending + raw.strip()
        pending = ""
        if not line or line[0] in "#!":
            continue
        if line.endswith("\\"):
            pending = line[:-1]
            continue
        cut = min((at for at in (line.find("="), line.find(":")) if at >= 0), default=-1)
        if cut < 1:
            raise ConfigFault(f"line {number}: {line!r} is not of the form key=value")
        settings[line[:cut].strip()] = line[cut + 1 :].strip()
    if pending:
        raise ConfigFault("the last line ends with a backslash")
    return settings
