"""What differs between the releases of PySpark that are supported, 4.0 and newer.

| PySpark | |
|---|---|
| 4.0 | no class for streams that write Arrow; the class for batches serves them too |
| 4.0 | the classes that keep checkpoints are in another package |
| 4.0, 4.1 | a stream source is told neither where a batch starts nor its trigger |

Whatever is decided by release is decided here, by what PySpark has.
"""

from typing import TYPE_CHECKING, Final

import pyspark
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter

from barnabas.spark.errors import OptionError

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:

    class DataSourceStreamArrowWriter(DataSourceArrowWriter, DataSourceStreamWriter):  # type: ignore[no-redef,misc]  # PySpark 4.0
        """By the first class rows come as Arrow, by the second `commit` and `abort` are those of a stream."""


try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

    HAS_LIMITS = True
except ImportError:
    HAS_LIMITS = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]  # PySpark 4.0 and 4.1
        """Says nothing there."""


if TYPE_CHECKING:
    from barnabas.spark.options import SourceOptions
    from barnabas.spark.stream import StreamReader

__all__ = [
    "HAS_LIMITS",
    "DataSourceStreamArrowWriter",
    "SupportsTriggerAvailableNow",
    "checkpoint_file_manager",
    "new_stream_reader",
    "why_no_pipelines",
]

_STREAMING: Final = "org.apache.spark.sql.execution.streaming"


def checkpoint_file_manager() -> str:
    """The Java class that keeps checkpoints by Hadoop's plain file system."""
    package = _STREAMING if pyspark.__version__.startswith("4.0.") else f"{_STREAMING}.checkpointing"
    return f"{package}.FileSystemBasedCheckpointFileManager"


def why_no_pipelines() -> str | None:
    """One sentence when this PySpark is too old for declared pipelines, which keep to limits and ends."""
    if HAS_LIMITS:
        return None
    return (
        f"pipelines need PySpark 4.2 or newer, and this is {pyspark.__version__}: pip install 'pyspark>=4.2'"
    )


def new_stream_reader(options: "SourceOptions") -> "StreamReader":
    """The reader that this PySpark knows how to ask.  Raises OptionError for limits that might do harm."""
    if HAS_LIMITS:
        from barnabas.spark.stream_limited import LimitedStreamReader

        return LimitedStreamReader(options)
    from barnabas.spark.stream_plain import PlainStreamReader

    if options.trigger != "processingtime":
        _refuse_limits(options)
    return PlainStreamReader(options)


def _refuse_limits(options: "SourceOptions") -> None:
    limits = {
        "maxOffsetsPerTrigger": options.max_offsets_per_trigger,
        "maxBytesPerTrigger": options.max_bytes_per_trigger,
        "minOffsetsPerTrigger": options.min_offsets_per_trigger,
    }
    for name, limit in limits.items():
        if limit is not None:
            raise OptionError(
                name,
                f"PySpark {pyspark.__version__} does not tell a source which trigger it runs for, and with "
                "availableNow the limit would leave rows unread",
                "set option trigger=processingTime if the query has that, or use PySpark 4.2 or newer",
            )
