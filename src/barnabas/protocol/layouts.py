"""Precompiled struct layouts, shared by all codecs, and layouts for runs of one number type."""

from collections.abc import Callable
from functools import cache
from struct import Struct as Layout
from typing import Any, Final

__all__ = ["SHORT", "layout", "packers", "unpackers"]

SHORT: Final = 64  # arrays of up to this many numbers use a precompiled layout


@cache
def layout(formats: str) -> Layout:
    """The big-endian layout of the given struct codes."""
    return Layout(">" + formats)


@cache
def unpackers(code: str) -> tuple[Callable[..., tuple[Any, ...]], ...]:
    """`unpack_from` for 0 to SHORT numbers of one type, by count."""
    return tuple(Layout(f">{count}{code}").unpack_from for count in range(SHORT + 1))


@cache
def packers(code: str) -> tuple[Callable[..., bytes], ...]:
    """`pack` for 0 to SHORT numbers of one type, by count."""
    return tuple(Layout(f">{count}{code}").pack for count in range(SHORT + 1))
