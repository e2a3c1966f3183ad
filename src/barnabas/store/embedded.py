"""The tree in one SQLite file, without a server.

A file may serve any number of sessions of one process, each an EmbeddedStore; a broker uses one, tests
run whole clusters on several.  Blocking work is done by the worker, so the event loop never waits for
the disk.  A session ends by `close`, by `expire`, or with the process: what it left is deleted when the
file is next opened.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from barnabas.base.clock import Clock, SystemClock
from barnabas.base.errors import Closed, Misuse
from barnabas.store.errors import SessionExpired
from barnabas.store.tree import (
    ANY_VERSION,
    Create,
    Created,
    Delete,
    Operation,
    Result,
    SessionListener,
    SessionState,
    SetData,
    Stat,
    WatchCallback,
    check_data,
    check_path,
    split_path,
)
from barnabas.store.watches import WatchTable
from barnabas.store.worker import Work, Worker

__all__ = ["EmbeddedStore", "EmbeddedTree", "open_embedded"]

_T = TypeVar("_T")


async def open_embedded(path: str, *, clock: Clock | None = None) -> "EmbeddedStore":
    """A session alone on its file; closing it closes the file.  Raises what `EmbeddedTree.open` raises."""
    tree = await EmbeddedTree.open(path, clock=clock)
    return await tree.connect(owns_tree=True)


class EmbeddedTree:
    """An open store file.  Make it with `open`, get sessions from `connect`."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._stores: dict[EmbeddedStore, None] = {}

    @classmethod
    async def open(cls, path: str, *, clock: Clock | None = None) -> "EmbeddedTree":
        """Opens the file, or makes it.  Raises StoreInUse, StoreTooNew, StoreCorrupt or StorageFault."""
        worker = Worker(path, clock or SystemClock())
        await worker.start()
        return cls(worker)

    async def connect(self, *, owns_tree: bool = False) -> "EmbeddedStore":
        """A new session; with `owns_tree` its close closes the tree."""
        session_id = await self._worker.submit(_open_session, writes=False)
        store = EmbeddedStore(self, self._worker, session_id, owns_tree=owns_tree)
        self._stores[store] = None
        return store

    async def close(self) -> None:
        """Ends every session, then frees the file and its lock."""
        for store in list(self._stores):
            await store.end_session(SessionState.CLOSED)
        await self._worker.stop()

    def forget(self, store: "EmbeddedStore") -> None:
        self._stores.pop(store, None)


class EmbeddedStore:
    """One session on an EmbeddedTree; meets `store.tree.Store`."""

    def __init__(self, tree: EmbeddedTree, worker: Worker, session_id: int, *, owns_tree: bool) -> None:
        self._tree = tree
        self._worker = worker
        self._session_id = session_id
        self._owns_tree = owns_tree
        self._state = SessionState.CONNECTED
        self._listeners: list[SessionListener] = []

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def state(self) -> SessionState:
        return self._state

    async def get(self, path: str, *, watch: WatchCallback | None = None) -> tuple[bytes, Stat]:
        check_path(path)
        session_id = self._live(path)

        def run(work: Work) -> tuple[bytes, Stat]:
            found = work.tree.get(path)
            if watch is not None:
                work.watches[session_id].watch_data(path, watch)
            return found

        return await self._submit(path, run)

    async def exists(self, path: str, *, watch: WatchCallback | None = None) -> Stat | None:
        check_path(path)
        session_id = self._live(path)

        def run(work: Work) -> Stat | None:
            stat = work.tree.stat(path)
            if watch is not None:
                work.watches[session_id].watch_data(path, watch)
            return stat

        return await self._submit(path, run)

    async def children(self, path: str, *, watch: WatchCallback | None = None) -> list[str]:
        check_path(path)
        session_id = self._live(path)

        def run(work: Work) -> list[str]:
            names = work.tree.children(path)
            if watch is not None:
                work.watches[session_id].watch_children(path, watch)
            return names

        return await self._submit(path, run)

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> Created:
        create = Create(path, data, ephemeral, sequential)
        _check(create)
        session_id = self._live(path)

        def run(work: Work) -> Created:
            (created,) = _apply(work, session_id, [create])
            assert isinstance(created, str), created
            stat = work.tree.stat(created)
            assert stat is not None, created
            return Created(created, stat)

        return await self._submit(path, run, writes=True)

    async def set(self, path: str, data: bytes, *, version: int = ANY_VERSION) -> Stat:
        (stat,) = await self.transact([SetData(path, data, version)])
        assert isinstance(stat, Stat), stat
        return stat

    async def delete(self, path: str, *, version: int = ANY_VERSION) -> None:
        await self.transact([Delete(path, version)])

    async def transact(self, operations: Sequence[Operation]) -> list[Result]:
        operations = tuple(operations)
        if not operations:
            return []
        for operation in operations:
            _check(operation)
        path = operations[0].path
        session_id = self._live(path)
        return await self._submit(path, lambda work: _apply(work, session_id, operations), writes=True)

    async def ensure(self, path: str) -> None:
        check_path(path)
        session_id = self._live(path)

        def run(work: Work) -> None:
            missing: list[str] = []
            node = path
            while work.tree.stat(node) is None:
                missing.append(node)
                node, _ = split_path(node)
            if missing:
                _apply(work, session_id, [Create(node) for node in reversed(missing)])

        await self._submit(path, run, writes=True)

    def listen(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    async def expire(self) -> None:
        """Ends the session as if it had timed out, for tests and fault runs."""
        await self.end_session(SessionState.EXPIRED)

    async def renew(self) -> int:
        if self._state is not SessionState.EXPIRED:
            raise Misuse(f"only an expired session is renewed; this one is {self._state.value}")
        self._session_id = await self._worker.submit(_open_session, writes=False)
        self._become(SessionState.CONNECTED)
        return self._session_id

    async def close(self) -> None:
        if self._owns_tree:
            await self._tree.close()
        else:
            await self.end_session(SessionState.CLOSED)

    async def end_session(self, state: SessionState) -> None:
        """Deletes the session's ephemerals and watches; calls after this raise."""
        if self._state in (SessionState.CLOSED, state):
            return
        was_connected = self._state is SessionState.CONNECTED
        self._become(state)
        if state is SessionState.CLOSED:
            self._tree.forget(self)
        if was_connected:
            session_id = self._session_id

            def run(work: Work) -> None:
                work.watches.pop(session_id, None)
                work.events.extend(work.tree.end_session(session_id))

            await self._worker.submit(run, writes=True)

    def _become(self, state: SessionState) -> None:
        self._state = state
        for listener in self._listeners:
            listener(state)

    def _live(self, path: str) -> int:
        if self._state is SessionState.CLOSED:
            raise Closed("the store session is closed")
        if self._state is SessionState.EXPIRED:
            raise SessionExpired(path)
        return self._session_id

    async def _submit(self, path: str, run: Callable[[Work], _T], *, writes: bool = False) -> _T:
        session_id = self._session_id

        def run_in_session(work: Work) -> _T:
            if not work.tree.has_session(session_id):
                raise SessionExpired(path)
            return run(work)

        return await self._worker.submit(run_in_session, writes=writes)


def _open_session(work: Work) -> int:
    session_id = work.tree.open_session()
    work.watches[session_id] = WatchTable()
    return session_id


def _apply(work: Work, session_id: int, operations: Sequence[Operation]) -> list[Result]:
    applied = work.tree.apply(session_id, operations)
    work.events.extend(applied.events)
    return applied.results


def _check(operation: Operation) -> None:
    check_path(operation.path)
    if isinstance(operation, Create | SetData):
        check_data(operation.path, operation.data)
