"""Offset and time indexes: Kafka's bytes, look-ups like a sorted list, cuts, and checks."""

import struct
from bisect import bisect_right
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.errors import CorruptIndex, DiskFault
from barnabas.log.files import OsFiles
from barnabas.log.index import OffsetIndex, OffsetPosition, TimeIndex, TimestampOffset

FILES = OsFiles()
BASE = 1000


def offset_index(folder: Path) -> OffsetIndex:
    index = OffsetIndex(FILES, str(folder / "i.index"), BASE)
    index.reset()
    return index


def time_index(folder: Path) -> TimeIndex:
    index = TimeIndex(FILES, str(folder / "i.timeindex"), BASE)
    index.reset()
    return index


class TestOffsetIndex:
    def test_the_file_holds_relative_offsets_and_positions(self, tmp_path: Path) -> None:
        index = offset_index(tmp_path)
        index.append(BASE + 9, 4100)
        index.append(BASE + 19, 8300)
        index.write_out()
        assert (tmp_path / "i.index").read_bytes() == struct.pack(">iiii", 9, 4100, 19, 8300)

    def test_below_the_first_entry_lies_the_segments_beginning(self, tmp_path: Path) -> None:
        index = offset_index(tmp_path)
        assert index.floor(BASE + 5) == OffsetPosition(BASE, 0)
        index.append(BASE + 9, 4100)
        assert index.floor(BASE + 8) == OffsetPosition(BASE, 0)
        assert index.floor(BASE + 9) == OffsetPosition(BASE + 9, 4100)
        assert index.floor_position(4099) is None

    @given(data=st.data())
    def test_look_ups_are_those_of_a_sorted_list(
        self, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        steps = data.draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 99)), max_size=1200))
        written = data.draw(st.integers(0, len(steps)))
        index = offset_index(tmp_path_factory.mktemp("index"))
        entries: list[OffsetPosition] = []
        offset, position = BASE, 0
        for number, (more_offsets, more_bytes) in enumerate(steps):
            if number == written:
                index.write_out()
            offset, position = offset + more_offsets, position + more_bytes
            index.append(offset, position)
            entries.append(OffsetPosition(offset, position))
        assert len(index) == len(entries)
        for target in data.draw(st.lists(st.integers(BASE - 5, offset + 5), max_size=20)):
            slot = bisect_right([entry.offset for entry in entries], target)
            assert index.floor(target) == (entries[slot - 1] if slot else OffsetPosition(BASE, 0))
        for target in data.draw(st.lists(st.integers(0, position + 5), max_size=20)):
            slot = bisect_right([entry.position for entry in entries], target)
            assert index.floor_position(target) == (entries[slot - 1] if slot else None)
        cut = data.draw(st.integers(BASE, offset + 1))
        index.truncate_to(cut)
        kept = [entry for entry in entries if entry.offset < cut]
        assert [index[slot] for slot in range(len(index))] == kept
        index.release()
        assert [index[slot] for slot in range(len(index))] == kept

    def test_entries_added_after_a_mapping_are_seen(self, tmp_path: Path) -> None:
        index = offset_index(tmp_path)
        for number in range(1, 2000):
            index.append(BASE + number, number * 100)
            assert index.floor(BASE + number // 2).offset == BASE + number // 2
        assert index.last() == OffsetPosition(BASE + 1999, 199_900)

    def test_reading_never_makes_the_file(self, tmp_path: Path) -> None:
        index = OffsetIndex(FILES, str(tmp_path / "missing.index"), BASE)
        with pytest.raises(DiskFault):
            index.floor(BASE)
        assert not (tmp_path / "missing.index").exists()

    def test_a_renamed_file_is_followed(self, tmp_path: Path) -> None:
        index = offset_index(tmp_path)
        index.append(BASE + 1, 100)
        index.release()
        (tmp_path / "i.index").rename(tmp_path / "j.index")
        index.moved(str(tmp_path / "j.index"))
        assert index.last() == OffsetPosition(BASE + 1, 100)


class TestOffsetIndexChecks:
    @pytest.mark.parametrize(
        ("content", "text"),
        [
            (b"12345", "5 bytes are not whole entries of 8 bytes"),
            (struct.pack(">ii", -1, 5), r"from \(-1, 5\) to \(-1, 5\) cannot lie in 100 bytes"),
            (struct.pack(">ii", 1, 100), "cannot lie in 100 bytes"),
            (struct.pack(">iiii", 5, 10, 0, 0), "cannot lie"),
            (struct.pack(">iiii", 5, 10, 5, 20), "does not rise"),
        ],
    )
    def test_what_cannot_be_is_found(self, tmp_path: Path, content: bytes, text: str) -> None:
        (tmp_path / "i.index").write_bytes(content)
        with pytest.raises(CorruptIndex, match=text):
            OffsetIndex(FILES, str(tmp_path / "i.index"), BASE).check(100)

    def test_sound_files_pass(self, tmp_path: Path) -> None:
        index = offset_index(tmp_path)
        index.check(0)
        index.append(BASE + 1, 50)
        index.append(BASE + 2, 99)
        index.check(100)


class TestTimeIndex:
    def test_the_file_holds_timestamps_and_relative_offsets(self, tmp_path: Path) -> None:
        index = time_index(tmp_path)
        index.append(77, BASE + 3)
        index.write_out()
        assert (tmp_path / "i.timeindex").read_bytes() == struct.pack(">qi", 77, 3)

    def test_only_a_larger_timestamp_is_noted(self, tmp_path: Path) -> None:
        index = time_index(tmp_path)
        for timestamp, offset in ((10, 1), (10, 2), (9, 3), (11, 4)):
            index.append(timestamp, BASE + offset)
        assert [index[slot] for slot in range(len(index))] == [
            TimestampOffset(10, BASE + 1),
            TimestampOffset(11, BASE + 4),
        ]

    def test_look_ups_and_cuts(self, tmp_path: Path) -> None:
        index = time_index(tmp_path)
        for number in range(1, 500):
            index.append(number * 10, BASE + number)
        assert index.floor(5) == TimestampOffset(-1, BASE)
        assert index.floor(4999) == TimestampOffset(4990, BASE + 499)
        assert index.floor(1234) == TimestampOffset(1230, BASE + 123)
        index.truncate_to(BASE + 100)
        assert index.last() == TimestampOffset(990, BASE + 99)
        index.check()

    @pytest.mark.parametrize(
        "content", [b"12345", struct.pack(">qiqi", 5, 1, 4, 2), struct.pack(">qi", 5, -1)]
    )
    def test_what_cannot_be_is_found(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "i.timeindex").write_bytes(content)
        with pytest.raises(CorruptIndex):
            TimeIndex(FILES, str(tmp_path / "i.timeindex"), BASE).check()
