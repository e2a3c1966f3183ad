"""Reading a JSON document field by field, with errors that name the node, the field and the cause."""

import json
import re
from typing import Any, Literal, NoReturn, overload

from barnabas.store.errors import DocumentFault

__all__ = ["Fields", "dump"]

_DIGITS = re.compile(r"-?\d{1,19}", re.ASCII)
_TEXT_SHOWN_MAX = 80


def dump(document: object) -> bytes:
    """The document as compact JSON."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


class Fields:
    """One JSON object.  Every reader raises DocumentFault for a field that is not as it should be."""

    __slots__ = ("_document", "_place")

    def __init__(self, place: str, document: object) -> None:
        self._place = place
        if not isinstance(document, dict):
            self._refuse(f"{_shown(document)} is not a JSON object")
        self._document: dict[str, Any] = document

    @classmethod
    def parse(cls, path: str, data: bytes) -> "Fields":
        """The object in the node at `path`."""
        try:
            # RecursionError: a document nested thousands deep is no document of ours.
            document = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise DocumentFault(f"{path}: {_shown(data)} is not JSON: {error}") from error
        return cls(path, document)

    def fault(self, cause: str) -> DocumentFault:
        """An error to raise about the object as a whole."""
        return DocumentFault(f"{self._place}: {cause}")

    def items(self) -> list[tuple[str, "Fields"]]:
        """The fields, each an object."""
        return [(name, Fields(f"{self._place}: {name}", value)) for name, value in self._document.items()]

    def integer(self, name: str, *, default: int | None = None) -> int:
        value = self._document.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            self._refuse_field(name, value, "a whole number")
        return value

    def integer_text(self, name: str, *, default: int | None = None) -> int:
        """A number that is written as text; as a number it is taken too."""
        value = self._document.get(name, default)
        if isinstance(value, str) and _DIGITS.fullmatch(value):
            return int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            self._refuse_field(name, value, "a whole number as text")
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        return self._integers(name, self._document.get(name))

    @overload
    def text(self, name: str) -> str: ...
    @overload
    def text(self, name: str, *, optional: Literal[True]) -> str | None: ...
    def text(self, name: str, *, optional: bool = False) -> str | None:
        value = self._document.get(name)
        if value is None and optional:
            return None
        if not isinstance(value, str):
            self._refuse_field(name, value, "text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        values = self._document.get(name)
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            self._refuse_field(name, values, "a list of texts")
        return tuple(values)

    @overload
    def texts_by_name(self, name: str) -> dict[str, str]: ...
    @overload
    def texts_by_name(self, name: str, *, optional: Literal[True]) -> dict[str, str] | None: ...
    def texts_by_name(self, name: str, *, optional: bool = False) -> dict[str, str] | None:
        values = self._document.get(name)
        if values is None and optional:
            return None
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            self._refuse_field(name, values, "an object of texts")
        return values

    def integers_by_number(self, name: str, *, optional: bool = False) -> dict[int, tuple[int, ...]]:
        """An object that maps numbers, written as text, to lists of numbers."""
        values = self._document.get(name)
        if values is None and optional:
            return {}
        if not isinstance(values, dict) or not all(_DIGITS.fullmatch(key) for key in values):
            self._refuse_field(name, values, "an object with whole numbers as names")
        return {int(key): self._integers(f"{name}.{key}", value) for key, value in values.items()}

    @overload
    def fields(self, name: str) -> "Fields": ...
    @overload
    def fields(self, name: str, *, optional: Literal[True]) -> "Fields | None": ...
    def fields(self, name: str, *, optional: bool = False) -> "Fields | None":
        value = self._document.get(name)
        if value is None and optional:
            return None
        return Fields(f"{self._place}: {name}", value)

    def rows(self, name: str) -> list["Fields"]:
        """A list of objects."""
        values = self._document.get(name)
        if not isinstance(values, list):
            self._refuse_field(name, values, "a list")
        return [Fields(f"{self._place}: {name}[{index}]", value) for index, value in enumerate(values)]

    def _integers(self, name: str, values: object) -> tuple[int, ...]:
        if not isinstance(values, list) or not all(type(value) is int for value in values):
            self._refuse_field(name, values, "a list of whole numbers")
        return tuple(values)

    def _refuse_field(self, name: str, value: object, wanted: str) -> NoReturn:
        self._refuse(f"{name!r} is {'missing' if value is None else _shown(value)}, not {wanted}")

    def _refuse(self, cause: str) -> NoReturn:
        raise self.fault(cause)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _TEXT_SHOWN_MAX else f"{text[:_TEXT_SHOWN_MAX]}…"
