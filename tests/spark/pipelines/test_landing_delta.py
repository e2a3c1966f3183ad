"""Batches are part of a Delta table exactly once, also when they are replayed."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.landing import Landing
from barnabas.spark.pipelines.landing_delta import DeltaCommit
from barnabas.spark.pipelines.landing_files import Files, LocalFiles
from barnabas.spark.pipelines.spec import FileSink
from tests.spark.pipelines._arrow_tables import ArrowTables
from tests.spark.pipelines._fragile import Crash, FragileFiles
from tests.spark.pipelines.test_landing import batch, ids

deltalake = pytest.importorskip("deltalake")
SCHEMA = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"date","type":"string","nullable":true,"metadata":{}}]}'
)


class Rows(list[Any]):
    """Rows with a schema, as a DataFrame has one."""

    class schema:
        text = SCHEMA

        @classmethod
        def json(cls) -> str:
            return cls.text


def landing(
    folder: Path, files: Files | None = None, *, query: str = "q-1", file_size: int | None = None
) -> Landing:
    sink = FileSink(str(folder / "lake"), "delta", ("date",), file_size)
    return Landing(
        files or LocalFiles(),
        ArrowTables(["date"]),
        sink.path,
        writer="orders",
        query=query,
        counted=True,
        commit=DeltaCommit(sink, f"orders/{query}").take,
    )


def table(folder: Path) -> Any:
    return deltalake.DeltaTable(str(folder / "lake"))


def rows(folder: Path) -> list[int]:
    return sorted(pa.table(table(folder).to_pyarrow_table())["id"].to_pylist())


def test_batches_become_versions(tmp_path: Path) -> None:
    landed = landing(tmp_path)
    landed.take(Rows(batch(0)), 0)
    landed.take(Rows(batch(1)), 1)
    assert rows(tmp_path) == ids(0, 1)
    found = table(tmp_path)
    assert (found.version(), found.transaction_version("orders/q-1")) == (1, 1)
    assert found.metadata().partition_columns == ["date"]


@pytest.mark.slow
@pytest.mark.parametrize("done", [False, True])
def test_rows_stay_exact_at_every_crash(tmp_path: Path, done: bool) -> None:
    crashes = 0
    for last in range(100):
        folder = tmp_path / str(last)
        reached = 0
        try:
            fragile = landing(folder, FragileFiles(LocalFiles(), last, done=done))
            for reached in range(3):
                fragile.take(Rows(batch(reached)), reached)
        except Crash:
            crashes += 1
            sound = landing(folder)
            for number in range(reached, 3):
                sound.take(Rows(batch(number)), number)
            assert rows(folder) == ids(0, 1, 2)
        else:
            break
    assert crashes > 10


def test_a_column_that_the_table_has_not_is_said(tmp_path: Path) -> None:
    landing(tmp_path).take(Rows(batch(0)), 0)

    class Wider(Rows):
        class schema(Rows.schema):
            text = SCHEMA.replace(
                '"fields":[', '"fields":[{"name":"more","type":"long","nullable":true,"metadata":{}},'
            )

    with pytest.raises(PipelineError, match=r"has no column more; add it, or land in another folder"):
        landing(tmp_path).take(Wider(batch(1)), 1)


@pytest.mark.slow
def test_small_files_are_compacted_in_a_version_of_their_own(tmp_path: Path) -> None:
    landed = landing(tmp_path, file_size=1_000_000)
    for number in range(21):
        landed.take(Rows(batch(number)), number)
    assert len(table(tmp_path).file_uris()) < 6
    assert rows(tmp_path) == ids(*range(21))
