"""The stream reader for PySpark 4.2 and newer: told where a batch starts and of its limits."""

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from barnabas.spark.offsets import positions_json
from barnabas.spark.stream import StreamReader

__all__ = ["LimitedStreamReader"]


class LimitedStreamReader(StreamReader, SupportsTriggerAvailableNow):
    """Reads as much per batch as its options say."""

    def prepareForTriggerAvailableNow(self) -> None:
        self._is_available_now = True

    def getDefaultReadLimit(self) -> ReadLimit:
        """Says that there is a limit; `latestOffset` has the numbers from the options."""
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return self.end_of_batch(start, limited=not isinstance(limit, ReadAllAvailable))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """How far the partitions went at the last look; what lag is counted from."""
        return positions_json(self._latest) or None
