"""A coordinator's partition read back from its log, chunk by chunk, without holding up the event loop."""

from collections.abc import Callable
from functools import partial

from barnabas.base.buffers import FileSlice
from barnabas.broker.offload import Offload
from barnabas.log.partition_log import PartitionLog

__all__ = ["replay"]


async def replay(
    log: PartitionLog,
    feed: Callable[[FileSlice], None],
    *,
    end_offset: int,
    chunk_bytes: int,
    offload: Offload,
) -> None:
    """Gives `feed` the batches from the log start up to `end_offset`, in order, on a thread."""
    offset = log.log_start_offset
    while offset < end_offset:
        read = log.read(offset, max_bytes=chunk_bytes, upper_bound=end_offset)
        if read.slice is None:
            return
        await offload.run(partial(feed, read.slice))
        offset = read.next_offset
