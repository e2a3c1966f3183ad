"""Looking records up by their time, inside one segment.

The time index says where no record before is young enough; from there batches are walked by their
headers, and only the one that holds the answer is read and decoded.
"""

from typing import NamedTuple

from barnabas.log.append import uncompressed_payload
from barnabas.log.errors import CorruptSegment
from barnabas.log.files import Files
from barnabas.log.scan import BatchPlace
from barnabas.log.segment import Segment
from barnabas.records import kernel
from barnabas.records.batch import RecordBatch
from barnabas.records.errors import RecordError

__all__ = ["FoundOffset", "find_largest_timestamp", "find_timestamp"]


class FoundOffset(NamedTuple):
    """A record that was looked for by time, and the leader epoch of its batch (-1 for none)."""

    offset: int
    timestamp: int
    leader_epoch: int


def find_timestamp(files: Files, segment: Segment, timestamp: int, start_offset: int) -> FoundOffset | None:
    """The first record from `start_offset` on that is not older than `timestamp`.

    Raises CorruptSegment.
    """
    entry = segment.time_index.floor(timestamp)
    position = segment.offset_index.floor(max(entry.offset, start_offset)).position
    for place in segment.walk(position):
        if place.max_timestamp >= timestamp and place.last_offset >= start_offset:
            found = _first_in_batch(files, segment, place, timestamp, start_offset)
            if found is not None:
                return found
    return None


def find_largest_timestamp(files: Files, segment: Segment) -> FoundOffset | None:
    """The first record that has the segment's largest timestamp; None when no record has a time."""
    largest = segment.largest
    if largest.timestamp < 0:
        return None
    position = segment.offset_index.floor(largest.offset).position
    for place in segment.walk(position):
        if place.max_timestamp == largest.timestamp:
            return _first_in_batch(files, segment, place, largest.timestamp, 0)
    return None


def _first_in_batch(
    files: Files, segment: Segment, place: BatchPlace, timestamp: int, start_offset: int
) -> FoundOffset | None:
    data = files.read(segment.file, place.position, place.size_bytes)
    try:
        batch = RecordBatch(memoryview(data))
        batch.check()
        records = kernel.decode(
            uncompressed_payload(batch, len(data)),
            batch.record_count,
            batch.base_offset,
            batch.base_timestamp,
            batch.log_append_time,
            start_offset=start_offset,
        )
    except RecordError as error:
        raise CorruptSegment(segment.path, place.position, str(error)) from error
    for record in records:
        if record.timestamp >= timestamp:
            return FoundOffset(record.offset, record.timestamp, batch.leader_epoch)
    return None
