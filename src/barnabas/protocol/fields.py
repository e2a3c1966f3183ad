"""The field functions a declaration is written with, one per kind of the wire.

`versions` says where the field is on the wire, `nullable` where it may be None, `tag` makes it a
tagged field, `ignorable` lets an encoder drop a set value in a version without the field.
To a type checker each function returns the value the attribute will hold.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeVar, cast, overload

from barnabas.base.buffers import Buffer
from barnabas.base.types import ZERO_UUID, Uuid
from barnabas.protocol.schema import Field, Kind, Struct
from barnabas.protocol.versions import NEVER, Versions

__all__ = [
    "BOOLEAN",
    "BYTES",
    "FLOAT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "RECORDS",
    "STRING",
    "UINT16",
    "UUID",
    "Bulk",
    "NullableBulk",
    "array",
    "binary",
    "boolean",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "records",
    "string",
    "struct",
    "uint16",
    "uuid",
]

T = TypeVar("T")
S = TypeVar("S", bound=Struct)

BOOLEAN: Final = Kind("bool", False, "?", 1)
INT8: Final = Kind("int8", 0, "b", 1)
INT16: Final = Kind("int16", 0, "h", 2)
UINT16: Final = Kind("uint16", 0, "H", 2)
INT32: Final = Kind("int32", 0, "i", 4)
INT64: Final = Kind("int64", 0, "q", 8)
FLOAT64: Final = Kind("float64", 0.0, "d", 8)
UUID: Final = Kind("uuid", ZERO_UUID, "16s", 16)
STRING: Final = Kind("string", "")
BYTES: Final = Kind("bytes", b"")
RECORDS: Final = Kind("records", b"")

BulkInput = Buffer | Sequence[Buffer]  # a sequence is a list or a tuple


class Bulk:
    """How a type checker sees a field of bytes: decoding gives a view, encoding takes any buffers.

    Only an annotation: at run time the attribute is a plain slot.
    """

    def __get__(self, owner: object, kind: type | None = None, /) -> memoryview:
        raise NotImplementedError

    def __set__(self, owner: object, value: BulkInput, /) -> None:
        raise NotImplementedError


class NullableBulk:
    """The same for a field that may be None."""

    def __get__(self, owner: object, kind: type | None = None, /) -> memoryview | None:
        raise NotImplementedError

    def __set__(self, owner: object, value: BulkInput | None, /) -> None:
        raise NotImplementedError


def _field(
    kind: Kind[T],
    versions: str,
    default: T | None,
    *,
    nullable: str | None = None,
    tag: int | None = None,
    ignorable: bool = False,
) -> T:
    field = Field(
        kind=kind,
        struct=None,
        is_array=False,
        versions=Versions.parse(versions),
        nullable=NEVER if nullable is None else Versions.parse(nullable),
        tag=tag,
        ignorable=ignorable,
        default=default,
    )
    return cast(T, field)  # the class body holds the field, instances hold such a value


def boolean(
    *, versions: str = "0+", default: bool = False, tag: int | None = None, ignorable: bool = False
) -> bool:
    return _field(BOOLEAN, versions, default, tag=tag, ignorable=ignorable)


def int8(*, versions: str = "0+", default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    return _field(INT8, versions, default, tag=tag, ignorable=ignorable)


def int16(*, versions: str = "0+", default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    return _field(INT16, versions, default, tag=tag, ignorable=ignorable)


def uint16(*, versions: str = "0+", default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    return _field(UINT16, versions, default, tag=tag, ignorable=ignorable)


def int32(*, versions: str = "0+", default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    return _field(INT32, versions, default, tag=tag, ignorable=ignorable)


def int64(*, versions: str = "0+", default: int = 0, tag: int | None = None, ignorable: bool = False) -> int:
    return _field(INT64, versions, default, tag=tag, ignorable=ignorable)


def float64(
    *, versions: str = "0+", default: float = 0.0, tag: int | None = None, ignorable: bool = False
) -> float:
    return _field(FLOAT64, versions, default, tag=tag, ignorable=ignorable)


def uuid(
    *, versions: str = "0+", default: Uuid = ZERO_UUID, tag: int | None = None, ignorable: bool = False
) -> Uuid:
    return _field(UUID, versions, default, tag=tag, ignorable=ignorable)


@overload
def string(
    *, versions: str = "0+", default: str = "", tag: int | None = None, ignorable: bool = False
) -> str: ...
@overload
def string(
    *,
    nullable: str,
    versions: str = "0+",
    default: str | None = "",
    tag: int | None = None,
    ignorable: bool = False,
) -> str | None: ...
def string(
    *,
    nullable: str | None = None,
    versions: str = "0+",
    default: str | None = "",
    tag: int | None = None,
    ignorable: bool = False,
) -> str | None:
    return _field(STRING, versions, default, nullable=nullable, tag=tag, ignorable=ignorable)


def binary(
    *,
    versions: str = "0+",
    nullable: str | None = None,
    default: bytes | None = b"",
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """Opaque bytes; annotate the attribute `Bulk` or `NullableBulk`."""
    return _field(BYTES, versions, default, nullable=nullable, tag=tag, ignorable=ignorable)


def records(
    *, versions: str = "0+", nullable: str | None = None, default: bytes | None = b"", ignorable: bool = False
) -> Any:
    """Record batches as bytes; annotate the attribute `Bulk` or `NullableBulk`."""
    return _field(RECORDS, versions, default, nullable=nullable, ignorable=ignorable)


@overload
def array(
    element: type[S], *, versions: str = "0+", tag: int | None = None, ignorable: bool = False
) -> list[S]: ...
@overload
def array(
    element: type[S],
    *,
    nullable: str,
    versions: str = "0+",
    default: tuple[()] | None = (),
    tag: int | None = None,
    ignorable: bool = False,
) -> list[S] | None: ...
@overload
def array(
    element: Kind[T], *, versions: str = "0+", tag: int | None = None, ignorable: bool = False
) -> list[T]: ...
@overload
def array(
    element: Kind[T],
    *,
    nullable: str,
    versions: str = "0+",
    default: tuple[()] | None = (),
    tag: int | None = None,
    ignorable: bool = False,
) -> list[T] | None: ...
def array(
    element: type[Struct] | Kind[Any],
    *,
    versions: str = "0+",
    nullable: str | None = None,
    default: tuple[()] | None = (),
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """A list of structs or of primitives; every message gets a fresh list as its default."""
    return Field(
        kind=element if isinstance(element, Kind) else None,
        struct=None if isinstance(element, Kind) else element,
        is_array=True,
        versions=Versions.parse(versions),
        nullable=NEVER if nullable is None else Versions.parse(nullable),
        tag=tag,
        ignorable=ignorable,
        default=default,
    )


@overload
def struct(kind: type[S], *, versions: str = "0+", ignorable: bool = False) -> S: ...
@overload
def struct(
    kind: type[S], *, nullable: str, versions: str = "0+", tag: int | None = None, ignorable: bool = False
) -> S | None: ...
@overload
def struct(kind: type[S], *, tag: int, versions: str = "0+", ignorable: bool = False) -> S | None: ...
def struct(
    kind: type[Struct],
    *,
    versions: str = "0+",
    nullable: str | None = None,
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """A struct within a struct.  A tagged one is None when the peer left it out, which costs nothing."""
    return Field(
        kind=None,
        struct=kind,
        is_array=False,
        versions=Versions.parse(versions),
        nullable=NEVER if nullable is None else Versions.parse(nullable),
        tag=tag,
        ignorable=ignorable,
        default=None if nullable is not None or tag is not None else kind,
    )
