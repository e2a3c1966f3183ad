"""A landing is exact for plain readers after every crash, and refuses a checkpoint that is not its own."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.landing import Decision, Landing, partition_values
from barnabas.spark.pipelines.landing_files import Files, LocalFiles
from tests.spark.pipelines._arrow_tables import ArrowTables, plain_files, plain_rows
from tests.spark.pipelines._fragile import Crash, FragileFiles

DAYS = ("2026-05-01", "2026-05-02")


def batch(number: int) -> list[dict[str, Any]]:
    """Six rows on two days; the ids of batch n begin with 10 n."""
    return [{"id": 10 * number + each, "date": DAYS[each % 2]} for each in range(6)]


def ids(*batches: int) -> list[int]:
    return [row["id"] for number in batches for row in batch(number)]


def landing(
    folder: Path,
    files: Files | None = None,
    *,
    query: str = "q-1",
    file_size: int | None = None,
    tables: ArrowTables | None = None,
    **more: Any,
) -> Landing:
    return Landing(
        files or LocalFiles(),
        tables or ArrowTables(["date"]),
        str(folder / "lake"),
        writer="orders",
        query=query,
        file_size=file_size,
        **more,
    )


class TestPublishing:
    def test_rows_are_where_their_partitions_are(self, tmp_path: Path) -> None:
        landing(tmp_path).take(batch(0), 0)
        assert plain_files(str(tmp_path / "lake")) == [
            "date=2026-05-01/orders-q-1-000000000-00000.parquet",
            "date=2026-05-02/orders-q-1-000000000-00001.parquet",
        ]
        assert plain_rows(str(tmp_path / "lake")) == ids(0)

    def test_a_batch_without_rows_leaves_nothing(self, tmp_path: Path) -> None:
        landed = landing(tmp_path)
        landed.take([], 0)
        landed.take(batch(1), 1)
        assert plain_rows(str(tmp_path / "lake")) == ids(1)

    def test_nothing_stays_staged(self, tmp_path: Path) -> None:
        landing(tmp_path).take(batch(0), 0)
        assert [each for each in (tmp_path / ".lake.staging").rglob("*") if each.is_file()] == []

    def test_a_staging_folder_elsewhere_is_used(self, tmp_path: Path) -> None:
        landing(tmp_path, staging=str(tmp_path / "other")).take(batch(0), 0)
        assert not (tmp_path / ".lake.staging").exists()
        assert (tmp_path / "other" / "orders").exists()

    def test_only_the_last_decisions_are_kept(self, tmp_path: Path) -> None:
        landed = landing(tmp_path)
        for number in range(10):
            landed.take(batch(number), number)
        kept = sorted(each.name for each in (tmp_path / "lake/_barnabas/orders").iterdir())
        assert kept == ["7.done", "7.json", "8.done", "8.json", "9.done", "9.json"]

    def test_several_files_of_one_partition_all_count(self, tmp_path: Path) -> None:
        landed = landing(tmp_path, tables=ArrowTables(["date"], files_per_partition=3))
        landed.take(batch(0), 0)
        landed.take(batch(1), 1)
        assert plain_rows(str(tmp_path / "lake")) == ids(0, 1)

    def test_the_rows_of_files_are_counted_when_wanted(self, tmp_path: Path) -> None:
        seen: list[Decision] = []
        landed = landing(tmp_path, counted=True, commit=lambda made, rows: seen.append(made))
        landed.take(batch(0)[:5], 0)  # both partitions have a file of the same name in staging
        assert list(seen[0].rows.values()) == [3, 2]


class TestCrashes:
    @pytest.mark.parametrize("file_size", [None, 1_000_000])
    @pytest.mark.parametrize("done", [False, True])
    def test_at_every_change_of_the_disk_rows_stay_exact(
        self, tmp_path: Path, file_size: int | None, done: bool
    ) -> None:
        crashes = 0
        for last in range(200):
            folder = tmp_path / str(last)
            table = str(folder / "lake")
            fragile = landing(folder, FragileFiles(LocalFiles(), last, done=done), file_size=file_size)
            reached = 0
            try:
                for reached in range(4):
                    fragile.take(batch(reached), reached)
            except Crash:
                crashes += 1
                seen = plain_rows(table)
                assert len(seen) == len(set(seen)), "no row is there twice, not even now"
                assert set(seen) >= set(ids(*range(reached))), "what was landed before is all there"
                sound = landing(folder, file_size=file_size)
                for number in range(reached, 4):
                    sound.take(batch(number), number)
                assert plain_rows(table) == ids(0, 1, 2, 3)
            else:
                assert plain_rows(table) == ids(0, 1, 2, 3)
                break
        assert crashes > 20

    def test_a_decided_batch_is_not_computed_again(self, tmp_path: Path) -> None:
        # Staging is one removal, the decision the next change; the first move then fails.
        with pytest.raises(Crash):
            landing(tmp_path, FragileFiles(LocalFiles(), 2, done=False)).take(batch(0), 0)
        other = [{"id": 999, "date": DAYS[0]}]
        landing(tmp_path).take(other, 0)
        assert plain_rows(str(tmp_path / "lake")) == ids(0)

    def test_an_undecided_batch_is_computed_again(self, tmp_path: Path) -> None:
        with pytest.raises(Crash):
            landing(tmp_path, FragileFiles(LocalFiles(), 1, done=False)).take(batch(0), 0)
        assert plain_rows(str(tmp_path / "lake")) == []
        landing(tmp_path).take(batch(0), 0)
        assert plain_rows(str(tmp_path / "lake")) == ids(0)

    def test_a_batch_that_was_published_is_passed_over(self, tmp_path: Path) -> None:
        landing(tmp_path).take(batch(0), 0)
        landing(tmp_path).take(batch(5), 0)
        assert plain_rows(str(tmp_path / "lake")) == ids(0)

    def test_files_that_somebody_removed_are_named(self, tmp_path: Path) -> None:
        with pytest.raises(Crash):
            landing(tmp_path, FragileFiles(LocalFiles(), 2, done=False)).take(batch(0), 0)
        LocalFiles().remove(str(tmp_path / ".lake.staging"))
        with pytest.raises(PipelineError, match="somebody removed both while the batch was being published"):
            landing(tmp_path).take(batch(0), 0)


class TestOwnership:
    def test_another_checkpoint_is_refused(self, tmp_path: Path) -> None:
        landing(tmp_path).take(batch(0), 0)
        with pytest.raises(PipelineError, match="with another checkpoint, and its records would land twice"):
            landing(tmp_path, query="q-2").take(batch(0), 0)
        assert plain_rows(str(tmp_path / "lake")) == ids(0)

    def test_removing_the_journal_lets_another_checkpoint_in(self, tmp_path: Path) -> None:
        landing(tmp_path).take(batch(0), 0)
        LocalFiles().remove(str(tmp_path / "lake/_barnabas/orders"))
        landing(tmp_path, query="q-2").take(batch(1), 0)
        assert plain_rows(str(tmp_path / "lake")) == ids(0, 1)

    def test_a_checkpoint_that_was_rolled_back_is_refused(self, tmp_path: Path) -> None:
        landed = landing(tmp_path)
        landed.take(batch(0), 0)
        landed.take(batch(1), 1)
        with pytest.raises(PipelineError, match=r"begins again with 0: it was rolled back"):
            landing(tmp_path).take(batch(0), 0)


class TestTwoAtOnce:
    def test_the_second_to_decide_ends_and_nothing_is_there_twice(self, tmp_path: Path) -> None:
        first, second = landing(tmp_path), landing(tmp_path)
        first.take(batch(0), 0)
        second.take(batch(0), 0)
        second.take(batch(1), 1)
        with pytest.raises(PipelineError, match=r"another process landed batch 1 of orders in .* stop one"):
            first.take(batch(1), 1)
        assert plain_rows(str(tmp_path / "lake")) == ids(0, 1)

    def test_files_that_a_killed_driver_still_writes_are_not_taken(self, tmp_path: Path) -> None:
        with pytest.raises(Crash):
            landing(tmp_path, FragileFiles(LocalFiles(), 1, done=False)).take(batch(0), 0)
        killed = next((tmp_path / ".lake.staging/orders").iterdir())
        tables = ArrowTables(["date"])

        def staged_again(rows: Any, folder: str) -> None:
            ArrowTables(["date"]).write(rows, folder)
            ArrowTables(["date"], files_per_partition=3).write(rows, str(killed / "0" / "new"))

        tables.write = staged_again  # type: ignore[method-assign]  # a task of the killed driver, meanwhile
        landing(tmp_path, tables=tables).take(batch(0), 0)
        assert plain_rows(str(tmp_path / "lake")) == ids(0)

    def test_what_earlier_runs_left_is_removed(self, tmp_path: Path) -> None:
        with pytest.raises(Crash):
            landing(tmp_path, FragileFiles(LocalFiles(), 1, done=False)).take(batch(0), 0)
        LocalFiles().put(str(tmp_path / "lake/_barnabas/orders/.0.json.x.new"), "")
        landing(tmp_path).take(batch(0), 0)
        assert [each for each in (tmp_path / ".lake.staging").rglob("*") if each.is_file()] == []
        kept = sorted(each.name for each in (tmp_path / "lake/_barnabas/orders").iterdir())
        assert kept == ["0.done", "0.json"]


class TestGrowing:
    def test_the_newest_file_of_a_partition_grows(self, tmp_path: Path) -> None:
        landed = landing(tmp_path, file_size=1_000_000)
        for number in range(5):
            landed.take(batch(number), number)
        assert len(plain_files(str(tmp_path / "lake"))) == 2
        assert plain_rows(str(tmp_path / "lake")) == ids(0, 1, 2, 3, 4)

    def test_a_file_that_is_large_enough_is_left_alone(self, tmp_path: Path) -> None:
        landed = landing(tmp_path, file_size=1)
        for number in range(3):
            landed.take(batch(number), number)
        assert len(plain_files(str(tmp_path / "lake"))) == 6

    def test_growing_goes_on_after_a_restart(self, tmp_path: Path) -> None:
        landing(tmp_path, file_size=1_000_000).take(batch(0), 0)
        landing(tmp_path, file_size=1_000_000).take(batch(1), 1)
        assert len(plain_files(str(tmp_path / "lake"))) == 2
        assert plain_rows(str(tmp_path / "lake")) == ids(0, 1)

    def test_a_reader_that_has_a_file_open_keeps_what_it_began_with(self, tmp_path: Path) -> None:
        landed = landing(tmp_path, file_size=1_000_000)
        landed.take(batch(0), 0)
        first = tmp_path / "lake" / plain_files(str(tmp_path / "lake"))[0]
        before = first.read_bytes()
        with first.open("rb") as opened:
            landed.take(batch(1), 1)
            assert opened.read() == before
        assert first.read_bytes() != before

    def test_partitions_grow_by_themselves(self, tmp_path: Path) -> None:
        landed = landing(tmp_path, file_size=1_000_000)
        landed.take(batch(0), 0)
        landed.take([{"id": 77, "date": "2026-05-09"}], 1)
        landed.take([{"id": 78, "date": "2026-05-09"}], 2)
        assert [name.partition("/")[0] for name in plain_files(str(tmp_path / "lake"))] == [
            "date=2026-05-01",
            "date=2026-05-02",
            "date=2026-05-09",
        ]
        assert plain_rows(str(tmp_path / "lake")) == [*ids(0), 77, 78]


def test_the_values_of_partitions_are_in_the_folders() -> None:
    assert partition_values("date=2026-05-01/region=a%3Db/x.parquet") == {
        "date": "2026-05-01",
        "region": "a=b",
    }
    assert partition_values("region=__HIVE_DEFAULT_PARTITION__/x.parquet") == {"region": None}
    assert partition_values("x.parquet") == {}


def test_a_decision_is_the_same_after_it_was_written_and_read() -> None:
    decision = Decision("q", 3, "run/3", [("new/a", "b")], {"b": 5}, {"b": 2}, {"": "b"})
    assert Decision.from_json(decision.to_json()) == decision
    assert Decision.from_json('{"query": "q", "batch": 3, "moves": []}').staged == "3", "an older one"
