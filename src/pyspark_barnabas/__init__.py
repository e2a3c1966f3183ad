"""Makes `spark.read.format("barnabas")` work without a register call: Spark imports every pyspark_* module.

A module of that kind that fails on import disables the discovery of all of them, so this one imports nothing
but PySpark; the rest is imported when a reader or writer is made.
"""

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """Topics of a Kafka cluster as tables and streams, to read and to write."""

    options: MutableMapping[str, str]

    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def schema(self) -> StructType:
        from barnabas.spark import source

        return source.schema(self.options)

    def reader(self, schema: StructType) -> "DataSourceReader":
        from barnabas.spark import source

        return source.batch_reader(self.options, schema)

    def streamReader(self, schema: StructType) -> "DataSourceStreamReader":
        from barnabas.spark import source

        return source.stream_reader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":
        from barnabas.spark import sink

        return sink.batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "DataSourceStreamWriter":
        from barnabas.spark import sink

        return sink.stream_writer(self.options, schema, overwrite)
