"""Java's regular expressions on topic names.

Spark's `subscribePattern` takes Java syntax.  Python's differs in a few places, and topic names have only 65
characters, so those places are rewritten: a class of any shape (union, intersection, \\p{…}) becomes the
list of the legal characters in it.  The rest is the same in both languages.  As in Spark's own source, a
topic is taken when the expression is found anywhere in its name; ^ and $ stand for the ends.
"""

import re
import string
from dataclasses import dataclass
from functools import cached_property
from typing import Final

__all__ = ["TopicPattern", "to_python"]

LEGAL: Final = string.ascii_letters + string.digits + "._-"
_ANY: Final = frozenset(LEGAL)
_LETTERS: Final = frozenset(string.ascii_letters)
_DIGITS: Final = frozenset(string.digits)
_LOWER: Final = frozenset(string.ascii_lowercase)
_UPPER: Final = frozenset(string.ascii_uppercase)
_WORD: Final = _LETTERS | _DIGITS | {"_"}
_NONE: Final[frozenset[str]] = frozenset()

_ESCAPES: Final = {
    "d": _DIGITS,
    "D": _ANY - _DIGITS,
    "w": _WORD,
    "W": _ANY - _WORD,
    "s": _NONE,
    "S": _ANY,
    "h": _NONE,
    "H": _ANY,
    "v": _NONE,
    "V": _ANY,
}
_NAMED: Final = {
    "lower": _LOWER,
    "upper": _UPPER,
    "alpha": _LETTERS,
    "digit": _DIGITS,
    "alnum": _LETTERS | _DIGITS,
    "punct": frozenset("._-"),
    "graph": _ANY,
    "print": _ANY,
    "xdigit": frozenset(string.hexdigits),
    "ascii": _ANY,
    "space": _NONE,
    "blank": _NONE,
    "cntrl": _NONE,
    "l": _LETTERS,
    "lu": _UPPER,
    "ll": _LOWER,
    "n": _DIGITS,
    "nd": _DIGITS,
    "p": frozenset("._-"),
    "pd": frozenset("-"),
    "pc": frozenset("_"),
    "javalowercase": _LOWER,
    "javauppercase": _UPPER,
    "javaletter": _LETTERS,
    "javadigit": _DIGITS,
    "javaletterordigit": _LETTERS | _DIGITS,
    "isalphabetic": _LETTERS,
    "isletter": _LETTERS,
    "isdigit": _DIGITS,
    "islowercase": _LOWER,
    "isuppercase": _UPPER,
    "islatin": _LETTERS,
}


@dataclass(frozen=True)
class TopicPattern:
    """A Java regular expression; made only when it can be understood.  Raises ValueError."""

    text: str

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ValueError("the pattern is empty")
        self._compiled  # noqa: B018 -- the look-up compiles it, and raises

    @cached_property
    def _compiled(self) -> "re.Pattern[str]":
        try:
            return re.compile(to_python(self.text), re.ASCII)
        except (re.error, RecursionError) as error:
            raise ValueError(f"{self.text!r} is not a regular expression: {error}") from error

    def matches(self, topic: str) -> bool:
        return self._compiled.search(topic) is not None

    def __reduce__(self) -> "tuple[type[TopicPattern], tuple[str]]":
        return TopicPattern, (self.text,)


def to_python(java: str) -> str:
    """The same expression for Python's `re`.  Raises ValueError for what has no counterpart."""
    return _Reader(java).whole()


class _Reader:
    """Goes through an expression once, left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def whole(self) -> str:
        done: list[str] = []
        while self._at < len(self._text):
            if self._takes("\\Q"):
                done.append(re.escape(self._quoted()))
            elif self._takes("\\k<"):
                done.append(f"(?P={self._until('>')})")
            elif self._text[self._at] == "\\":
                done.append(self._escape_outside())
            elif self._takes("["):
                done.append(_listed(self._class()))
            elif (
                self._text.startswith("(?<", self._at) and self._text[self._at + 3 : self._at + 4] not in "=!"
            ):
                self._at += 3
                done.append(f"(?P<{self._until('>')}>")
            else:
                done.append(self._take())
        return "".join(done)

    def _escape_outside(self) -> str:
        following = self._text[self._at + 1 : self._at + 2]
        if following in "pP" and following:
            self._at += 2
            return _listed(self._property(negated=following == "P"))
        self._at += 2
        match following:
            case "":
                raise ValueError(f"{self._text!r} is not a regular expression: it ends in a backslash")
            case "z":
                return r"\Z"
            case "h" | "H" | "v" | "V":
                return _listed(_ESCAPES[following])
            case "R" | "X" | "G" | "N":
                raise ValueError(f"{self._text!r}: \\{following} is not supported in topic patterns")
            case _:
                return "\\" + following

    def _class(self) -> frozenset[str]:
        """The legal characters of a class whose opening bracket was read."""
        negated = self._takes("^")
        found: frozenset[str] | None = None
        current: set[str] = set()
        first = True
        while True:
            if self._at >= len(self._text):
                raise ValueError(f"{self._text!r} is not a regular expression: a [ is never closed")
            if self._takes("&&"):
                found = frozenset(current) if found is None else found & current
                current = set()
            elif self._text[self._at] == "]" and not first:
                self._at += 1
                break
            elif self._takes("["):
                current |= self._class()
            else:
                current |= self._item()
            first = False
        inside = frozenset(current) if found is None else found & current
        return _ANY - inside if negated else inside

    def _item(self) -> frozenset[str]:
        """A character, an escape or a range of a class."""
        if self._takes("\\Q"):
            return frozenset(self._quoted()) & _ANY
        low: str | frozenset[str] = self._class_escape() if self._takes("\\") else self._take()
        following = self._text[self._at + 1 : self._at + 2]
        if isinstance(low, str) and self._text.startswith("-", self._at) and following not in ("]", "[", ""):
            self._at += 1
            high = self._class_escape() if self._takes("\\") else self._take()
            if not isinstance(high, str) or high < low:
                raise ValueError(f"{self._text!r} is not a regular expression: a range ends before it starts")
            return frozenset(each for each in LEGAL if low <= each <= high)
        return frozenset(low) & _ANY

    def _class_escape(self) -> str | frozenset[str]:
        following = self._take()
        if following in "pP":
            return self._property(negated=following == "P")
        return _ESCAPES.get(following, following)

    def _property(self, *, negated: bool) -> frozenset[str]:
        name = self._until("}") if self._takes("{") else self._take()
        found = _NAMED.get(name.lower(), _NAMED.get(name.lower().removeprefix("is")))
        if found is None:
            raise ValueError(f"{self._text!r}: \\p{{{name}}} is not supported in topic patterns")
        return _ANY - found if negated else found

    def _quoted(self) -> str:
        end = self._text.find("\\E", self._at)
        found = self._text[self._at :] if end < 0 else self._text[self._at : end]
        self._at = len(self._text) if end < 0 else end + 2
        return found

    def _until(self, mark: str) -> str:
        end = self._text.find(mark, self._at)
        if end < 0:
            raise ValueError(f"{self._text!r} is not a regular expression: {mark} is missing")
        found = self._text[self._at : end]
        self._at = end + len(mark)
        return found

    def _takes(self, mark: str) -> bool:
        if self._text.startswith(mark, self._at):
            self._at += len(mark)
            return True
        return False

    def _take(self) -> str:
        if self._at >= len(self._text):
            raise ValueError(f"{self._text!r} is not a regular expression: it ends too early")
        self._at += 1
        return self._text[self._at - 1]


def _listed(characters: frozenset[str]) -> str:
    """A class of exactly these characters; one that never matches when there are none."""
    return f"[{re.escape(''.join(sorted(characters)))}]" if characters else "(?!)"
