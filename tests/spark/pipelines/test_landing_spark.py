"""A landing by Spark itself: partitions, growing files and counts."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.spark.pipelines.landing import Landing
from barnabas.spark.pipelines.landing_files import LocalFiles
from barnabas.spark.pipelines.landing_spark import SparkTables
from tests.spark.pipelines._arrow_tables import plain_files, plain_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_files_grow_and_odd_names_of_partitions_stay(spark: "SparkSession", tmp_path: Path) -> None:
    table = str(tmp_path / "lake")
    tables = SparkTables(spark, ["place"], one_file=True)
    landing = Landing(LocalFiles(), tables, table, writer="w", query="q" * 8, file_size=10_000_000)
    for number in range(2):
        rows = spark.createDataFrame(
            [(10 * number + each, ("007", "a=b c", None)[each]) for each in range(3)],
            "id INT, place STRING",
        )
        landing.take(rows, number)
    assert plain_rows(table) == [0, 1, 2, 10, 11, 12]
    folders = [name.partition("/")[0] for name in plain_files(table)]
    assert folders == ["place=007", "place=__HIVE_DEFAULT_PARTITION__", "place=a%3Db c"]


def test_times_are_written_as_every_reader_knows_them(spark: "SparkSession", tmp_path: Path) -> None:
    import pyarrow.parquet

    tables = SparkTables(spark, [], one_file=True)
    tables.write(spark.sql("SELECT 1 AS id, current_timestamp() AS at"), str(tmp_path / "t"))
    (file,) = plain_files(str(tmp_path / "t"))
    column = pyarrow.parquet.ParquetFile(tmp_path / "t" / file).schema.column(1)
    assert (column.physical_type, str(column.logical_type.type)) == ("INT64", "TIMESTAMP")


def test_rows_are_counted_by_file(spark: "SparkSession", tmp_path: Path) -> None:
    folder = str(tmp_path / "with space")
    tables = SparkTables(spark, ["p"], one_file=True)
    tables.write(spark.range(5).selectExpr("id", "id % 2 AS p"), folder)
    counts = tables.counts(folder)
    assert sorted((path.partition("/")[0], count) for path, count in counts.items()) == [
        ("p=0", 3),
        ("p=1", 2),
    ]
    assert sorted(counts) == plain_files(folder)
