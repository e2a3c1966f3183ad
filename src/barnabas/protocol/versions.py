"""Ranges of message versions, written as Kafka writes them: "0+", "3-5", "2", "none"."""

from typing import Final, NamedTuple

__all__ = ["NEVER", "VERSION_MAX", "Versions"]

VERSION_MAX: Final = 32767  # versions travel as int16


class Versions(NamedTuple):
    """Both ends belong to the range; an empty range has `low` above `high`."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> "Versions":
        if text == "none":
            return NEVER
        if text.endswith("+"):
            return cls(int(text[:-1]), VERSION_MAX)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def has(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __str__(self) -> str:
        if self.low > self.high:
            return "none"
        if self.high == VERSION_MAX:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


NEVER: Final = Versions(0, -1)
