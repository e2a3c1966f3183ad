"""Bytes of a record to objects of the user, when the user looks at them.

`key.deserializer` and `value.deserializer` take a name of DESERIALIZERS or a callable; a callable is called
with (topic, bytes), or with the bytes alone when it takes one argument.  None stays None without being asked.

A record is deserialised on the first look at its key or value and keeps the result: a record that nobody
looks at costs nothing, and one that cannot be read is an error of that record, with its bytes at hand, and
not of the poll that brought it.
"""

import inspect
import json
from collections.abc import Callable
from typing import Any, Final, final

from barnabas.base.errors import ConfigFault
from barnabas.client.config import ClientSettings
from barnabas.client.errors import Serialization
from barnabas.records.record import Header, Record

__all__ = ["DESERIALIZERS", "Deserialize", "TypedRecord", "deserializer_of"]

Deserialize = Callable[[str, bytes], Any]

_UNREAD: Final = object()

DESERIALIZERS: Final[dict[str, Deserialize]] = {
    "bytes": lambda topic, data: data,
    "str": lambda topic, data: data.decode(),
    "json": lambda topic, data: json.loads(data),
}
_ALSO_CALLED: Final = {"string": "str", "bytearray": "bytes", "utf8": "str"}


def deserializer_of(settings: ClientSettings, part: str) -> Deserialize | None:
    """What `<part>.deserializer` names, None when nothing was given.  Raises ConfigFault."""
    given = settings.instance(f"{part}.deserializer")
    if given is None:
        return None
    if isinstance(given, str):
        # Java's class names work, so that a configuration can be carried over.
        name = given.rpartition(".")[2].lower().removesuffix("deserializer")
        name = _ALSO_CALLED.get(name, name)
        if name not in DESERIALIZERS:
            raise ConfigFault(
                f"{part}.deserializer: {given!r} is not one of {', '.join(DESERIALIZERS)}; "
                "give a callable for one of your own"
            )
        return DESERIALIZERS[name]
    made = given() if isinstance(given, type) and hasattr(given, "deserialize") else given
    call = getattr(made, "deserialize", made)
    if not callable(call):
        raise ConfigFault(f"{part}.deserializer: {type(given).__name__} cannot be called")
    return _with_topic(call)


def _with_topic(call: Callable[..., Any]) -> Deserialize:
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not say
        return lambda topic, data: call(data)
    needed = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        and parameter.default is parameter.empty
    ]
    return call if len(needed) >= 2 else lambda topic, data: call(data)


@final
class TypedRecord:
    """A record whose key and value are objects of the user; `raw` is the record as it was read.

    Looking at `key` or `value` raises Serialization, each time anew, when the bytes cannot be read.
    """

    __slots__ = ("_key", "_read_key", "_read_value", "_value", "raw")

    def __init__(self, raw: Record, read_key: Deserialize | None, read_value: Deserialize | None) -> None:
        self.raw = raw
        self._read_key = read_key
        self._read_value = read_value
        self._key: Any = _UNREAD
        self._value: Any = _UNREAD

    @property
    def key(self) -> Any:
        if self._key is _UNREAD:
            self._key = self._read("key", self.raw.key, self._read_key)
        return self._key

    @property
    def value(self) -> Any:
        if self._value is _UNREAD:
            self._value = self._read("value", self.raw.value, self._read_value)
        return self._value

    def _read(self, part: str, data: bytes | None, read: Deserialize | None) -> Any:
        if data is None or read is None:
            return data
        try:
            return read(self.raw.topic or "", data)
        except Exception as error:
            place = f"{self.raw.topic}-{self.raw.partition} at offset {self.raw.offset}"
            raise Serialization(f"{place}: the {part} cannot be deserialized: {error}") from error

    @property
    def topic(self) -> str | None:
        return self.raw.topic

    @property
    def partition(self) -> int:
        return self.raw.partition

    @property
    def offset(self) -> int:
        return self.raw.offset

    @property
    def timestamp(self) -> int:
        return self.raw.timestamp

    @property
    def timestamp_type(self) -> int:
        return self.raw.timestamp_type

    @property
    def leader_epoch(self) -> int:
        return self.raw.leader_epoch

    @property
    def headers(self) -> tuple[Header, ...]:
        return self.raw.headers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedRecord) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return f"TypedRecord({self.raw!r})"
