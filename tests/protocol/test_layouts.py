"""Shared struct layouts."""

from barnabas.protocol.layouts import SHORT, layout, packers, unpackers


def test_one_layout_serves_all_codecs_that_need_it() -> None:
    assert layout("ihq") is layout("ihq")
    assert layout("ihq").pack(1, 2, 3) == b"\0\0\0\1\0\2\0\0\0\0\0\0\0\3"


def test_runs_of_numbers_are_found_by_their_count() -> None:
    numbers = list(range(SHORT))
    packed = packers("i")[SHORT](*numbers)
    assert list(unpackers("i")[SHORT](packed, 0)) == numbers
    assert packers("q")[0]() == b""
