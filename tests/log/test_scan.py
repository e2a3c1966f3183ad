"""Scanning a file batch by batch: every damage ends it where the damage begins."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.errors import CorruptSegment
from barnabas.log.files import OsFiles
from barnabas.log.scan import BatchScanner, batch_at, first_batch_ending_at, header_fault, walk_batches
from tests.log._make import batch

FILES = OsFiles()


def scan(path: Path) -> tuple[list[int], int, str | None]:
    """(base offsets, position reached, fault)."""
    file = FILES.open(str(path))
    scanner = BatchScanner(FILES, file, 0, FILES.size(file))
    bases = [each.base_offset for each in scanner]
    return bases, scanner.position, scanner.fault


def three(path: Path, value_bytes: int = 50) -> list[int]:
    """Writes three batches; returns where each begins and where they end."""
    pieces = [batch(base_offset=number, value_bytes=value_bytes, fill=number) for number in range(3)]
    path.write_bytes(b"".join(pieces))
    ends = [0]
    for piece in pieces:
        ends.append(ends[-1] + len(piece))
    return ends


def test_sound_batches_all_come(tmp_path: Path) -> None:
    ends = three(tmp_path / "f")
    assert scan(tmp_path / "f") == ([0, 1, 2], ends[-1], None)


def test_batches_larger_than_the_buffer_come_whole(tmp_path: Path) -> None:
    ends = three(tmp_path / "f", value_bytes=1_500_000)
    assert scan(tmp_path / "f") == ([0, 1, 2], ends[-1], None)


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    assert scan(tmp_path / "f") == ([], 0, None)


def test_every_cut_ends_before_the_cut_batch(tmp_path: Path) -> None:
    ends = three(tmp_path / "f")
    whole = (tmp_path / "f").read_bytes()
    for cut in range(ends[1], ends[3]):
        (tmp_path / "f").write_bytes(whole[:cut])
        kept = sum(1 for end in ends[1:] if end <= cut)
        bases, position, fault = scan(tmp_path / "f")
        assert (bases, position, fault is None) == (list(range(kept)), ends[kept], cut == ends[kept])


@given(data=st.data())
def test_every_flipped_bit_behind_offset_and_epoch_is_found(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("scan") / "f"
    ends = three(path)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(ends[1], ends[3] - 1).filter(lambda at: _checked(at, ends)))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    damaged = 1 if at < ends[2] else 2
    bases, position, fault = scan(path)
    assert (bases, position) == (list(range(damaged)), ends[damaged])
    assert fault is not None


def _checked(at: int, ends: list[int]) -> bool:
    """The base offset and the leader epoch are patched by leaders and lie outside the CRC."""
    inside = at - max(end for end in ends if end <= at)
    return not (inside < 8 or 12 <= inside < 16)


def test_preallocated_zeros_are_no_batch(tmp_path: Path) -> None:
    ends = three(tmp_path / "f")
    with (tmp_path / "f").open("ab") as file:
        file.write(bytes(1000))
    bases, position, fault = scan(tmp_path / "f")
    assert (bases, position) == ([0, 1, 2], ends[3])
    assert fault is not None


def test_a_file_that_shrinks_under_the_scanner_is_a_fault(tmp_path: Path) -> None:
    ends = three(tmp_path / "f")
    file = FILES.open(str(tmp_path / "f"))
    FILES.truncate(file, ends[2] + 70)
    scanner = BatchScanner(FILES, file, 0, ends[3])
    assert len(list(scanner)) == 2
    assert scanner.fault is not None
    assert scanner.fault.startswith("the file ends after 70 of")
    FILES.truncate(file, ends[2])
    scanner = BatchScanner(FILES, file, 0, ends[3])
    assert (len(list(scanner)), scanner.fault) == (2, "the file ends after 0 more bytes")


@pytest.mark.parametrize(
    ("length", "magic", "delta", "left", "text"),
    [
        (100, 1, 0, 200, "message format 1 is not read from disk, only 2"),
        (100, 3, 0, 200, "magic 3 instead of 2"),
        (0, 0, 0, 200, "no batch, but zeros"),
        (48, 2, 0, 200, "a batch of 60 bytes is shorter than its header"),
        (100, 2, 0, 111, "a batch of 112 bytes with 111 bytes left"),
        (100, 2, -1, 200, "last offset delta -1"),
        (100, 2, 0, 112, None),
    ],
)
def test_the_first_thing_that_is_wrong_is_said(
    length: int, magic: int, delta: int, left: int, text: str | None
) -> None:
    assert header_fault(length, magic, delta, left) == text


class TestWalkingByHeaders:
    def test_every_batch_has_its_place(self, tmp_path: Path) -> None:
        ends = three(tmp_path / "f", value_bytes=5000)
        file = FILES.open(str(tmp_path / "f"))
        places = list(walk_batches(FILES, file, 0, ends[-1]))
        assert [(place.position, place.base_offset, place.last_offset) for place in places] == [
            (ends[number], number, number) for number in range(3)
        ]
        assert [batch_at(FILES, file, ends[number], ends[-1]) for number in range(3)] == places
        assert [first_batch_ending_at(FILES, file, 0, ends[-1], offset, None) for offset in (0, 2, 3)] == [
            (0, ends[1], 0),
            (ends[2], ends[3], 2),
            None,
        ]

    @pytest.mark.parametrize("position", [-1, 5, 10**6])
    def test_a_position_that_is_no_boundary_is_found_out(self, tmp_path: Path, position: int) -> None:
        ends = three(tmp_path / "f")
        file = FILES.open(str(tmp_path / "f"))
        for end in (ends[-1], 2 * 10**6):
            if position < end:
                with pytest.raises(CorruptSegment):
                    list(walk_batches(FILES, file, position, end))
                with pytest.raises(CorruptSegment):
                    batch_at(FILES, file, position, end)
                with pytest.raises(CorruptSegment):
                    first_batch_ending_at(FILES, file, position, end, 2, None)

    def test_a_broken_promise_of_an_index_is_found_out(self, tmp_path: Path) -> None:
        ends = three(tmp_path / "f")
        file = FILES.open(str(tmp_path / "f"))
        text = "the index has a batch here that ends with 0, not 1"
        with pytest.raises(CorruptSegment, match=text):
            list(walk_batches(FILES, file, ends[1], ends[3], 0))
        with pytest.raises(CorruptSegment, match=text):
            first_batch_ending_at(FILES, file, ends[1], ends[3], 2, 0)
