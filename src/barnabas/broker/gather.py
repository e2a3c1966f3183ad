"""Several calls that each report back once, and one answer when all of them have."""

from collections.abc import Callable, Collection, Hashable
from typing import Generic, TypeVar

__all__ = ["Gather"]

Name = TypeVar("Name", bound=Hashable)
Result = TypeVar("Result")


class Gather(Generic[Name, Result]):
    """Calls `finished` with every result, by name, after the last `done`; at once if nothing is awaited."""

    __slots__ = ("_finished", "_results", "_waiting")

    def __init__(self, names: Collection[Name], finished: Callable[[dict[Name, Result]], None]) -> None:
        self._waiting = set(names)
        self._results: dict[Name, Result] = {}
        self._finished = finished
        if not names:
            finished({})

    def done(self, name: Name, result: Result) -> None:
        """One call reported; exactly once per name."""
        self._waiting.remove(name)
        self._results[name] = result
        if not self._waiting:
            self._finished(self._results)
