"""The leader epoch table, by the rules of KIP-101 and KIP-279."""

from pathlib import Path

import pytest

from barnabas.log.epochs import EpochEnd, EpochEntry, EpochTable
from barnabas.log.errors import CorruptCheckpoint
from barnabas.log.files import OsFiles


def table(folder: Path, *entries: tuple[int, int]) -> EpochTable:
    epochs = EpochTable(OsFiles(), str(folder / "leader-epoch-checkpoint"))
    for epoch, start in entries:
        epochs.assign(epoch, start)
    return epochs


def test_the_file_is_kafkas(tmp_path: Path) -> None:
    table(tmp_path, (0, 0), (3, 120))
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n3 120\n"
    assert table(tmp_path).entries == (EpochEntry(0, 0), EpochEntry(3, 120))


def test_an_empty_table_knows_nothing(tmp_path: Path) -> None:
    epochs = table(tmp_path)
    assert epochs.latest_epoch == -1
    assert epochs.end_offset(0, 10) is None
    assert epochs.epoch_at(5) == -1
    assert not epochs.truncate_from_start(5)
    assert not epochs.truncate_from_end(5)


class TestAssigning:
    def test_the_same_epoch_again_is_no_news(self, tmp_path: Path) -> None:
        epochs = table(tmp_path, (1, 10), (1, 20))
        assert epochs.entries == (EpochEntry(1, 10),)

    def test_an_epoch_that_wrote_nothing_gives_way(self, tmp_path: Path) -> None:
        assert table(tmp_path, (1, 10), (2, 20), (3, 20)).entries == (EpochEntry(1, 10), EpochEntry(3, 20))

    def test_entries_that_contradict_go(self, tmp_path: Path) -> None:
        assert table(tmp_path, (1, 10), (4, 20), (2, 15)).entries == (EpochEntry(1, 10), EpochEntry(2, 15))

    def test_learning_from_batches_never_goes_back(self, tmp_path: Path) -> None:
        epochs = table(tmp_path, (2, 10))
        epochs.learn(1, 50)
        epochs.learn(3, 60)
        assert epochs.entries == (EpochEntry(2, 10), EpochEntry(3, 60))
        assert table(tmp_path).entries == (EpochEntry(2, 10),)


class TestEndOffsets:
    @pytest.mark.parametrize(
        ("asked", "answer"),
        [
            (-1, None),
            (0, EpochEnd(0, 10)),  # below all that is known: begin where the first known one does
            (2, EpochEnd(2, 20)),
            (3, EpochEnd(2, 20)),
            (5, EpochEnd(5, 40)),
            (6, EpochEnd(6, 100)),
            (7, None),
        ],
    )
    def test_the_largest_epoch_not_above_the_asked_one(
        self, tmp_path: Path, asked: int, answer: EpochEnd | None
    ) -> None:
        assert table(tmp_path, (2, 10), (5, 20), (6, 40)).end_offset(asked, 100) == answer

    def test_the_epoch_of_an_offset(self, tmp_path: Path) -> None:
        epochs = table(tmp_path, (2, 10), (5, 20))
        assert [epochs.epoch_at(offset) for offset in (9, 10, 19, 20, 99)] == [-1, 2, 2, 5, 5]


class TestTruncation:
    def test_from_the_end(self, tmp_path: Path) -> None:
        epochs = table(tmp_path, (2, 10), (5, 20), (6, 40))
        assert epochs.truncate_from_end(20)
        assert epochs.entries == (EpochEntry(2, 10),)

    def test_from_the_start_keeps_the_epoch_in_which_it_lies(self, tmp_path: Path) -> None:
        epochs = table(tmp_path, (2, 10), (5, 20), (6, 40))
        assert epochs.truncate_from_start(30)
        assert epochs.entries == (EpochEntry(5, 30), EpochEntry(6, 40))
        assert not epochs.truncate_from_start(30)

    def test_clearing_is_durable(self, tmp_path: Path) -> None:
        table(tmp_path, (2, 10)).clear()
        assert table(tmp_path).entries == ()


@pytest.mark.parametrize("text", ["0\n1\n1\n", "0\n1\nx 1\n", "0\n2\n1 5\n1 6\n", "0\n2\n1 5\n2 4\n"])
def test_damage_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text(text)
    with pytest.raises(CorruptCheckpoint, match="leader-epoch-checkpoint"):
        table(tmp_path)
