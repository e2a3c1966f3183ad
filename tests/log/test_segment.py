"""One segment: appended batches are found again, by index, by tail and by walking; faults leave no trace."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.buffers import SharedFile
from barnabas.log.errors import CorruptSegment, DiskFull
from barnabas.log.files import Bytes, OsFiles
from barnabas.log.index import TimestampOffset
from barnabas.log.segment import Mark, Segment, SegmentSlice
from barnabas.records.batch import RecordBatch
from tests.log._make import NOW_MS, batch

BASE = 100


def segment(folder: Path, *, interval: int = 200) -> Segment:
    made = Segment(OsFiles(), str(folder), BASE, index_interval_bytes=interval)
    made.create()
    return made


def add(
    target: Segment, count: int = 1, *, offset: int | None = None, timestamp: int = NOW_MS, size: int = 20
) -> int:
    """Append one batch; returns its size."""
    base = target.next_offset if offset is None else offset
    data = batch(count, base_offset=base, timestamp=timestamp, value_bytes=size)
    target.append(data, [Mark(0, base + count - 1, timestamp)])
    return len(data)


def reopened(target: Segment) -> Segment:
    target.seal()
    target.release()
    return Segment(
        OsFiles(), target.folder, target.base_offset, size_bytes=target.size_bytes, index_interval_bytes=200
    )


def read(
    target: Segment, offset: int, max_bytes: int = 10**6, bound: int = 10**6
) -> tuple[list[int], int] | None:
    """(base offsets of the batches, next offset)."""
    found = target.read(offset, max_bytes=max_bytes, upper_bound=bound, min_one_batch=True)
    if found is None:
        return None
    bases: list[int] = []
    if found.data is not None:
        data, position = memoryview(found.data.read()), 0
        while position < len(data):
            each = RecordBatch(data, position)
            each.check()
            bases.append(each.base_offset)
            position += each.size_bytes
    return bases, found.next_offset


class TestReading:
    @given(
        counts=st.lists(
            st.tuples(st.integers(1, 5), st.integers(0, 3), st.sampled_from([5, 90, 700])), max_size=40
        ),
        data=st.data(),
        cold=st.booleans(),
    )
    def test_finds_the_batch_of_every_offset_whatever_the_gaps(
        self,
        counts: list[tuple[int, int, int]],
        data: st.DataObject,
        cold: bool,
        tmp_path_factory: pytest.TempPathFactory,
    ) -> None:
        target = segment(tmp_path_factory.mktemp("segment"))
        batches: list[tuple[int, int, int]] = []  # base, end, bytes
        offset = BASE
        for count, gap, size in counts:
            offset += gap
            batches.append((offset, offset + count, add(target, count, offset=offset, size=size)))
            offset += count
        if cold:
            target = reopened(target)
        assert target.next_offset == offset
        for _ in range(5):
            wanted = data.draw(st.integers(BASE, offset))
            bound = data.draw(st.integers(BASE, offset + 1))
            max_bytes = data.draw(st.integers(1, 3000))
            found = read(target, wanted, max_bytes, bound)
            behind = [each for each in batches if each[1] > wanted]
            if not behind:
                assert found is None
                continue
            expected: list[int] = []
            total = 0
            for base, end, size in behind:
                if end > bound or (expected and total + size > max_bytes):
                    break
                expected.append(base)
                total += size
            assert found is not None
            assert found[0] == expected
            if expected:
                rest = [each for each in batches if each[0] > expected[-1]]
                ended = next(each[1] for each in batches if each[0] == expected[-1])
                assert ended <= found[1] <= (rest[0][0] if rest else offset)

    def test_without_min_one_batch_a_large_batch_stays(self, tmp_path: Path) -> None:
        target = segment(tmp_path)
        add(target, size=1000)
        found = target.read(BASE, max_bytes=100, upper_bound=10**6, min_one_batch=False)
        assert found == SegmentSlice(None, BASE)

    def test_a_slice_outlives_the_files(self, tmp_path: Path) -> None:
        target = segment(tmp_path)
        add(target)
        found = target.read(BASE, max_bytes=1000, upper_bound=10**6, min_one_batch=True)
        assert found is not None
        assert found.data is not None
        target.remove_files()
        assert list(tmp_path.iterdir()) == []
        RecordBatch(memoryview(found.data.read())).check()

    def test_the_tail_is_read_without_an_index(self, tmp_path: Path) -> None:
        target = segment(tmp_path)
        for _ in range(2000):
            add(target)
        target.offset_index.path = "/nowhere"
        target.offset_index.release()
        assert read(target, BASE + 1990, bound=BASE + 1995) == (
            [BASE + n for n in range(1990, 1995)],
            BASE + 1995,
        )


class TestIndexes:
    @pytest.mark.parametrize("max_bytes", [100, 700, 1000, 5000])
    def test_a_reader_that_goes_on_gets_every_batch_once(self, tmp_path: Path, max_bytes: int) -> None:
        target = segment(tmp_path)
        for number in range(60):
            add(target, 2, size=(5, 90, 700)[number % 3])
        target = reopened(target)
        seen: list[int] = []
        while (found := read(target, BASE + 2 * len(seen), max_bytes)) is not None:
            assert found[1] == BASE + 2 * (len(seen) + len(found[0]))
            seen += found[0]
        assert seen == list(range(BASE, BASE + 120, 2))

    def test_what_a_reader_left_is_void_after_a_cut(self, tmp_path: Path) -> None:
        target = segment(tmp_path)
        for _ in range(30):
            add(target, 2, size=90)
        target = reopened(target)
        first = read(target, BASE, max_bytes=1000)
        assert first is not None
        target.truncate_to(BASE + 1)
        add(target, first[1] - BASE, offset=BASE, size=5)
        add(target, 4, size=5)
        assert read(target, first[1], max_bytes=1000) == ([first[1]], first[1] + 4)

    def test_an_entry_names_the_last_offset_of_the_batch_at_its_position(self, tmp_path: Path) -> None:
        target = segment(tmp_path, interval=200)
        for _ in range(50):
            add(target, 3)
        assert len(target.offset_index) > 10
        for slot in range(len(target.offset_index)):
            entry = target.offset_index[slot]
            assert target.batch_at(entry.position).last_offset == entry.offset

    def test_several_batches_of_one_append_are_indexed_each(self, tmp_path: Path) -> None:
        target = segment(tmp_path, interval=100)
        pieces = [batch(base_offset=BASE + number) for number in range(20)]
        marks = [Mark(number * len(pieces[0]), BASE + number, NOW_MS) for number in range(20)]
        target.append(memoryview(b"".join(pieces)), marks)
        assert len(target.offset_index) > 8
        assert read(target, BASE + 13, max_bytes=1) == ([BASE + 13], BASE + 14)

    def test_a_rebuild_makes_the_same_indexes(self, tmp_path: Path) -> None:
        target = segment(tmp_path)
        for number in range(60):
            add(target, 2, timestamp=NOW_MS + number % 7)
        target.seal()
        before = [Path(path).read_bytes() for path in target.paths[1:3]]
        seen: list[int] = []
        assert target.rebuild(lambda each: seen.append(each.base_offset)) is None
        assert seen == list(range(BASE, BASE + 120, 2))
        assert [Path(path).read_bytes() for path in target.paths[1:3]] == before

    def test_the_largest_timestamp_survives_a_restart(self, tmp_path: Path) -> None:
        target = segment(tmp_path)
        for timestamp in (5, 9, 7):
            add(target, timestamp=timestamp)
        assert target.largest == TimestampOffset(9, BASE + 1)
        assert reopened(target).largest == TimestampOffset(9, BASE + 1)

    @pytest.mark.parametrize("damage", [b"\x00" * 8, b"\xff" * 8, b"\x00\x00\x00\x05\x00\x00\x00\x11"])
    def test_an_index_that_leads_astray_is_rebuilt(
        self, tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        target = segment(tmp_path)
        for _ in range(50):
            add(target)
        target = reopened(target)
        path = Path(target.offset_index.path)
        sound = path.read_bytes()
        path.write_bytes(damage * (len(sound) // 8))
        for wanted in (BASE + 40, BASE + 20):
            assert read(target, wanted, max_bytes=100) == ([wanted], wanted + 1)
        assert path.read_bytes() == sound or "rebuilt" not in caplog.text


class TestDamage:
    def damaged(self, folder: Path, at: int) -> Segment:
        target = segment(folder)
        for _ in range(30):
            add(target)
        target = reopened(target)
        with Path(target.path).open("r+b") as file:
            file.seek(target.batch_at(0).size_bytes * at + 8)
            file.write(b"\xff\xff")
        return target

    def test_a_reader_is_told_file_and_position(self, tmp_path: Path) -> None:
        target = self.damaged(tmp_path, 20)
        position = target.batch_at(0).size_bytes * 20
        with pytest.raises(CorruptSegment, match=r"00000100\.log, position") as caught:
            target.locate(BASE + 20)
        assert (caught.value.path, caught.value.position) == (target.path, position)
        assert read(target, BASE + 5, max_bytes=10) == ([BASE + 5], BASE + 6)

    def test_nothing_behind_the_damage_is_hidden_silently(self, tmp_path: Path) -> None:
        target = self.damaged(tmp_path, 20)
        size, end = target.size_bytes, target.next_offset
        for _ in range(2):
            with pytest.raises(CorruptSegment):
                target.locate(BASE + 20)
            assert (target.size_bytes, target.next_offset) == (size, end)

    def test_a_rebuild_stops_at_offsets_that_fall(self, tmp_path: Path) -> None:
        target = segment(tmp_path)
        add(target, offset=BASE + 5)
        target.append(batch(base_offset=BASE + 2), [Mark(0, BASE + 6, NOW_MS)])
        fault = target.rebuild(lambda each: None)
        assert fault == f"offsets {BASE + 2} to {BASE + 2} do not follow {BASE + 5}"
        assert target.next_offset == BASE + 6

    def test_a_header_out_of_bounds_is_no_batch(self, tmp_path: Path) -> None:
        target = segment(tmp_path)
        add(target)
        with pytest.raises(CorruptSegment, match="are too few for a batch"):
            target.batch_at(target.size_bytes - 5)


class FullDisk(OsFiles):
    """A disk that is full for appends, and can be relieved."""

    __slots__ = ("is_full",)

    def __init__(self) -> None:
        self.is_full = False

    def append(self, file: SharedFile, position: int, buffers: Sequence[Bytes]) -> None:
        if self.is_full:
            raise DiskFull("f", "no space")
        super().append(file, position, buffers)


def test_a_failed_append_leaves_no_trace(tmp_path: Path) -> None:
    files = FullDisk()
    target = Segment(files, str(tmp_path), BASE, index_interval_bytes=0)
    target.create()
    add(target)
    before = (target.size_bytes, target.next_offset, target.largest, len(target.offset_index))
    files.is_full = True
    with pytest.raises(DiskFull):
        add(target, timestamp=NOW_MS + 5)
    assert (target.size_bytes, target.next_offset, target.largest, len(target.offset_index)) == before
    files.is_full = False
    add(target)
    assert read(target, BASE) == ([BASE, BASE + 1], BASE + 2)


class TestTruncation:
    def test_cuts_batches_and_indexes(self, tmp_path: Path) -> None:
        target = segment(tmp_path)
        for number in range(40):
            add(target, 2, timestamp=NOW_MS + number)
        target.truncate_to(BASE + 30)
        assert target.next_offset == BASE + 30
        assert target.largest == TimestampOffset(NOW_MS + 14, BASE + 29)
        assert target.offset_index.last().offset < BASE + 30
        assert target.time_index.last().offset < BASE + 30
        assert Path(target.path).stat().st_size == target.size_bytes
        add(target)
        assert read(target, BASE + 29) == ([BASE + 28, BASE + 30], BASE + 31)

    def test_a_straddling_batch_goes_whole(self, tmp_path: Path) -> None:
        target = segment(tmp_path)
        add(target, 2)
        add(target, 4)
        target.truncate_to(BASE + 4)
        assert target.next_offset == BASE + 2

    def test_behind_the_end_nothing_happens(self, tmp_path: Path) -> None:
        target = segment(tmp_path)
        add(target)
        target.truncate_to(BASE + 1)
        assert target.next_offset == BASE + 1

    def test_to_the_beginning_empties_it(self, tmp_path: Path) -> None:
        target = segment(tmp_path)
        add(target)
        target.truncate_to(BASE)
        assert (target.size_bytes, target.next_offset, target.first_timestamp) == (0, BASE, None)
        assert target.largest == TimestampOffset(-1, BASE)


class TestFiles:
    def test_preallocated_space_is_cut_when_sealed(self, tmp_path: Path) -> None:
        target = Segment(OsFiles(), str(tmp_path), BASE)
        target.create(preallocate_bytes=10_000)
        assert Path(target.path).stat().st_size == 10_000
        add(target)
        assert read(target, BASE) == ([BASE], BASE + 1)
        target.seal()
        assert Path(target.path).stat().st_size == target.size_bytes

    def test_renaming_takes_all_files_along(self, tmp_path: Path) -> None:
        target = segment(tmp_path)
        for _ in range(20):
            add(target)
        target.seal()
        target.rename(".deleted")
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "00000000000000000100.index.deleted",
            "00000000000000000100.log.deleted",
            "00000000000000000100.timeindex.deleted",
        ]
        assert read(target, BASE + 7, max_bytes=1) == ([BASE + 7], BASE + 8)

    def test_an_offset_too_far_does_not_fit(self, tmp_path: Path) -> None:
        target = segment(tmp_path)
        assert target.can_hold(BASE + 2**31 - 1)
        assert not target.can_hold(BASE + 2**31)

    def test_everything_to_sync_is_named(self, tmp_path: Path) -> None:
        target = segment(tmp_path)
        add(target)
        assert [Path(file.path).suffix for file in target.files_to_sync()] == [".log", ".index", ".timeindex"]
