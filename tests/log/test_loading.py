"""Opening a folder: after a clean stop, after a crash, with damage, with leftovers."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.log.config import LogConfig
from barnabas.log.errors import CorruptSegment
from barnabas.log.partition_log import Origin, PartitionLog
from tests.log._disk import LossyFiles
from tests.log._make import NOW_MS, append, batch, fill, marker, offsets, open_log

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=100)


def written(folder: Path, batches: int = 40) -> PartitionLog:
    """A closed log of several segments."""
    log = open_log(folder, SMALL)
    fill(log, batches)
    log.close(now_ms=NOW_MS)
    return log


def report(log: PartitionLog) -> tuple[int, int, list[str]]:
    assert log.recovery is not None
    return log.recovery.scanned_bytes, log.recovery.cut_bytes, log.recovery.dropped_segments


def newest(folder: Path, suffix: str = ".log") -> Path:
    return max(folder.glob("*" + suffix))


class TestACleanStop:
    def test_nothing_is_scanned(self, tmp_path: Path) -> None:
        written(tmp_path)
        log = open_log(tmp_path, SMALL, clean=True)
        assert report(log) == (0, 0, [])
        assert offsets(log) == list(range(40))
        assert log.recovery_point == 40

    def test_an_empty_folder_is_an_empty_log(self, tmp_path: Path) -> None:
        log = open_log(tmp_path / "new", SMALL, clean=True)
        assert (log.log_start_offset, log.log_end_offset, offsets(log)) == (0, 0, [])
        assert [path.name for path in (tmp_path / "new").glob("*.log")] == ["00000000000000000000.log"]

    def test_the_log_start_comes_from_the_checkpoint(self, tmp_path: Path) -> None:
        written(tmp_path)
        log = open_log(tmp_path, SMALL, clean=True, log_start_offset=17)
        assert offsets(log) == list(range(17, 40))

    def test_a_log_that_ends_before_its_start_begins_anew(self, tmp_path: Path) -> None:
        written(tmp_path)
        log = open_log(tmp_path, SMALL, clean=True, log_start_offset=99)
        assert (log.log_start_offset, log.log_end_offset) == (99, 99)
        assert len(report(log)[2]) > 3
        assert append(log, batch()).base_offset == 99

    @pytest.mark.parametrize("suffix", [".index", ".timeindex"])
    def test_a_missing_index_is_rebuilt(self, tmp_path: Path, suffix: str) -> None:
        written(tmp_path)
        before = {path: path.read_bytes() for path in tmp_path.glob("*index")}
        for path in tmp_path.glob("*" + suffix):
            path.unlink()
        log = open_log(tmp_path, SMALL, clean=True)
        assert offsets(log) == list(range(40))
        assert {path: path.read_bytes() for path in tmp_path.glob("*index")} == before

    @pytest.mark.parametrize("content", [b"", b"xyz", b"\xff" * 24, bytes(48)])
    def test_a_broken_index_of_the_active_segment_is_rebuilt_or_harmless(
        self, tmp_path: Path, content: bytes
    ) -> None:
        written(tmp_path)
        newest(tmp_path, ".index").write_bytes(content)
        log = open_log(tmp_path, SMALL, clean=True)
        assert offsets(log) == list(range(40))
        assert log.log_end_offset == 40

    def test_an_index_without_a_segment_goes(self, tmp_path: Path) -> None:
        written(tmp_path)
        orphan = tmp_path / "00000000000000000777.index"
        orphan.write_bytes(bytes(8))
        open_log(tmp_path, SMALL, clean=True)
        assert not orphan.exists()

    def test_damage_in_the_last_segment_is_never_passed_over(self, tmp_path: Path) -> None:
        """The marker promises a whole log; a batch that does not hold must not be dropped in silence."""
        written(tmp_path)
        path = newest(tmp_path)
        with path.open("ab") as file:
            file.write(b"rubbish")
        with pytest.raises(CorruptSegment, match="7 bytes are too few for a batch"):
            open_log(tmp_path, SMALL, clean=True)


def cut_at(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.truncate(position)


def flip(path: Path, position: int, mask: int = 1) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= mask
    path.write_bytes(content)


class TestAfterACrash:
    @pytest.mark.slow
    def test_every_cut_of_the_last_batches_is_found_and_cut_off(self, tmp_path: Path) -> None:
        log = written(tmp_path / "log", 12)
        sizes = [place.size_bytes for place in log.segments.active.walk(0)]
        first = log.segments.active.base_offset
        name = Path(log.segments.active.path).name
        total = sum(sizes)
        for cut in range(total - sizes[-1] - sizes[-2], total):
            copy = tmp_path / "copy"
            shutil.copytree(tmp_path / "log", copy)
            cut_at(copy / name, cut)
            again = open_log(copy, SMALL, recovery_point=0)
            whole = sum(1 for count in range(1, len(sizes) + 1) if sum(sizes[:count]) <= cut)
            assert again.log_end_offset == first + whole
            assert offsets(again) == list(range(first + whole))
            assert (copy / name).stat().st_size == sum(sizes[:whole])
            assert report(again)[1] == cut - sum(sizes[:whole])
            append(again, batch())
            assert offsets(again) == list(range(first + whole + 1))
            shutil.rmtree(copy)

    @pytest.mark.slow
    def test_every_flipped_bit_of_the_last_batches_is_found_and_cut_off(self, tmp_path: Path) -> None:
        log = written(tmp_path / "log", 12)
        places = list(log.segments.active.walk(0))[-2:]
        name = Path(log.segments.active.path).name
        for place in places:
            for at in range(place.size_bytes):
                copy = tmp_path / "copy"
                shutil.copytree(tmp_path / "log", copy)
                flip(copy / name, place.position + at, 1 << at % 8)
                again = open_log(copy, SMALL, recovery_point=0)
                if 12 <= at < 16:  # the leader epoch is not covered by the CRC
                    assert again.log_end_offset == 12
                elif at >= 8:
                    assert again.log_end_offset == place.base_offset
                shutil.rmtree(copy)

    def test_the_report_says_what_was_cut_and_why(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        written(tmp_path)
        path = newest(tmp_path)
        size = path.stat().st_size
        flip(path, size - 1)
        log = open_log(tmp_path, SMALL, recovery_point=0)
        assert log.recovery is not None
        assert log.recovery.cut_path == str(path)
        assert log.recovery.cut_position == size - log.recovery.cut_bytes
        assert "the stored CRC is" in (log.recovery.cut_reason or "")
        assert f"{path}, position {log.recovery.cut_position}: the stored CRC" in caplog.text

    def test_segments_behind_a_torn_one_go_with_it(self, tmp_path: Path) -> None:
        log = written(tmp_path)
        second = log.segments[1]
        flip(Path(second.path), 70)
        again = open_log(tmp_path, SMALL, recovery_point=0)
        assert offsets(again) == list(range(second.base_offset))
        assert len(report(again)[2]) == len(log.segments) - 2

    def test_a_segment_that_lost_whole_batches_is_torn(self, tmp_path: Path) -> None:
        log = written(tmp_path)
        second = log.segments[1]
        cut_at(Path(second.path), second.batch_at(0).size_bytes)
        again = open_log(tmp_path, SMALL, recovery_point=0)
        assert offsets(again) == list(range(second.base_offset + 1))

    def test_in_a_compacted_topic_gaps_are_how_things_are(self, tmp_path: Path) -> None:
        log = written(tmp_path)
        second = log.segments[1]
        cut_at(Path(second.path), second.batch_at(0).size_bytes)
        config = LogConfig(segment_bytes=1000, index_interval_bytes=100, compact=True)
        assert open_log(tmp_path, config, recovery_point=0).log_end_offset == 40

    def test_only_what_may_be_unsynced_is_scanned(self, tmp_path: Path) -> None:
        log = written(tmp_path)
        last = log.segments.active
        again = open_log(tmp_path, SMALL, recovery_point=last.base_offset + 1)
        assert report(again)[0] == last.size_bytes

    def test_epochs_and_producers_are_learnt_from_batches(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        append(log, batch(2, producer_id=9, epoch=3, sequence=0), leader_epoch=2)
        append(log, batch(2, producer_id=9, epoch=3, sequence=2), leader_epoch=5)
        (tmp_path / "leader-epoch-checkpoint").unlink()
        again = open_log(tmp_path, SMALL)
        assert [tuple(entry) for entry in again.epochs.entries] == [(2, 0), (5, 2)]
        assert again.producers.producers[9].last_sequence == 3
        assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n2 0\n5 2\n"

    def test_what_recovery_made_lasts(self, tmp_path: Path) -> None:
        """Else a second power failure could bring back an index that fits an older segment."""
        files = LossyFiles(str(tmp_path))
        log = open_log(tmp_path / "topic-0", SMALL, files=files)
        fill(log, 40)
        log.flush(now_ms=NOW_MS)
        log.truncate_to(33, now_ms=NOW_MS)
        log.roll(NOW_MS)
        files.crash(random.Random(1))
        again = open_log(tmp_path / "topic-0", SMALL, files=files, recovery_point=33)
        assert again.recovery_point == again.log_end_offset == 33
        for segment in list(again.segments)[-2:]:
            assert [path for path in segment.paths[:3] if not files.is_durable(path)] == []

    def test_epochs_behind_the_end_are_forgotten(self, tmp_path: Path) -> None:
        log = written(tmp_path)
        log.epochs.assign(9, 40)
        again = open_log(tmp_path, SMALL, clean=True)
        assert again.latest_epoch == 0

    def test_aborted_transactions_are_indexed_anew(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        append(log, batch(3, producer_id=9, epoch=0, sequence=0, transactional=True))
        fill(log, 20)
        log.append_as_leader(
            marker(9, 0, committed=False), leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR
        )
        aborted = log.aborted_transactions(0, 99)
        assert [(each.first_offset, each.last_offset) for each in aborted] == [(0, 23)]
        assert open_log(tmp_path, SMALL).aborted_transactions(0, 99) == aborted


class TestWhatWasSyncedIsNeverDropped:
    def test_damage_below_the_recovery_point_is_reported(self, tmp_path: Path) -> None:
        log = written(tmp_path)
        active = log.segments.active
        flip(Path(active.path), 70)
        with pytest.raises(CorruptSegment, match="position 0: the stored CRC") as caught:
            open_log(tmp_path, SMALL, recovery_point=40)
        assert (caught.value.path, caught.value.position) == (active.path, 0)
        assert Path(active.path).stat().st_size == active.size_bytes

    def test_what_is_simply_gone_is_reported(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        log = written(tmp_path)
        active = log.segments.active
        cut_at(Path(active.path), active.batch_at(0).size_bytes)
        again = open_log(tmp_path, SMALL, recovery_point=40)
        assert again.recovery is not None
        assert again.recovery.missing_records == 40 - again.log_end_offset > 0
        assert "everything below 40 had been synced" in caplog.text

    def test_damage_in_the_middle_is_reported_when_nothing_is_known(self, tmp_path: Path) -> None:
        log = written(tmp_path)
        flip(Path(log.segments[1].path), 70)
        with pytest.raises(CorruptSegment):
            open_log(tmp_path, SMALL, recovery_point=None)

    def test_a_torn_tail_is_cut_even_then(self, tmp_path: Path) -> None:
        written(tmp_path)
        flip(newest(tmp_path), newest(tmp_path).stat().st_size - 1)
        assert open_log(tmp_path, SMALL, recovery_point=None).log_end_offset == 39


def rename_all(folder: Path, base: int, suffix: str) -> None:
    for path in folder.glob(f"{base:020d}.*"):
        if path.suffix != ".snapshot":
            path.rename(str(path) + suffix)


class TestLeftovers:
    def test_deleted_and_cleaned_files_go(self, tmp_path: Path) -> None:
        log = written(tmp_path)
        for name in ("00000000000000000000.log.deleted", "00000000000000000099.log.cleaned", "x.tmp"):
            (tmp_path / name).write_bytes(b"whatever")
        again = open_log(tmp_path, SMALL, clean=True)
        assert offsets(again) == list(range(log.log_end_offset))
        assert not [path for path in tmp_path.iterdir() if path.suffix in (".deleted", ".cleaned", ".tmp")]

    def compacted(self, folder: Path) -> tuple[PartitionLog, list[int]]:
        """A log whose first two segments have a replacement under `.swap`; the offsets it then has."""
        log = written(folder)
        bases = log.segments.bases
        scratch = folder.parent / "scratch"
        other = open_log(scratch, LogConfig(index_interval_bytes=100))
        for number in range(bases[2]):
            append(other, batch(fill=number))
        other.close(now_ms=NOW_MS)
        for suffix in (".log", ".index", ".timeindex"):
            source = scratch / f"{0:020d}{suffix}"
            source.rename(folder / f"{0:020d}{suffix}.swap")
        return log, bases

    def test_a_complete_swap_takes_the_place_of_its_originals(self, tmp_path: Path) -> None:
        log, bases = self.compacted(tmp_path / "log")
        again = open_log(tmp_path / "log", SMALL, clean=True)
        assert again.segments.bases == [0, *bases[2:]]
        assert offsets(again) == list(range(log.log_end_offset))
        assert not list((tmp_path / "log").glob("*.swap"))

    def test_it_does_so_when_some_originals_are_gone_already(self, tmp_path: Path) -> None:
        log, bases = self.compacted(tmp_path / "log")
        rename_all(tmp_path / "log", bases[1], ".deleted")
        again = open_log(tmp_path / "log", SMALL, clean=True)
        assert again.segments.bases == [0, *bases[2:]]
        assert offsets(again) == list(range(log.log_end_offset))

    def test_it_does_so_when_only_its_log_is_renamed(self, tmp_path: Path) -> None:
        log, bases = self.compacted(tmp_path / "log")
        rename_all(tmp_path / "log", bases[1], ".deleted")
        for suffix in (".log", ".index", ".timeindex"):
            (tmp_path / "log" / f"{0:020d}{suffix}").unlink()
        swap = tmp_path / "log" / f"{0:020d}.log.swap"
        swap.rename(tmp_path / "log" / f"{0:020d}.log")
        again = open_log(tmp_path / "log", SMALL, clean=True)
        assert offsets(again) == list(range(log.log_end_offset))
        assert again.segments.bases == [0, *bases[2:]]

    def test_a_swap_without_its_index_is_indexed(self, tmp_path: Path) -> None:
        log, _ = self.compacted(tmp_path / "log")
        (tmp_path / "log" / f"{0:020d}.index.swap").unlink()
        again = open_log(tmp_path / "log", SMALL, clean=True)
        assert offsets(again) == list(range(log.log_end_offset))

    def test_a_swap_of_an_incomplete_set_goes(self, tmp_path: Path) -> None:
        log, bases = self.compacted(tmp_path / "log")
        (tmp_path / "log" / f"{0:020d}.log.cleaned").write_bytes(b"half")
        again = open_log(tmp_path / "log", SMALL, clean=True)
        assert again.segments.bases == bases
        assert offsets(again) == list(range(log.log_end_offset))


@pytest.mark.parametrize("break_it", [lambda path: path.unlink(), lambda path: path.write_bytes(b"rubbish")])
def test_producers_are_replayed_when_a_snapshot_is_missing_or_broken(
    tmp_path: Path, break_it: Callable[[Path], None]
) -> None:
    log = open_log(tmp_path, SMALL)
    for sequence in range(30):
        append(log, batch(producer_id=7, epoch=1, sequence=sequence))
    log.close(now_ms=NOW_MS)
    for path in tmp_path.glob("*.snapshot"):
        break_it(path)
    again = open_log(tmp_path, SMALL, clean=True)
    assert again.producers.producers[7].last_sequence == 29
    assert append(again, batch(producer_id=7, epoch=1, sequence=29)).duplicate
