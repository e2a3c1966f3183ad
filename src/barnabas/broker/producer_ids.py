"""Ids for idempotent producers, taken from the tree in blocks, so that no id is ever given twice."""

import asyncio

from barnabas.store import paths
from barnabas.store.documents import ProducerIdBlock
from barnabas.store.errors import BadVersion
from barnabas.store.tree import Store

__all__ = ["ProducerIds"]

BLOCK_SIZE = 1_000


class ProducerIds:
    """Hands out ids of this broker's block and claims the next block when it is used up."""

    __slots__ = ("_last", "_lock", "_next", "_node_id", "_store")

    def __init__(self, store: Store, node_id: int) -> None:
        self._store = store
        self._node_id = node_id
        self._lock = asyncio.Lock()
        self._next = 0
        self._last = -1

    async def next(self) -> int:
        """An id that nobody had before, also not before a restart."""
        async with self._lock:
            while self._next > self._last:
                await self._claim()
            self._next += 1
            return self._next - 1

    async def _claim(self) -> None:
        data, stat = await self._store.get(paths.PRODUCER_ID_BLOCK)
        first = ProducerIdBlock.decode(data).last + 1 if data else 0
        block = ProducerIdBlock(self._node_id, first, first + BLOCK_SIZE - 1)
        try:
            await self._store.set(paths.PRODUCER_ID_BLOCK, block.encode(), version=stat.version)
        except BadVersion:
            return  # another broker claimed it in between; look again
        self._next, self._last = block.first, block.last
