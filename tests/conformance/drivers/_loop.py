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
