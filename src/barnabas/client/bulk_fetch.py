"""Ranges of offsets as raw batches, for readers that take millions of records at once.

    with BulkFetcher({"bootstrap.servers": "localhost:9092"}) as fetcher:
        for chunk in fetcher.read([("orders", 0, 0, 1_000_000)]):
            ...                        # chunk.records: whole batches, decoded by whoever wants to

Fetching runs ahead on a private thread while the caller works on what came before.  No group, no positions,
no object per record.  What the cluster does not have any more comes as a chunk with `lost`; what that means
is for the caller to decide.
"""

from collections.abc import Coroutine, Generator, Iterable, Mapping
from contextlib import suppress
from queue import Empty
from types import TracebackType
from typing import Any, Final, Literal, Self

from barnabas.client.cluster import Cluster
from barnabas.client.config import CONSUMER, ClientSettings, parse
from barnabas.client.errors import ClientClosed, RequestTimedOut
from barnabas.client.range_reads import FetchedChunk, Habits, Lost, RangeLike, RangeReads
from barnabas.client.thread import ClientThread

__all__ = ["BulkFetcher", "FetchedChunk", "Lost"]

TIMEOUT_MS: Final = 120_000

Isolation = Literal["read_uncommitted", "read_committed"]


class BulkFetcher:
    """Reads ranges of offsets.  Settings are a consumer's; `close` it.

    Several reads may run at once, each in one thread.  Raises ConfigFault for wrong settings and
    NoBrokersAvailable when no broker can be reached.
    """

    def __init__(self, settings: Mapping[str, object] | None = None, /, **more: object) -> None:
        self.settings: Final[ClientSettings] = parse(CONSUMER, settings, **more)
        self._habits = Habits()
        self._is_closed = False
        closing = _Closing()
        self._thread = ClientThread("barnabas-client-bulk-fetch", closing=closing.close)
        try:
            self._cluster = self._thread.call(_start(self.settings, closing))
        except BaseException:
            self._thread.stop()
            raise

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def read(
        self,
        ranges: Iterable[RangeLike],
        *,
        isolation: Isolation = "read_uncommitted",
        timeout_ms: int = TIMEOUT_MS,
    ) -> Generator[FetchedChunk, None, None]:
        """The batches of all ranges: each range in offset order, of several ranges as they come.

        Work starts with the first `next`; closing the iterator ends it.  A chunk's bytes may be kept.
        Raises KafkaError for what does not pass, RequestTimedOut when nothing came for `timeout_ms`,
        saying what the first unfinished range waits for, and RecordError for bytes that are no batches.
        """
        wanted = [(topic, partition, start, end) for topic, partition, start, end in ranges]
        read_committed = isolation == "read_committed"
        reads = self._thread.call(_begin(self._cluster, self.settings, wanted, read_committed, self._habits))
        try:
            while (chunk := _next(reads, timeout_ms)) is not None:
                size = len(chunk.records)
                yield chunk
                del chunk  # its memory goes with the caller's reference, not with the next chunk
                if reads.used(size):
                    self._thread.post(reads.wake)
        finally:
            with suppress(ClientClosed):
                self._thread.call(reads.stop())

    def close(self) -> None:
        """Ends reads that are under way with ClientClosed.  May be called again."""
        self._is_closed = True
        self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _next(reads: RangeReads, timeout_ms: int) -> FetchedChunk | None:
    try:
        item = reads.queue.get(timeout=timeout_ms / 1000)
    except Empty:
        raise RequestTimedOut(f"nothing came for {timeout_ms} ms: {reads.why_waiting()}") from None
    if isinstance(item, BaseException):
        raise item
    return item


class _Closing:
    """What the thread awaits at its end; it knows the cluster as soon as there is one."""

    def __init__(self) -> None:
        self.cluster: Cluster | None = None

    def close(self) -> Coroutine[Any, Any, None]:
        return self._close()

    async def _close(self) -> None:
        if self.cluster is not None:
            await self.cluster.close()


async def _start(settings: ClientSettings, closing: _Closing) -> Cluster:
    closing.cluster = cluster = Cluster(settings)
    await cluster.start()
    return cluster


async def _begin(
    cluster: Cluster, settings: ClientSettings, ranges: list[RangeLike], read_committed: bool, habits: Habits
) -> RangeReads:
    reads = RangeReads(cluster, settings, ranges, read_committed=read_committed, habits=habits)
    reads.start()
    return reads
