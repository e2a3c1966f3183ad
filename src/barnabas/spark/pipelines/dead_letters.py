"""Records that cannot be decoded, written to a topic as they are, with the cause in their headers.

Headers of a dead letter, after those it had: barnabas.dead.pipeline, .topic, .partition, .offset, .timestamp
(milliseconds) and .error.  A query of its own reads the same offsets as the pipeline and keeps what the
others leave out, exactly once; so nothing is lost between them.
"""

from typing import TYPE_CHECKING, Final

from barnabas.spark.pipelines.sources import BAD, with_verdict
from barnabas.spark.pipelines.spec import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["HEADER_PREFIX", "dead_rows", "decodes"]

HEADER_PREFIX: Final = "barnabas.dead."


def decodes(source: Source) -> bool:
    """Whether a source can have values that do not fit."""
    return source.format not in ("string", "raw")


def dead_rows(rows: "DataFrame", source: Source, schema: str | None, pipeline: str) -> "DataFrame":
    """The records of `rows` (with headers) that do not fit, as the sink takes them."""
    from pyspark.sql import functions as F

    causes = {
        "pipeline": F.lit(pipeline),
        "topic": F.col("topic"),
        "partition": F.col("partition").cast("string"),
        "offset": F.col("offset").cast("string"),
        "timestamp": F.unix_millis("timestamp").cast("string"),
        "error": F.col(BAD),
    }
    added = F.array(
        *(
            F.struct(F.lit(HEADER_PREFIX + name).alias("key"), value.cast("binary").alias("value"))
            for name, value in causes.items()
        )
    )
    # A record without headers has null there, and null would swallow the causes.
    empty = F.array().cast("array<struct<key:string,value:binary>>")
    return (
        with_verdict(rows, source, schema)
        .where(F.col(BAD).isNotNull())
        .select("key", "value", F.concat(F.coalesce("headers", empty), added).alias("headers"))
    )
