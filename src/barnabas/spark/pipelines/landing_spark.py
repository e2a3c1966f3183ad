"""Parquet files of a landing, written and read by Spark."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from barnabas.spark.pipelines.landing import Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkTables"]


class SparkTables:
    """Implements landing.Tables."""

    def __init__(self, spark: "SparkSession", partition_by: Sequence[str], *, one_file: bool) -> None:
        """`one_file` writes each partition of a batch as one file."""
        self._spark = spark
        self._partition_by = list(partition_by)
        self._one_file = one_file

    def write(self, rows: "DataFrame", folder: str) -> None:
        if self._one_file:
            rows = rows.repartition(*self._partition_by) if self._partition_by else rows.coalesce(1)
        # Readers other than Spark do not all know INT96, which is what times are otherwise written as.
        rows.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        rows.write.mode("overwrite").partitionBy(*self._partition_by).parquet(folder)

    def merge(self, old: Part, new: Part, folder: str) -> None:
        own = self._spark.newSession()
        # Folder names must come back as they are: date=2026-01-01 is no date here, and 007 no number.
        own.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
        first, second = (own.read.option("basePath", base).parquet(*files) for base, files in (old, new))
        self.write(first.unionByName(second, allowMissingColumns=True), folder)

    def counts(self, folder: str) -> dict[str, int]:
        from pyspark.sql import functions as F

        by_file = self._spark.read.parquet(folder).groupBy(F.input_file_name().alias("file")).count()
        found: list[Any] = by_file.collect()
        top = unquote(urlsplit(folder).path).rstrip("/") + "/"
        return {unquote(row["file"]).rpartition(top)[2]: int(row["count"]) for row in found}
