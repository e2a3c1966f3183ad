"""Keys and values of the user to bytes of a record.

`key.serializer` and `value.serializer` take a name of SERIALIZERS or a callable; a callable is called with
(topic, object), or with the object alone when it takes one argument.  None stays None without being asked:
a null value is a tombstone.  Without a serializer bytes-like objects are taken as they are and str as UTF-8.

Whatever goes wrong is a Serialization error that names the topic, the part and the type, with its cause.
"""

import inspect
import json
from collections.abc import Callable
from typing import Final

from barnabas.base.errors import ConfigFault
from barnabas.client.config import ClientSettings
from barnabas.client.errors import Serialization

__all__ = ["SERIALIZERS", "Serialize", "as_bytes", "serializer_of"]

Serialize = Callable[[str, object], bytes | None]
_Unchecked = Callable[[str, object], object]


def as_bytes(topic: str, data: object) -> bytes | None:
    """Bytes-like objects as they are, text as UTF-8."""
    match data:
        case None | bytes():
            return data
        case str():
            return data.encode()
        case bytearray() | memoryview():
            return bytes(data)
        case _:
            raise TypeError("bytes, bytearray, memoryview, str or None is needed")


def _only_bytes(topic: str, data: object) -> bytes | None:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError("bytes, bytearray, memoryview or None is needed")
    return bytes(data)


def _text(topic: str, data: object) -> bytes:
    if not isinstance(data, str):
        raise TypeError("str or None is needed")
    return data.encode()


def _json(topic: str, data: object) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


SERIALIZERS: Final[dict[str, Serialize]] = {"bytes": _only_bytes, "str": _text, "json": _json}
_ALSO_CALLED: Final = {"string": "str", "bytearray": "bytes", "utf8": "str"}


def serializer_of(settings: ClientSettings, part: str) -> Serialize | None:
    """What `<part>.serializer` names, None when nothing was given.  Raises ConfigFault.

    The result raises Serialization only, and gives bytes or None.
    """
    given = settings.instance(f"{part}.serializer")
    if given is None:
        return None
    if isinstance(given, str):
        # Java's class names work, so that a configuration can be carried over.
        name = given.rpartition(".")[2].lower().removesuffix("serializer")
        name = _ALSO_CALLED.get(name, name)
        if name not in SERIALIZERS:
            raise ConfigFault(
                f"{part}.serializer: {given!r} is not one of {', '.join(SERIALIZERS)}; "
                "give a callable for one of your own"
            )
        return _guarded(SERIALIZERS[name], part)
    made = given() if isinstance(given, type) and not issubclass(given, str | bytes) else given
    call = getattr(made, "serialize", made)
    if not callable(call):
        raise ConfigFault(f"{part}.serializer: {type(given).__name__} cannot be called")
    return _guarded(_with_topic(call), part)


def _with_topic(call: Callable[..., object]) -> _Unchecked:
    try:
        needed = [
            parameter
            for parameter in inspect.signature(call).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            and parameter.default is parameter.empty
        ]
    except (TypeError, ValueError):  # a builtin that does not say: str.encode, json.dumps in C …
        needed = [object()]  # type: ignore[list-item]  # only the length counts
    if len(needed) >= 2:
        return call
    return lambda topic, data: call(data)


def _guarded(serialize: _Unchecked, part: str) -> Serialize:
    def guarded(topic: str, data: object) -> bytes | None:
        if data is None:
            return None
        try:
            result = serialize(topic, data)
        except Exception as error:
            raise refusal(topic, part, data, f"{error}") from error
        if result is None or isinstance(result, bytes):
            return result
        if isinstance(result, bytearray | memoryview):
            return bytes(result)
        raise refusal(topic, part, data, f"the serializer gave {type(result).__name__}, not bytes")

    return guarded


def refusal(topic: str, part: str, data: object, cause: str) -> Serialization:
    """The error for a key or value that did not become bytes."""
    return Serialization(f"{topic}: the {part} of type {type(data).__name__} cannot be serialized: {cause}")
