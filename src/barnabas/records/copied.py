"""A copied run: batches from another cluster that are to keep their offsets, behind a header of their own.

The header is a control batch without records whose base offset says where the sender believes the log ends.
No producer may send a control batch, so nobody sends a run by mistake; and 64 bits of offset make the append
a compare-and-append: what was lost on the way cannot be skipped, what comes twice is known.

C1  In a run, offsets rise strictly and gaps are allowed: in them was what was not to be copied.
C2  Every batch holds records and belongs to no producer: producer ids are numbers of the cluster that gave
    them and would be taken for others in the next one.
C3  Timestamps and their type stay, and so does the compression: nobody looks behind the header.

No state is shared: any thread may call anything here on its own buffer.
"""

from typing import Final

from barnabas.records.batch import (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_TRANSACTIONAL,
    HEADER,
    HEADER_BYTES,
    LENGTH_COUNTS_FROM,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    RecordBatch,
    seal_batch,
    write_producer,
)
from barnabas.records.errors import InvalidRecord

__all__ = ["check_copied", "detach_batch", "is_run_header", "run_header"]

_NOT_COPIED: Final = ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL | ATTRIBUTE_DELETE_HORIZON


def run_header(log_end_offset: int) -> bytes:
    """What a run begins with: the log is believed to end at `log_end_offset`."""
    data = bytearray(
        HEADER.pack(
            log_end_offset,
            HEADER_BYTES - LENGTH_COUNTS_FROM,
            -1,
            MAGIC,
            0,
            ATTRIBUTE_CONTROL,
            -1,
            NO_TIMESTAMP,
            NO_TIMESTAMP,
            NO_PRODUCER_ID,
            NO_PRODUCER_EPOCH,
            NO_SEQUENCE,
            0,
        )
    )
    seal_batch(data, 0, HEADER_BYTES)
    return bytes(data)


def is_run_header(batch: RecordBatch) -> bool:
    """Whether the batch is the header of a run; its checksum is the caller's to check."""
    return batch.is_control and batch.record_count == 0 and batch.size_bytes == HEADER_BYTES


def detach_batch(buffer: bytearray | memoryview, batch: RecordBatch) -> None:
    """Make the batch, which lies in `buffer`, one of no producer and no transaction, in place (C2).

    A batch that is so already is left as it is, checksum included.
    """
    if batch.producer_id == NO_PRODUCER_ID and not batch.attributes & _NOT_COPIED:
        return
    attributes = batch.attributes & ~_NOT_COPIED
    write_producer(
        buffer,
        batch.position,
        batch.size_bytes,
        attributes,
        NO_PRODUCER_ID,
        NO_PRODUCER_EPOCH,
        NO_SEQUENCE,
    )


def check_copied(batch: RecordBatch) -> None:
    """Raise InvalidRecord for a batch that may not be in a run; `RecordBatch.check` is the caller's too."""
    if batch.attributes & _NOT_COPIED or batch.producer_id != NO_PRODUCER_ID:
        raise InvalidRecord(f"{batch!r} belongs to a producer or a transaction")
    if not 1 <= batch.record_count <= batch.last_offset_delta + 1:
        raise InvalidRecord(
            f"the batch counts {batch.record_count} records, its last offset delta "
            f"is {batch.last_offset_delta}"
        )
