"""Varints and tag sections, the slow paths of generated codecs."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial.writers import write_unsigned_varint
from kio.static.primitive import uvarint as KioUvarint

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.primitives import read_uvarint, skip_tags, uvarint


@given(st.integers(0, 2**32 - 1), st.binary(max_size=3))
def test_a_varint_comes_back_and_ends_where_it_ends(value: int, before: bytes) -> None:
    data = before + uvarint(value) + b"rest"
    assert read_uvarint(data, len(before)) == (value, len(data) - 4)


@given(st.integers(0, 2**32 - 1))
def test_a_varint_is_kios(value: int) -> None:
    buffer = io.BytesIO()
    write_unsigned_varint(buffer, KioUvarint(value))
    assert uvarint(value) == buffer.getvalue()


@pytest.mark.parametrize("data", [b"\xff" * 5, b"\x80\x80\x80\x80\x80\x01", b"\xff\xff\xff\xff\x10"])
def test_a_varint_beyond_32_bits_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match="varint"):
        read_uvarint(data, 0)


def test_a_varint_that_is_cut_runs_off_the_end() -> None:
    with pytest.raises(IndexError):
        read_uvarint(b"\xff\xff", 0)


def test_unknown_tags_are_stepped_over() -> None:
    section = b"\x05\x03abc" + b"\x07\x00"
    assert skip_tags(section + b"rest", 0, 2) == len(section)


def test_many_tags_are_counted_by_a_long_varint() -> None:
    section = b"\x01" + b"\x00\x00" * 200  # 200 is 0xc8 0x01, whose first byte is read already
    assert skip_tags(section, 0, 0xC8) == len(section)


def test_a_tag_longer_than_the_rest_is_refused() -> None:
    with pytest.raises(DecodeError, match="tagged field of 9 bytes passes the end, 5"):
        skip_tags(b"\x00\x09abc", 0, 1)
