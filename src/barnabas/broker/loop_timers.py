"""Timers on the event loop, for the parts that take time as an argument."""

import asyncio
from collections.abc import Callable

__all__ = ["LoopTimers"]


class LoopTimers:
    """Calls back on the loop it was made on."""

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call_after(self, ms: int, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(ms / 1000, callback)

    def call_soon(self, callback: Callable[[], None]) -> asyncio.Handle:
        return self._loop.call_soon(callback)
