"""Who waits for which change: one-shot watches of one session, by path.

A watch left by `get` or `exists` is a data watch, one left by `children` a child watch; an event takes
the watches it concerns out of the table.  The same callback at the same path is told once.
"""

from barnabas.store.tree import EventKind, WatchCallback, WatchEvent

__all__ = ["WatchTable"]


class WatchTable:
    """One caller at a time; calls no callback itself."""

    __slots__ = ("_children", "_data")

    def __init__(self) -> None:
        self._data: dict[str, dict[WatchCallback, None]] = {}  # dicts as ordered sets
        self._children: dict[str, dict[WatchCallback, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._data.values())) + sum(map(len, self._children.values()))

    def watch_data(self, path: str, callback: WatchCallback) -> None:
        self._data.setdefault(path, {})[callback] = None

    def watch_children(self, path: str, callback: WatchCallback) -> None:
        self._children.setdefault(path, {})[callback] = None

    def take(self, event: WatchEvent) -> list[WatchCallback]:
        """Removes and returns the watches that `event` concerns, oldest first."""
        match event.kind:
            case EventKind.CREATED | EventKind.CHANGED:
                return list(self._data.pop(event.path, ()))
            case EventKind.CHILDREN:
                return list(self._children.pop(event.path, ()))
            case EventKind.DELETED:
                return list(self._data.pop(event.path, {}) | self._children.pop(event.path, {}))
