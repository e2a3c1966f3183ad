"""The walk over records: positions that it reports, and where it may begin."""

import pytest

from barnabas.records._walk_plain import piece, read_headers, walk, wrap
from barnabas.records.faults import MalformedRecord
from tests.records._kernels import raw_record, varint


def test_positions_name_the_bytes_of_the_payload() -> None:
    headers = varint(1) + b"h" + varint(-1)
    data = raw_record() + raw_record(
        attributes=3,
        timestamp_delta=-9,
        offset_delta=1,
        key=b"key",
        value=b"",
        header_count=1,
        headers=headers,
    )
    first, second = walk(data, 2)
    assert (first.position, first.end, second.position, second.end) == (0, 9, 9, len(data))
    assert (second.attributes, second.timestamp_delta, second.offset_delta) == (3, -9, 1)
    assert data[second.behind_timestamp : second.key] == varint(1) + varint(3)
    assert piece(data, second.key, second.key_size) == b"key"
    assert piece(data, second.value, second.value_size) == b""
    assert piece(data, 0, -1) is None
    assert read_headers(data, second) == (("h", None),)


def test_it_may_begin_in_the_middle() -> None:
    data = raw_record() + raw_record(offset_delta=1)
    (last,) = walk(data, 2, 1, 9)
    assert last.offset_delta == 1


def test_the_last_step_finds_what_follows() -> None:
    steps = walk(raw_record() + b"x", 1)
    next(steps)
    with pytest.raises(MalformedRecord, match=r"^1 bytes follow the last record$"):
        next(steps)


@pytest.mark.parametrize(
    ("number", "wrapped"), [(0, 0), (2**63 - 1, 2**63 - 1), (2**63, -(2**63)), (-(2**63) - 1, 2**63 - 1)]
)
def test_numbers_wrap_at_64_bits(number: int, wrapped: int) -> None:
    assert wrap(number) == wrapped
