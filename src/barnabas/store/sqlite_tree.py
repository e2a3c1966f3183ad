"""The tree in one SQLite file, blocking, for one thread.

Q1  between `begin` and `commit` nothing is durable; `commit` returns when it is
Q2  the file holds one Barnabas store of a format this code knows, or opening it fails in one sentence
Q3  at open no ephemeral node is left: every session of the last run is dead
Q4  `num_children`, `cversion` and `pzxid` of a node agree with the rows that name it as parent

Owns the file, its -wal companion and its lock.  Knows no asyncio and keeps no watches; a write says
which events it caused.

Why WAL with synchronous=FULL: a commit appends to the log and syncs it once before it returns, so an
acknowledged write survives a power cut (NORMAL would sync only at checkpoints and may lose the last
commits; the rollback journals need three syncs and a directory sync for the same promise).  A torn tail
of the log fails its checksum and is dropped, which loses only what was never acknowledged.
locking_mode=EXCLUSIVE keeps the lock for as long as the file is open and needs no shared memory file.
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeVar

from barnabas.base.clock import Clock
from barnabas.base.errors import InvariantBroken, StorageFault
from barnabas.store.errors import (
    BadVersion,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    StoreCorrupt,
    StoreError,
    StoreInUse,
    StoreTooNew,
)
from barnabas.store.tree import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    EventKind,
    Operation,
    Result,
    SetData,
    Stat,
    WatchEvent,
    join_path,
    split_path,
)

__all__ = ["FORMAT_VERSION", "Applied", "SqliteTree"]

APPLICATION_ID = 0x42726E62  # "Brnb"; tells our file from any other SQLite file
FORMAT_VERSION = 1

_SCHEMA = """
CREATE TABLE node (
    id INTEGER PRIMARY KEY,
    parent TEXT NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    czxid INTEGER NOT NULL,
    mzxid INTEGER NOT NULL,
    pzxid INTEGER NOT NULL,
    ctime_ms INTEGER NOT NULL,
    mtime_ms INTEGER NOT NULL,
    version INTEGER NOT NULL,
    cversion INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    num_children INTEGER NOT NULL,
    UNIQUE (parent, name)
);
CREATE INDEX node_owner ON node (owner) WHERE owner != 0;
CREATE TABLE counter (zxid INTEGER NOT NULL);
"""
_STAT = "czxid, mzxid, pzxid, ctime_ms, mtime_ms, version, cversion, owner, length(data), num_children"
_SELECT_STAT = f"SELECT {_STAT} FROM node WHERE parent = ? AND name = ?"
_SELECT_NODE = f"SELECT {_STAT}, data FROM node WHERE parent = ? AND name = ?"

_T = TypeVar("_T")


class Applied(NamedTuple):
    """What a transaction gave, and the events it caused in order."""

    results: list[Result]
    events: list[WatchEvent]


class SqliteTree:
    """An open store file.  Every method runs on the thread that made it."""

    def __init__(self, path: str, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._sessions: set[int] = set()
        self._db = self._guarded(lambda: _open(path))
        try:
            self._guarded(self._recover)
        except BaseException:
            self._db.close()
            raise

    # Reading

    def stat(self, path: str) -> Stat | None:
        row = self._guarded(lambda: self._db.execute(_SELECT_STAT, split_path(path)).fetchone())
        return None if row is None else Stat._make(row)

    def get(self, path: str) -> tuple[bytes, Stat]:
        row = self._guarded(lambda: self._db.execute(_SELECT_NODE, split_path(path)).fetchone())
        if row is None:
            raise NoNode(path)
        return bytes(row[-1]), Stat._make(row[:-1])

    def children(self, path: str) -> list[str]:
        if self.stat(path) is None:
            raise NoNode(path)
        query = "SELECT name FROM node WHERE parent = ? ORDER BY name"
        rows = self._guarded(lambda: self._db.execute(query, (path,)).fetchall())
        return [name for (name,) in rows]

    # Sessions

    def open_session(self) -> int:
        """A new session, named by the zxid of its start; durable with the next commit."""
        self._zxid += 1
        self._sessions.add(self._zxid)
        return self._zxid

    def has_session(self, session_id: int) -> bool:
        return session_id in self._sessions

    def end_session(self, session_id: int) -> list[WatchEvent]:
        """Deletes what the session owned.  Call inside `begin` and `commit`."""
        self._sessions.discard(session_id)
        return self._guarded(lambda: self._delete_owned("owner = ?", (session_id,)))

    # Writing

    def begin(self) -> None:
        """Starts a unit of durability; several `apply` calls may share one."""
        self._guarded(lambda: self._db.execute("BEGIN IMMEDIATE"))

    def commit(self) -> None:
        """Makes all since `begin` durable; on StorageFault none of it took place."""
        try:
            self._guarded(self._commit)
        except StorageFault:
            self.rollback()
            raise

    def rollback(self) -> None:
        """Forgets all since `begin`.  Its zxids are not used again: sessions may be named by one."""
        with suppress(sqlite3.Error):  # SQLite may have rolled back by itself, e.g. on a full disk
            self._db.execute("ROLLBACK")

    def apply(self, session_id: int, operations: Sequence[Operation]) -> Applied:
        """Runs the operations as one write.  On StoreError none of them took place."""
        if session_id not in self._sessions:
            raise SessionExpired(operations[0].path if operations else "/")
        return self._guarded(lambda: self._apply(session_id, operations))

    def close(self) -> None:
        """Folds the log back into the file and gives up the lock."""
        self._db.close()

    # The rest runs under `_guarded`.

    def _guarded(self, call: Callable[[], _T]) -> _T:
        """Turns SQLite's errors into ours, naming the file and the way out."""
        try:
            return call()
        except (sqlite3.Error, OSError) as error:
            raise _fault(self.path, error) from error

    def _recover(self) -> None:
        """Takes up the last zxid of all earlier runs and deletes what their sessions left (Q3)."""
        row = self._db.execute("SELECT zxid FROM counter").fetchone()
        if row is None:
            raise StoreCorrupt(_corrupt_text(self.path, "its counter is missing"))
        self._zxid = self._committed_zxid = int(row[0])
        self._db.execute("BEGIN IMMEDIATE")
        self._delete_owned("owner != 0", ())
        self._commit()

    def _commit(self) -> None:
        if self._zxid == self._committed_zxid:
            self._db.execute("ROLLBACK")  # every call was refused: spare the disk a sync
            return
        self._db.execute("UPDATE counter SET zxid = ?", (self._zxid,))
        self._db.execute("COMMIT")
        self._committed_zxid = self._zxid

    def _apply(self, session_id: int, operations: Sequence[Operation]) -> Applied:
        self._zxid += 1
        applied = Applied([], [])
        single = len(operations) == 1  # one operation checks before it changes: nothing to undo
        if not single:
            self._db.execute("SAVEPOINT operations")
        try:
            for operation in operations:
                applied.results.append(self._run(session_id, operation, applied.events))
        except StoreError as error:
            if not single:
                self._db.execute("ROLLBACK TO operations")
                self._db.execute("RELEASE operations")
                error.operation = len(applied.results)
            self._zxid -= 1  # nothing bears it
            raise
        if not single:
            self._db.execute("RELEASE operations")
        return applied

    def _run(self, session_id: int, operation: Operation, events: list[WatchEvent]) -> Result:
        match operation:
            case Create():
                return self._create(session_id, operation, events)
            case SetData(path, data, version):
                stat = self._expect(path, version)
                now_ms = self._clock.now_ms()
                self._db.execute(
                    "UPDATE node SET data = ?, mzxid = ?, mtime_ms = ?, version = version + 1"
                    " WHERE parent = ? AND name = ?",
                    (data, self._zxid, now_ms, *split_path(path)),
                )
                events.append(WatchEvent(EventKind.CHANGED, path))
                return stat._replace(
                    mzxid=self._zxid, mtime_ms=now_ms, version=stat.version + 1, data_length=len(data)
                )
            case Delete(path, version):
                if self._expect(path, version).num_children:
                    raise NotEmpty(path)
                self._delete(path, events)
                return None
            case Check(path, version):
                self._expect(path, version)
                return None

    def _expect(self, path: str, version: int) -> Stat:
        row = self._db.execute(_SELECT_STAT, split_path(path)).fetchone()
        if row is None:
            raise NoNode(path)
        stat = Stat._make(row)
        if version not in (ANY_VERSION, stat.version):
            raise BadVersion(path)
        return stat

    def _create(self, session_id: int, create: Create, events: list[WatchEvent]) -> str:
        parent, name = split_path(create.path)
        if not name:
            raise NodeExists("/")
        row = self._db.execute(
            "SELECT owner, cversion FROM node WHERE parent = ? AND name = ?", split_path(parent)
        ).fetchone()
        if row is None:
            raise NoNode(parent)
        owner, cversion = row
        if owner:
            raise NoChildrenForEphemerals(parent)
        if create.sequential:
            # cversion also rises when a child goes, so a number never comes back.
            name = f"{name}{cversion:010d}"
            create = replace(create, path=join_path(parent, name))
        now_ms = self._clock.now_ms()
        zxid = self._zxid
        try:
            self._db.execute(
                "INSERT INTO node VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, 0)",
                (parent, name, create.data, zxid, zxid, zxid, now_ms, now_ms,
                 session_id if create.ephemeral else 0),
            )  # fmt: skip
        except sqlite3.IntegrityError:
            raise NodeExists(create.path) from None
        self._touch_parent(parent, 1)
        events.append(WatchEvent(EventKind.CREATED, create.path))
        events.append(WatchEvent(EventKind.CHILDREN, parent))
        return create.path

    def _delete(self, path: str, events: list[WatchEvent]) -> None:
        parent, name = split_path(path)
        if not name:
            raise NotEmpty("/")  # the root stays, as in ZooKeeper
        self._db.execute("DELETE FROM node WHERE parent = ? AND name = ?", (parent, name))
        self._touch_parent(parent, -1)
        events.append(WatchEvent(EventKind.DELETED, path))
        events.append(WatchEvent(EventKind.CHILDREN, parent))

    def _delete_owned(self, where: str, values: Iterable[int]) -> list[WatchEvent]:
        rows = self._db.execute(
            f"SELECT parent, name FROM node WHERE {where} ORDER BY parent, name", tuple(values)
        ).fetchall()
        events: list[WatchEvent] = []
        if rows:
            self._zxid += 1
            for parent, name in rows:
                self._delete(join_path(parent, name), events)
        return events

    def _touch_parent(self, parent: str, children: int) -> None:
        cursor = self._db.execute(
            "UPDATE node SET num_children = num_children + ?, cversion = cversion + 1, pzxid = ?"
            " WHERE parent = ? AND name = ?",
            (children, self._zxid, *split_path(parent)),
        )
        if cursor.rowcount != 1:
            raise InvariantBroken(f"Q4: {parent} has a child but is not there")


def _open(path: str) -> sqlite3.Connection:
    if not os.path.exists(path):
        _build(path)
    db = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        # In exclusive mode the first read takes the lock and keeps it.
        (application_id,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if application_id != APPLICATION_ID:
            raise StoreCorrupt(_corrupt_text(path, "it is not a Barnabas store"))
        if version > FORMAT_VERSION:
            raise StoreTooNew(
                f"{path} was written by a newer Barnabas (store format {version}, this one knows up to"
                f" {FORMAT_VERSION}); start that version, or use another data folder"
            )
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise StoreCorrupt(_corrupt_text(path, verdict))
    except BaseException:
        db.close()
        raise
    return db


def _build(path: str) -> None:
    """Makes an empty store under another name first, so that a crash leaves no half-made file."""
    new = f"{path}.new"
    for leftover in (new, f"{new}-journal"):
        with suppress(FileNotFoundError):
            os.unlink(leftover)
    db = sqlite3.connect(new, isolation_level=None)
    try:
        # Synced once below, as a whole; nobody sees the file before that.
        db.executescript("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; BEGIN;" + _SCHEMA)
        db.execute("INSERT INTO counter VALUES (0)")
        db.execute("INSERT INTO node VALUES (NULL, '', '', x'', 0, 0, 0, 0, 0, 0, 0, 0, 0)")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        db.execute("COMMIT")
    finally:
        db.close()
    os.chmod(new, 0o600)  # credentials of users live in the tree; SQLite gives its log the same rights
    _sync(new)
    with suppress(FileExistsError):  # another process was faster; a rename would replace its open file
        os.link(new, path)
    os.unlink(new)
    _sync(os.path.dirname(path) or ".")


def _sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _corrupt_text(path: str, cause: str) -> str:
    return (
        f"{path} is damaged: {cause}; put back a copy of it together with {os.path.basename(path)}-wal,"
        " or move both away to start with empty metadata"
    )


def _fault(path: str, error: sqlite3.Error | OSError) -> StorageFault:
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreInUse(f"{path} is in use by another process; stop that one or use another data folder")
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreCorrupt(_corrupt_text(path, str(error)))
    return StorageFault(f"{path}: {error}")
