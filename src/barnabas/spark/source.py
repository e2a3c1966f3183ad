"""The driver's side of batch reads, and the schema that both kinds of reader have.

A reader is pickled to the executors, so it holds options only.
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.spark.errors import OptionError, SparkPartError
from barnabas.spark.lookup import Lookup
from barnabas.spark.offsets import clamp, report
from barnabas.spark.options import SourceOptions, parse_source
from barnabas.spark.planning import OffsetRange, ReadTask, plan_tasks
from barnabas.spark.versions import new_stream_reader

if TYPE_CHECKING:
    from barnabas.spark.stream import StreamReader

__all__ = ["BatchReader", "batch_reader", "plan", "read_ranges", "schema", "schema_of", "stream_reader"]

log = logging.getLogger(__name__)

_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_TYPES: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(_HEADER),
}


def schema_of(options: SourceOptions) -> StructType:
    texts = dict.fromkeys(options.text_columns, StringType())
    return StructType([StructField(name, texts.get(name, _TYPES[name])) for name in options.columns])


def schema(options: Mapping[str, str]) -> StructType:
    """The columns that the options ask for.  Raises OptionError for whatever is wrong with any option."""
    return schema_of(parse_source(options))


def batch_reader(options: Mapping[str, str], given: StructType) -> "BatchReader":
    parsed = parse_source(options, stream=False)
    check_schema(parsed, given)
    return BatchReader(parsed)


def stream_reader(options: Mapping[str, str], given: StructType) -> "StreamReader":
    parsed = parse_source(options, stream=True)
    check_schema(parsed, given)
    return new_stream_reader(parsed)


def check_schema(options: SourceOptions, given: StructType) -> None:
    """Raises OptionError when the user has set a schema of their own."""
    if [each.name for each in given] != list(options.columns):
        raise OptionError(
            "schema", "the columns of a topic are fixed", "leave .schema(…) out; option columns chooses some"
        )


class BatchReader(DataSourceReader):
    """Reads what lies between two bounds, fixed when the read is planned."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        lookup = Lookup(self._options)
        try:
            return list(plan(self._options, batch_ranges(self._options, lookup)))
        finally:
            lookup.close()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        # Spark plans a read of nothing as one task without a partition.
        return read_ranges(partition.ranges, self._options) if isinstance(partition, ReadTask) else iter(())


def read_ranges(ranges: Sequence[OffsetRange], options: SourceOptions) -> Iterator[Any]:
    """Runs in a task: the records as Arrow batches of exactly the schema that was promised."""
    from barnabas.spark.reading import read_task

    batches = read_task(ranges, options)
    return (_as_text(batch, options.text_columns) for batch in batches) if options.text_columns else batches


def _as_text(batch: Any, names: Collection[str]) -> Any:
    """The batch with these columns called strings; the bytes stay as they are, as in Spark's own cast."""
    import pyarrow

    columns = [
        column.view(pyarrow.string()) if name in names else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names)


def plan(options: SourceOptions, ranges: list[OffsetRange]) -> list[ReadTask]:
    """The tasks for ranges, as the options ask."""
    tasks = plan_tasks(
        ranges,
        min_partitions=options.min_partitions,
        max_records_per_partition=options.max_records_per_partition,
        pack_records=options.min_records_per_task,
    )
    return [ReadTask(task) for task in tasks]


def batch_ranges(options: SourceOptions, lookup: Lookup) -> list[OffsetRange]:
    """What a batch read reads.  Raises OptionError, DataLoss, SparkPartError."""
    partitions = lookup.partitions()
    # Logs grow and age meanwhile.  The end before the start: a new record must not move the start past it.
    # The bounds around both, so that what `latest` or a time means never lies outside of them.
    earliest = lookup.earliest(partitions)
    ends = lookup.resolve(options.ending, partitions, starting=False)
    starts = lookup.resolve(options.starting, partitions, starting=True)
    latest = lookup.latest(partitions)
    for where, start in sorted(starts.items()):
        if start > ends.get(where, start):
            raise SparkPartError(f"the read of {where} would start at {start}, past its end at {ends[where]}")
    inside_ends, lost_ends = clamp(ends, earliest, latest)
    inside_starts, lost_starts = clamp(starts, earliest, latest)
    for warning in report([*lost_starts, *lost_ends], fail=options.fail_on_data_loss):
        log.warning("%s", warning)
    return [
        OffsetRange(*where, start, inside_ends[where])
        for where, start in inside_starts.items()
        if where in inside_ends
    ]
