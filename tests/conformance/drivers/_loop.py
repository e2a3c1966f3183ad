"""An event loop in a thread, for drivers of clients that are written for asyncio."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

TIMEOUT_S = 30
T = TypeVar("T")


class Loop:
    """One event loop in a thread for everything of this process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_S)


class LoopProducer:
    """What asynchronous producers with transactions have in common."""

    def __init__(self, loop: Loop, producer: Any) -> None:
        self._loop = loop
        self._producer = producer

    def begin(self) -> None:
        self._loop.run(self._producer.begin_transaction())

    def send(self, topic: str, partition: int, values: list[str]) -> None:
        self._loop.run(self._send(topic, partition, values))

    async def _send(self, topic: str, partition: int, values: list[str]) -> None:
        sent = [await self._producer.send(topic, value.encode(), partition=partition) for value in values]
        for each in sent:
            await each

    def commit(self) -> None:
        self._loop.run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._loop.run(self._producer.abort_transaction())
