"""Topics as DataFrames with typed columns.

`raw` has the columns of the source; `string` has key and value as texts.  json and avro have the columns of
the value, and of the record _key, _topic, _partition, _offset and _timestamp.

A value that does not fit its schema is never dropped: it goes to the dead letters, or ends the query.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from barnabas.spark.pipelines import clusters
from barnabas.spark.pipelines.avro import AvroFault, AvroSchema
from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.landing_files import Files
from barnabas.spark.pipelines.schemas import learn_ddl
from barnabas.spark.pipelines.spec import Source

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["METADATA", "pinned_schema", "pinned_start", "raw_rows", "typed_rows", "with_verdict"]

METADATA: Final = ("_key", "_topic", "_partition", "_offset", "_timestamp")
BAD: Final = "_barnabas_bad"
PARSED: Final = "_barnabas_parsed"
AVRO_PREFIX_BYTES: Final = {"avro": 0, "avro-confluent": 5}
"""What stands before the value: a schema registry's serializers put a zero and the schema's number there."""
_CORRUPT: Final = "_barnabas_corrupt"


def raw_rows(
    spark: "SparkSession", source: Source, *, query: str, starting: str, headers: bool = False
) -> "DataFrame":
    """The records of a source as a stream.  `starting` is earliest, offsets as JSON, or milliseconds."""
    reader = spark.readStream.format("barnabas").options(**source.cluster.options())
    reader = reader.option("kafka.isolation.level", source.isolation)
    if source.pattern is not None:
        reader = reader.option("subscribePattern", source.pattern)
    else:
        reader = reader.option("subscribe", ",".join(source.topics))
    if starting.isdigit():
        reader = reader.option("startingTimestamp", starting)
        reader = reader.option("startingOffsetsByTimestampStrategy", "latest")
    else:
        reader = reader.option("startingOffsets", starting)
    if headers:
        reader = reader.option("includeHeaders", "true")
    return reader.option("queryName", query).options(**source.options).load()


def pinned_start(files: Files, checkpoint: str, source: Source) -> str:
    """Where a source starts, the same for all queries of its pipeline and for every restart."""
    if source.starting == "earliest" or source.starting.isdigit():
        return source.starting
    if source.starting != "latest":
        moment = datetime.fromisoformat(source.starting)
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return str(round(moment.timestamp() * 1000))
    path = f"{checkpoint}/start-{source.view}.json"
    known = files.read(path)
    if known is None:
        known = clusters.end_offsets(source)
        files.put(path, known)
    return known


def pinned_schema(files: Files, checkpoint: str, source: Source) -> str | None:
    """The schema of a source: declared, or learnt once from its first records."""
    if source.format != "json" or source.schema is not None:
        return source.schema
    path = f"{checkpoint}/schema-{source.view}.ddl"
    known = files.read(path)
    if known is None:
        known = learn_ddl(clusters.sample(source), source.label)
        files.put(path, known)
    return known


def with_verdict(rows: "DataFrame", source: Source, schema: str | None) -> "DataFrame":
    """Adds the decoded value and, where it cannot be decoded, why."""
    from pyspark.sql import functions as F

    if source.format == "json":
        assert schema is not None, source
        text = F.col("value").cast("string")
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        parsed = F.from_json(text, f"{schema}, {_CORRUPT} STRING", options)
        rows = rows.withColumn(PARSED, parsed)
        is_bad = F.col(PARSED).isNull() | F.col(f"{PARSED}.{_CORRUPT}").isNotNull()
        cause = F.when(F.try_parse_json(text).isNull(), F.lit("the value is not JSON")).otherwise(
            F.lit(f"the value does not fit the schema {schema}")
        )
        return rows.withColumn(BAD, F.when(F.col("value").isNotNull() & is_bad, cause))
    if source.format in AVRO_PREFIX_BYTES:
        assert schema is not None, source
        return _avro_verdict(rows, schema, AVRO_PREFIX_BYTES[source.format])
    return rows.withColumn(BAD, F.lit(None).cast("string"))


def _avro_verdict(rows: "DataFrame", schema: str, skipped: int) -> "DataFrame":
    """Decoded in Python: Spark's own Avro needs a jar that does not come with PySpark."""
    from pyspark.sql import functions as F

    declared = AvroSchema(schema)

    def decode(value: bytes | None) -> tuple[Any, str | None]:
        if value is None:
            return None, None
        try:
            return declared.decode(bytes(value), skipped), None
        except AvroFault as fault:
            return None, f"the value is not Avro of the schema: {fault}"

    # Spark's way through Arrow would want pandas.
    decoded = F.udf(decode, f"value {declared.ddl}, error STRING", useArrow=False)("value")
    both = "_barnabas_avro"
    return (
        rows.withColumn(both, decoded)
        .withColumn(PARSED, F.col(f"{both}.value"))
        .withColumn(BAD, F.col(f"{both}.error"))
        .drop(both)
    )


def typed_rows(rows: "DataFrame", source: Source, schema: str | None, *, keep_going: bool) -> "DataFrame":
    """The columns that SQL sees.  Without `keep_going` a value that does not fit ends the query."""
    from pyspark.sql import functions as F

    if source.format == "raw":
        typed = rows
    elif source.format == "string":
        typed = rows.withColumns({"key": F.col("key").cast("string"), "value": F.col("value").cast("string")})
    else:
        judged = with_verdict(rows, source, schema)
        if keep_going:
            judged = judged.where(F.col(BAD).isNull())
        columns = [_field(name, keep_going=keep_going) for name in _field_names(judged)]
        typed = judged.select(*columns, *_metadata())
    mark = source.watermark
    if mark is None:
        return typed
    if mark.column not in typed.columns:
        raise PipelineError(
            f"watermark: {source.label} has no column {mark.column}; it has {', '.join(typed.columns)}"
        )
    return typed.withWatermark(mark.column, mark.delay)


def _field_names(judged: "DataFrame") -> list[str]:
    parsed = judged.schema[PARSED].dataType
    names: list[str] = [name for name in parsed.fieldNames() if name != _CORRUPT]  # type: ignore[attr-defined]  # a struct, by construction
    for name in names:
        if name in METADATA:
            raise PipelineError(f"schema: the column {name} has a name that the record's own columns have")
    return names


def _field(name: str, *, keep_going: bool) -> "Column":
    from pyspark.sql import functions as F

    value = F.col(f"{PARSED}.`{name}`")
    if keep_going:
        return value.alias(name)
    place = F.concat(
        F.col("topic"), F.lit("-"), F.col("partition"), F.lit(" offset "), F.col("offset"), F.lit(": ")
    )
    text = F.concat(place, F.col(BAD), F.lit("; set dead_letters to put such records aside"))
    return F.when(F.col(BAD).isNotNull(), F.raise_error(text)).otherwise(value).alias(name)


def _metadata() -> "list[Column]":
    from pyspark.sql import functions as F

    return [
        F.col("key").cast("string").alias("_key"),
        F.col("topic").alias("_topic"),
        F.col("partition").alias("_partition"),
        F.col("offset").alias("_offset"),
        F.col("timestamp").alias("_timestamp"),
    ]
