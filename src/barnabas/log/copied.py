"""Appending a copied run (see `records.copied`): the offsets are given, the log decides whether they fit.

K1  The log of a topic with barnabas.offsets.kept holds all there is to copy below its end, and nothing else.
K2  A run is appended only if its sender knows all below the log end to be there: its header names the log
    end, or an earlier one; batches that are there already are left out.  So K1 holds after a lost request,
    a lost answer, and with two senders at once.
K3  The records are believed, as a follower believes its leader: they were checked where they were first
    written.  Framing, checksums, sizes and C1-C3 are checked.

`prepare_copy` looks at nothing but its arguments and may run on a thread.
"""

from typing import NamedTuple

from barnabas.base.errors import Misuse
from barnabas.log.config import LogConfig
from barnabas.log.errors import OffsetsKept, PositionMismatch, RecordTooLarge
from barnabas.records.batch import RecordBatch, patch_batch, split_batches
from barnabas.records.copied import check_copied, is_run_header
from barnabas.records.errors import InvalidRecord

__all__ = ["PreparedCopy", "prepare_copy", "unseen"]


class PreparedCopy(NamedTuple):
    """Checked batches of a run, at least one; they lie in `data`, which is writable."""

    data: memoryview
    batches: list[RecordBatch]
    log_end_offset: int
    """Where the sender believes the log ends."""


def prepare_copy(data: memoryview, config: LogConfig) -> PreparedCopy:
    """Check a run.  Raises OffsetsKept if it is none, CorruptBatch, InvalidRecord, RecordTooLarge."""
    if data.readonly:
        raise Misuse("the batches of an append are patched in place: the memory must be writable")
    found = split_batches(data)
    if not found or not is_run_header(found[0]):
        raise OffsetsKept(
            "the topic keeps the offsets of another cluster and only a mirror may write to it; "
            "set barnabas.offsets.kept=false to end that"
        )
    header, *batches = found
    header.check()
    if not batches:
        raise InvalidRecord("the run has no batches")
    end = header.base_offset
    for batch in batches:
        if batch.size_bytes > min(config.max_message_bytes, config.segment_bytes):
            raise RecordTooLarge(
                f"a batch of {batch.size_bytes} bytes is larger than "
                f"max.message.bytes={config.max_message_bytes} or segment.bytes={config.segment_bytes}"
            )
        batch.check()
        check_copied(batch)
        if batch.base_offset < end:
            raise InvalidRecord(f"{batch!r} comes where offset {end} or more is due")
        end = batch.next_offset
    return PreparedCopy(data, batches, header.base_offset)


def unseen(copy: PreparedCopy, log_end_offset: int, leader_epoch: int) -> list[RecordBatch]:
    """The batches of a run that a log ending at `log_end_offset` does not hold yet, stamped for it (K2).

    Raises PositionMismatch.
    """
    if copy.log_end_offset > log_end_offset:
        raise PositionMismatch(
            f"the run follows offset {copy.log_end_offset}, the log ends at {log_end_offset}: "
            "what is between was lost on the way"
        )
    fresh = [batch for batch in copy.batches if batch.next_offset > log_end_offset]
    if fresh and fresh[0].base_offset < log_end_offset:
        raise PositionMismatch(
            f"{fresh[0]!r} begins before the log end, {log_end_offset}, and ends behind it"
        )
    for batch in fresh:
        patch_batch(copy.data, batch.position, batch.base_offset, leader_epoch)
        batch.leader_epoch = leader_epoch
    return fresh
