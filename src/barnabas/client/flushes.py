"""A flush: the batches it waits for, which may be split while it does."""

import asyncio
from collections.abc import Iterable
from typing import Final

from barnabas.client.producer_batch import ProducerBatch

__all__ = ["Flush"]


class Flush:
    """Sets `done` when every batch that was there at its start is done."""

    __slots__ = ("_pending", "done")

    def __init__(self, batches: Iterable[ProducerBatch], done: "asyncio.Future[None]") -> None:
        self._pending = set(batches)
        self.done: Final = done
        self._check()

    def finished(self, batch: ProducerBatch) -> None:
        """A batch is done."""
        self._pending.discard(batch)
        self._check()

    def split(self, batch: ProducerBatch, parts: Iterable[ProducerBatch]) -> None:
        """A batch goes on as its parts."""
        if batch in self._pending:
            self._pending.discard(batch)
            self._pending.update(parts)

    def _check(self) -> None:
        if not self._pending and not self.done.done():
            self.done.set_result(None)
