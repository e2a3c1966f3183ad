"""What a message declaration is made of: kinds, fields, structs, messages.

A class body is the declaration, the only one: attribute names in wire order, each with a field
function of `fields.py`.  Types, constructor, codecs for every version and the reference pages all
come from it.

S1  a field is on the wire in version v if its `versions` has v; elsewhere it holds its default
S2  a tagged field is written only when it differs from its default
S3  every struct of a flexible version ends with a tag section

Instances are plain mutable values without identity: slots, keyword-only constructor, equality.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, dataclass_transform

from barnabas.base.buffers import Buffer
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.versions import NEVER, Versions

if TYPE_CHECKING:
    from barnabas.protocol.api import ApiKey

__all__ = ["Field", "Kind", "Message", "Readable", "Struct", "data", "request", "response"]

T = TypeVar("T")
M = TypeVar("M", bound="Message")

Readable = bytes | bytearray | memoryview
Decoder = Callable[[Readable], Any]
Encoder = Callable[[Any, bytes], list[Buffer]]


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A primitive type of the wire; `format` is its struct code, empty when its width varies."""

    name: str
    default: T
    format: str = ""
    width: int = 0


@dataclass(slots=True, eq=False)
class Field:
    """One declared field.  `kind` is that of the element when `is_array`; a struct has none."""

    kind: Kind[Any] | None
    struct: "type[Struct] | None"
    is_array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    ignorable: bool
    default: Any
    name: str = field(default="", init=False)

    def is_tagged(self, version: int) -> bool:
        return self.tag is not None and self.versions.has(version)


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "[]"


_MISSING = _Missing()  # stands for a fresh list: a shared default could be changed by one owner


@dataclass_transform(kw_only_default=True)
class Declaration(type):
    """Turns field declarations into slots and keeps them, in order, in FIELDS."""

    FIELDS: tuple[Field, ...]

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> "Declaration":
        declared = [(key, value) for key, value in namespace.items() if isinstance(value, Field)]
        for key, value in declared:
            value.name = key
            del namespace[key]
        namespace["__slots__"] = tuple(key for key, _ in declared)
        namespace.setdefault("__init__", _lazy_init)
        cls = super().__new__(mcls, name, bases, namespace, **options)
        cls.FIELDS = tuple(value for _, value in declared)
        return cls


def _make_init(cls: type["Struct"]) -> Callable[..., None]:
    """A constructor with one keyword per field, built on the first call: most classes never need one."""
    names: dict[str, Any] = {"MISSING": _MISSING}
    arguments, body = [], []
    for number, declared in enumerate(cls.FIELDS):
        fresh = declared.is_array and declared.default is not None
        names[f"d{number}"] = _MISSING if fresh else declared.default
        arguments.append(f"{declared.name}=d{number}")
        value = f"[] if {declared.name} is MISSING else {declared.name}" if fresh else declared.name
        if declared.struct is not None and not declared.is_array and declared.default is not None:
            names[f"c{number}"] = declared.struct
            names[f"d{number}"] = _MISSING
            value = f"c{number}() if {declared.name} is MISSING else {declared.name}"
        body.append(f"    self.{declared.name} = {value}")
    source = f"def __init__(self, *, {', '.join(arguments)}):\n" if arguments else "def __init__(self):\n"
    exec(source + ("\n".join(body) or "    pass"), names)
    init: Callable[..., None] = names["__init__"]
    return init


def _lazy_init(self: "Struct", **fields: Any) -> None:
    """The constructor of a class that was never called: makes the real one and leaves it in its place."""
    init = _make_init(type(self))
    setattr(type(self), "__init__", init)  # noqa: B010 -- a type checker takes a plain assignment amiss
    init(self, **fields)


class Struct(metaclass=Declaration):
    """A part of a message: a fixed list of fields, some of them absent in some versions."""

    FIELDS: ClassVar[tuple[Field, ...]]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]  # mutable values do not hash

    def __repr__(self) -> str:
        shown = (f"{f.name}={_short(getattr(self, f.name))}" for f in self.FIELDS)
        return f"{type(self).__name__}({', '.join(shown)})"


def _short(value: object) -> str:
    if isinstance(value, memoryview):
        value = bytes(value[:33])
    text = repr(value)
    return f"{text[:32]}…" if isinstance(value, bytes) and len(text) > 34 else text


class Message(Struct):
    """A whole request, response or stored value, in every version of its range."""

    VERSIONS: ClassVar[Versions]
    FLEXIBLE: ClassVar[Versions]
    API_KEY: ClassVar["ApiKey | None"]
    DECODERS: ClassVar[dict[int, Decoder]]
    ENCODERS: ClassVar[dict[int, Encoder]]

    @classmethod
    def decode(cls, version: int, buffer: Readable) -> Self:
        """The message in `buffer`; bytes and records are views of it.  Raises ProtocolError.

        Bytes after the message are ignored, as Kafka does.
        """
        try:
            decoder = cls.DECODERS[version]
        except KeyError:
            decoder = cls.decoder(version)
        message: Self = decoder(buffer)
        return message

    def encode(self, version: int) -> list[Buffer]:
        """The message as buffers; large and file-backed fields stay buffers of their own.

        Raises ProtocolError for a value that the version cannot carry.
        """
        return self.encoder(version)(self, b"")

    @classmethod
    def decoder(cls, version: int) -> Decoder:
        """The decode function of one version, generated on first use."""
        found = cls.DECODERS.get(version)
        if found is None:
            from barnabas.protocol.generate_decode import build_decoder

            cls.check_version(version)
            found = cls.DECODERS[version] = build_decoder(cls, version)
        return found

    @classmethod
    def encoder(cls, version: int) -> Encoder:
        """The encode function of one version; its second argument goes before the body."""
        found = cls.ENCODERS.get(version)
        if found is None:
            from barnabas.protocol.generate_encode import build_encoder

            cls.check_version(version)
            found = cls.ENCODERS[version] = build_encoder(cls, version)
        return found

    @classmethod
    def check_version(cls, version: int) -> None:
        if not cls.VERSIONS.has(version):
            raise UnsupportedVersion(f"{cls.__name__} has versions {cls.VERSIONS}, not {version}")


def _declare(cls: type[M], key: "ApiKey | None", versions: str, flexible: str) -> type[M]:
    cls.VERSIONS = Versions.parse(versions)
    cls.FLEXIBLE = Versions.parse(flexible) if flexible else NEVER
    cls.API_KEY = key
    cls.DECODERS = {}
    cls.ENCODERS = {}
    return cls


def data(*, versions: str, flexible: str = "none") -> Callable[[type[M]], type[M]]:
    """Declares a message that is stored or embedded, not sent as a request of its own."""
    return lambda cls: _declare(cls, None, versions, flexible)


def request(key: "ApiKey", *, versions: str, flexible: str) -> Callable[[type[M]], type[M]]:
    """Declares the request of an API."""
    return lambda cls: _declare(cls, key, versions, flexible)


def response(key: "ApiKey", *, versions: str, flexible: str) -> Callable[[type[M]], type[M]]:
    """Declares the response of an API; its versions are those of the request."""
    return lambda cls: _declare(cls, key, versions, flexible)
