"""Facts about a declaration that both generators need: smallest sizes, and where bulk data sits."""

from barnabas.protocol.schema import Field, Struct

__all__ = ["bytes_min", "has_bulk"]


def bytes_min(field: Field, version: int, flexible: bool) -> int:
    """The fewest bytes one element of an array field takes, at least 1.

    At least 1 because a count must never exceed the bytes left; no declared element is empty.
    """
    if field.struct is not None:
        return max(1, _struct_min(field.struct, version, flexible))
    assert field.kind is not None
    return field.kind.width or _length_bytes(field.kind.name, flexible)


def _length_bytes(kind: str, flexible: bool) -> int:
    if flexible:
        return 1
    return 2 if kind == "string" else 4


def _struct_min(cls: type[Struct], version: int, flexible: bool) -> int:
    present = [f for f in cls.FIELDS if f.versions.has(version) and not f.is_tagged(version)]
    return sum(_field_min(field, version, flexible) for field in present) + flexible


def _field_min(field: Field, version: int, flexible: bool) -> int:
    if field.is_array:
        return _length_bytes("array", flexible)
    if field.struct is not None:
        return 1 if field.nullable.has(version) else _struct_min(field.struct, version, flexible)
    assert field.kind is not None
    return field.kind.width or _length_bytes(field.kind.name, flexible)


def has_bulk(cls: type[Struct], version: int) -> bool:
    """Whether the struct, or one inside it, has a bytes or records field in this version."""
    return any(
        has_bulk(field.struct, version)
        if field.struct is not None
        else field.kind is not None and field.kind.name in ("bytes", "records")
        for field in cls.FIELDS
        if field.versions.has(version)
    )
