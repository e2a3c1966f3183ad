"""Which watches an event takes."""

from barnabas.store.tree import EventKind, WatchEvent
from barnabas.store.watches import WatchTable


def first(event: WatchEvent) -> None: ...


def second(event: WatchEvent) -> None: ...


def test_an_event_takes_the_watches_it_concerns() -> None:
    table = WatchTable()
    table.watch_data("/a", first)
    table.watch_children("/a", second)
    assert len(table) == 2
    assert table.take(WatchEvent(EventKind.CHANGED, "/b")) == []
    assert table.take(WatchEvent(EventKind.CHANGED, "/a")) == [first]
    assert table.take(WatchEvent(EventKind.CHANGED, "/a")) == []
    assert table.take(WatchEvent(EventKind.CHILDREN, "/a")) == [second]
    assert len(table) == 0


def test_a_deletion_tells_each_callback_once() -> None:
    table = WatchTable()
    table.watch_data("/a", first)
    table.watch_data("/a", first)
    table.watch_children("/a", first)
    table.watch_children("/a", second)
    assert table.take(WatchEvent(EventKind.DELETED, "/a")) == [first, second]
    assert len(table) == 0


def test_a_creation_takes_the_watches_of_exists() -> None:
    table = WatchTable()
    table.watch_data("/a", first)
    assert table.take(WatchEvent(EventKind.CREATED, "/a")) == [first]
