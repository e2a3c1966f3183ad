"""Answers on their way out: posted while state changes, sent when it is whole again."""

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["Outbox"]

Result = TypeVar("Result")


class Outbox:
    """A queue of answers, oldest first.

    Every entry into the coordinator (request, timer, end of a write) flushes before it returns, so a
    reply may call straight back into the coordinator.  A reply must not raise.
    """

    __slots__ = ("_posted",)

    def __init__(self) -> None:
        self._posted: deque[tuple[Callable[[Any], None], Any]] = deque()

    def post(self, reply: Callable[[Result], None], result: Result) -> None:
        self._posted.append((reply, result))

    def flush(self) -> None:
        while self._posted:
            reply, result = self._posted.popleft()
            reply(result)
