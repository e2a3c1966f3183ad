"""What every backend of the coordination tree must do: one suite for all of them.

`check_store` runs each rule on a fresh tree.  A backend's test gives it a function that makes one more
session on the same, at first empty, tree; the suite closes what it opened.  It waits for events by
awaiting them, never by sleeping, so a backend may be as slow as it likes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from barnabas.base.errors import Closed
from barnabas.store.errors import (
    BadPath,
    BadVersion,
    NoChildrenForEphemerals,
    NodeExists,
    NodeTooLarge,
    NoNode,
    NotEmpty,
    StoreError,
)
from barnabas.store.tree import (
    DATA_BYTES_MAX,
    Check,
    Create,
    Delete,
    EventKind,
    SessionState,
    SetData,
    Stat,
    Store,
    WatchEvent,
)

__all__ = ["RULES", "Connect", "check_store"]

Connect = Callable[[], Awaitable[Store]]
Rule = Callable[[Connect], Awaitable[None]]
_EVENT_SECONDS_MAX = 30


async def check_store(make_tree: Callable[[], Awaitable[Connect]]) -> None:
    """Runs every rule of RULES, each on a new tree from `make_tree`."""
    for rule in RULES:
        connect = await make_tree()
        async with AsyncExitStack() as stack:

            async def open_session(connect: Connect = connect, stack: AsyncExitStack = stack) -> Store:
                store = await connect()
                stack.push_async_callback(store.close)
                return store

            await rule(open_session)


class Events:
    """A watch callback that keeps what it is told."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[WatchEvent] = asyncio.Queue()

    def __call__(self, event: WatchEvent) -> None:
        self._queue.put_nowait(event)

    async def next(self) -> WatchEvent:
        return await asyncio.wait_for(self._queue.get(), _EVENT_SECONDS_MAX)

    def is_empty(self) -> bool:
        return self._queue.empty()


async def refused(error_class: type[Exception], call: Awaitable[Any]) -> Exception:
    """The error of that class that the call must raise."""
    try:
        result = await call
    except error_class as error:
        return error
    raise AssertionError(f"{error_class.__name__} expected, got {result!r}")


async def a_new_tree_has_only_the_root(connect: Connect) -> None:
    store = await connect()
    data, stat = await store.get("/")
    assert data == b""
    assert stat.version == 0
    assert await store.exists("/a") is None
    assert store.state is SessionState.CONNECTED


async def a_created_node_is_read_back(connect: Connect) -> None:
    store = await connect()
    created = await store.create("/a", b"one")
    assert created.path == "/a"
    data, stat = await store.get("/a")
    assert (data, stat) == (b"one", created.stat)
    assert (stat.version, stat.cversion, stat.data_length, stat.num_children) == (0, 0, 3, 0)
    assert stat.czxid == stat.mzxid > 0
    assert stat.ephemeral_owner == 0
    assert await store.children("/") == ["a"]
    _, root = await store.get("/")
    assert root.num_children == 1
    assert root.pzxid == stat.czxid


async def create_refuses_a_node_that_exists_and_one_without_parent(connect: Connect) -> None:
    store = await connect()
    await store.create("/a")
    assert (await refused(NodeExists, store.create("/a"))).args[0] == "/a"
    await refused(NodeExists, store.create("/"))
    await refused(NoNode, store.create("/b/c"))
    assert await store.exists("/b") is None


async def reads_of_a_missing_node_are_refused(connect: Connect) -> None:
    store = await connect()
    error = await refused(NoNode, store.get("/a"))
    assert str(error) == "/a: no such node"
    await refused(NoNode, store.children("/a"))
    await refused(NoNode, store.set("/a", b""))
    await refused(NoNode, store.delete("/a"))


async def set_needs_the_version_that_was_read(connect: Connect) -> None:
    store = await connect()
    created = await store.create("/a", b"0")
    first = await store.set("/a", b"11", version=0)
    assert (first.version, first.data_length) == (1, 2)
    assert first.mzxid > first.czxid == created.stat.czxid
    await refused(BadVersion, store.set("/a", b"2", version=0))
    assert await store.get("/a") == (b"11", first)
    assert (await store.set("/a", b"2")).version == 2


async def delete_needs_the_version_and_no_children(connect: Connect) -> None:
    store = await connect()
    await store.create("/a")
    await store.create("/a/b")
    await refused(NotEmpty, store.delete("/a"))
    await refused(BadVersion, store.delete("/a/b", version=1))
    await store.delete("/a/b", version=0)
    await store.delete("/a")
    assert await store.exists("/a") is None
    await refused(NoNode, store.delete("/a"))


async def a_node_made_again_has_a_later_czxid(connect: Connect) -> None:
    store = await connect()
    first = (await store.create("/a")).stat
    await store.delete("/a")
    second = (await store.create("/a")).stat
    assert second.czxid > first.czxid
    assert second.version == 0


async def sequential_nodes_get_rising_numbers(connect: Connect) -> None:
    store = await connect()
    await store.create("/q")
    first = (await store.create("/q/n_", sequential=True)).path
    second = (await store.create("/q/n_", sequential=True)).path
    assert len(first) == len("/q/n_") + 10
    assert first < second
    await store.delete(second)
    third = (await store.create("/q/n_", b"", sequential=True)).path
    assert third > second, "a number does not come back"


async def children_are_names_in_order(connect: Connect) -> None:
    store = await connect()
    for name in ("b", "a", "c"):
        await store.create(f"/{name}")
    await store.create("/a/deep")
    assert await store.children("/") == ["a", "b", "c"]
    assert await store.children("/a") == ["deep"]
    assert await store.children("/b") == []


async def ensure_makes_what_is_missing(connect: Connect) -> None:
    store = await connect()
    await store.ensure("/a/b/c")
    before = await store.exists("/a/b/c")
    await asyncio.gather(store.ensure("/a/b/c"), store.ensure("/a/b/d"), store.ensure("/"))
    assert await store.exists("/a/b/c") == before
    assert await store.children("/a/b") == ["c", "d"]


async def ephemeral_nodes_end_with_their_session(connect: Connect) -> None:
    store, other = await connect(), await connect()
    assert store.session_id != other.session_id
    created = await other.create("/e", b"here", ephemeral=True)
    assert created.stat.ephemeral_owner == other.session_id
    await other.create("/stays")
    await refused(NoChildrenForEphemerals, other.create("/e/x"))
    events = Events()
    assert await store.exists("/e", watch=events) is not None
    await other.close()
    assert await events.next() == WatchEvent(EventKind.DELETED, "/e")
    assert await store.children("/") == ["stays"]


async def a_transaction_takes_effect_as_a_whole(connect: Connect) -> None:
    store = await connect()
    await store.create("/old")
    results = await store.transact(
        [
            Create("/a", b"1"),
            Create("/a/s_", sequential=True),
            SetData("/a", b"2", 0),
            Check("/old", 0),
            Delete("/old"),
        ]
    )
    path, sequential, stat, checked, deleted = results
    assert path == "/a"
    assert isinstance(sequential, str)
    assert isinstance(stat, Stat)
    assert stat.version == 1
    assert (checked, deleted) == (None, None)
    assert await store.children("/") == ["a"]
    assert (await store.get("/a"))[0] == b"2"
    assert await store.transact([]) == []


async def a_refused_transaction_changes_nothing(connect: Connect) -> None:
    store = await connect()
    created = await store.create("/a", b"0")
    error = await refused(
        BadVersion, store.transact([Create("/b"), SetData("/a", b"1"), Check("/b", 7), Delete("/a")])
    )
    assert isinstance(error, StoreError)
    assert error.operation == 2
    assert error.path == "/b"
    assert await store.children("/") == ["a"]
    assert await store.get("/a") == (b"0", created.stat)
    await refused(NodeExists, store.transact([Create("/c"), Create("/c")]))
    assert await store.exists("/c") is None


async def a_data_watch_hears_one_change(connect: Connect) -> None:
    store, other = await connect(), await connect()
    await store.create("/a")
    events = Events()
    await store.get("/a", watch=events)
    await other.set("/a", b"1")
    await other.set("/a", b"2")
    assert await events.next() == WatchEvent(EventKind.CHANGED, "/a")
    await store.get("/a", watch=events)
    await other.delete("/a")
    assert await events.next() == WatchEvent(EventKind.DELETED, "/a")
    await other.create("/a")
    assert await store.exists("/a") is not None
    assert events.is_empty()


async def an_exists_watch_hears_of_the_creation(connect: Connect) -> None:
    store, other = await connect(), await connect()
    events = Events()
    assert await store.exists("/a", watch=events) is None
    await other.create("/a")
    assert await events.next() == WatchEvent(EventKind.CREATED, "/a")


async def a_child_watch_hears_of_coming_and_going(connect: Connect) -> None:
    store, other = await connect(), await connect()
    await store.create("/a")
    events = Events()
    await store.children("/a", watch=events)
    await other.set("/a", b"data is not its business")
    await other.create("/a/b")
    assert await events.next() == WatchEvent(EventKind.CHILDREN, "/a")
    await store.children("/a", watch=events)
    await other.create("/a/b/deeper")
    await other.delete("/a/b/deeper")
    await other.delete("/a/b")
    assert await events.next() == WatchEvent(EventKind.CHILDREN, "/a")
    await store.children("/a", watch=events)
    await other.delete("/a")
    assert await events.next() == WatchEvent(EventKind.DELETED, "/a")
    assert events.is_empty()


async def a_watch_is_not_left_by_a_refused_read(connect: Connect) -> None:
    store = await connect()
    events = Events()
    await refused(NoNode, store.get("/a", watch=events))
    await refused(NoNode, store.children("/a", watch=events))
    await store.create("/a")
    await store.create("/a/b")
    assert await store.exists("/a") is not None
    assert events.is_empty()


async def a_watch_speaks_before_a_read_shows_the_change(connect: Connect) -> None:
    store, other = await connect(), await connect()
    await store.create("/a", b"0")
    for number in range(1, 20):
        events = Events()
        await store.get("/a", watch=events)
        write = asyncio.ensure_future(other.set("/a", str(number).encode()))
        while (await store.get("/a"))[0] != str(number).encode():
            pass
        assert not events.is_empty(), "the new data was seen before the event"
        await write


async def bad_arguments_are_refused_before_the_tree_is_asked(connect: Connect) -> None:
    store = await connect()
    for path in ("", "a", "/a/", "//", "/a//b", "/./a", "/a/..", "/a\x00b", "/a\nb"):
        await refused(BadPath, store.create(path))
        await refused(BadPath, store.get(path))
    await refused(NodeTooLarge, store.create("/a", bytes(DATA_BYTES_MAX + 1)))
    await store.create("/a", bytes(DATA_BYTES_MAX))
    await refused(NodeTooLarge, store.set("/a", bytes(DATA_BYTES_MAX + 1)))
    assert len((await store.get("/a"))[0]) == DATA_BYTES_MAX


async def of_racing_writers_one_wins_each_version(connect: Connect) -> None:
    stores = [await connect() for _ in range(3)]
    await stores[0].create("/a", b"0")

    async def raise_by(store: Store, count: int) -> None:
        while count:
            data, stat = await store.get("/a")
            try:
                await store.set("/a", str(int(data) + 1).encode(), version=stat.version)
            except BadVersion:
                continue
            count -= 1

    await asyncio.gather(*(raise_by(store, 10) for store in stores))
    data, stat = await stores[0].get("/a")
    assert (data, stat.version) == (b"30", 30)


async def a_closed_store_refuses_calls_and_tells_its_listeners(connect: Connect) -> None:
    store = await connect()
    told: list[SessionState] = []
    store.listen(told.append)
    await store.close()
    await store.close()
    assert store.state is SessionState.CLOSED
    assert told == [SessionState.CLOSED]
    await refused(Closed, store.get("/"))
    await refused(Closed, store.create("/a"))


RULES: tuple[Rule, ...] = (
    a_new_tree_has_only_the_root,
    a_created_node_is_read_back,
    create_refuses_a_node_that_exists_and_one_without_parent,
    reads_of_a_missing_node_are_refused,
    set_needs_the_version_that_was_read,
    delete_needs_the_version_and_no_children,
    a_node_made_again_has_a_later_czxid,
    sequential_nodes_get_rising_numbers,
    children_are_names_in_order,
    ensure_makes_what_is_missing,
    ephemeral_nodes_end_with_their_session,
    a_transaction_takes_effect_as_a_whole,
    a_refused_transaction_changes_nothing,
    a_data_watch_hears_one_change,
    an_exists_watch_hears_of_the_creation,
    a_child_watch_hears_of_coming_and_going,
    a_watch_is_not_left_by_a_refused_read,
    a_watch_speaks_before_a_read_shows_the_change,
    bad_arguments_are_refused_before_the_tree_is_asked,
    of_racing_writers_one_wins_each_version,
    a_closed_store_refuses_calls_and_tells_its_listeners,
)
