"""Which snapshot files there are, and which one serves."""

from pathlib import Path

from barnabas.log.files import OsFiles
from barnabas.log.producers import ProducerEntry, ProducerStates
from barnabas.log.snapshots import Snapshots


def producers(producer_id: int) -> ProducerStates:
    state = ProducerStates()
    state.restore([ProducerEntry(producer_id, 0)], 0)
    return state


def snapshots(folder: Path, *offsets: int) -> Snapshots:
    found = Snapshots(OsFiles(), str(folder))
    for offset in offsets:
        found.write(producers(offset), offset, sync=False)
    return found


def names(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.iterdir())


def test_the_newest_not_above_the_offset_serves(tmp_path: Path) -> None:
    found = snapshots(tmp_path, 10, 20, 30)
    state = found.newest(29)
    assert (state.end_offset, list(state.producers)) == (20, [20])
    assert (found.newest(9).end_offset, found.newest(9).producers) == (0, {})


def test_a_damaged_one_goes_and_an_older_one_serves(tmp_path: Path) -> None:
    found = snapshots(tmp_path, 10, 20)
    (tmp_path / "00000000000000000020.snapshot").write_bytes(b"rubbish")
    assert found.newest(99).end_offset == 10
    assert names(tmp_path) == found.offsets == [10]


def test_one_that_vanished_is_passed_over(tmp_path: Path) -> None:
    found = snapshots(tmp_path, 10, 20)
    (tmp_path / "00000000000000000020.snapshot").unlink()
    assert found.newest(99).end_offset == 10


def test_those_without_a_segment_go_but_for_the_newest(tmp_path: Path) -> None:
    found = snapshots(tmp_path, 5, 10, 15, 25, 99)
    found.remove_strays([0, 10, 20], 30)
    assert names(tmp_path) == found.offsets == [10, 25]


def test_ranges_can_be_removed(tmp_path: Path) -> None:
    found = snapshots(tmp_path, 10, 15, 25)
    found.remove_above(15)
    assert names(tmp_path) == [10, 15]
    found.remove_all()
    assert names(tmp_path) == []


def test_they_follow_their_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    found = snapshots(tmp_path / "a", 5)
    (tmp_path / "a").rename(tmp_path / "b")
    found.moved(str(tmp_path / "b"))
    assert found.newest(5).end_offset == 5
