"""The coordination tree: what a backend offers, in ZooKeeper's terms.

T1  a write is durable before its call returns; writes take effect in the order they were called
T2  every write has a zxid that is larger than all before it, also across restarts
T3  version starts at 0 and rises by one with each set; a conditional call names the one it read
T4  a watch is one-shot and told of the first change after the read that left it;
    it hears of a change before any later read of that session can show it
T5  ephemeral nodes live as long as the session that made them, and have no children

Knows paths and bytes; what the nodes mean is `paths` and `documents`.  All calls are made on the
event loop, callbacks run on it; a call that is cancelled may still take effect.
"""

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from barnabas.store.errors import BadPath, NodeTooLarge

__all__ = [
    "ANY_VERSION",
    "DATA_BYTES_MAX",
    "Check",
    "Create",
    "Created",
    "Delete",
    "EventKind",
    "Operation",
    "Result",
    "SessionListener",
    "SessionState",
    "SetData",
    "Stat",
    "Store",
    "WatchCallback",
    "WatchEvent",
    "check_data",
    "check_path",
    "join_path",
    "split_path",
]

ANY_VERSION = -1
# ZooKeeper's jute.maxbuffer bounds the whole packet; what passes here must pass there too.
DATA_BYTES_MAX = 1_000_000


class Stat(NamedTuple):
    """A node's bookkeeping; the names are ZooKeeper's, times are wall-clock milliseconds."""

    czxid: int  # the write that created the node
    mzxid: int  # the last write to its data
    pzxid: int  # the last write to its list of children
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int  # changes to the list of children
    ephemeral_owner: int  # session id, 0 for a persistent node
    data_length: int
    num_children: int


class Created(NamedTuple):
    """A new node: its path (with the number of a sequential one) and bookkeeping."""

    path: str
    stat: Stat


class EventKind(enum.Enum):
    """What a watch was told."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    CHILDREN = "children"


class WatchEvent(NamedTuple):
    """One change, at the watched path."""

    kind: EventKind
    path: str


class SessionState(enum.Enum):
    """How the session stands; EXPIRED and CLOSED are final, EXPIRED is left by `renew`."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"  # no connection; the session may still be alive
    EXPIRED = "expired"
    CLOSED = "closed"


WatchCallback = Callable[[WatchEvent], None]
SessionListener = Callable[[SessionState], None]


@dataclass(frozen=True, slots=True)
class Create:
    """Adds a node; a sequential one gets ten digits after its name, rising within its parent."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    """Replaces a node's data if it has the expected version."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes a childless node if it has the expected version."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Changes nothing; fails its transaction if the node has another version."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check
# Create gives the path, SetData the new Stat, Delete and Check nothing.
Result = str | Stat | None


class Store(Protocol):
    """One session on a tree.  Raises the errors of `store.errors`; `Closed` after `close`."""

    @property
    def session_id(self) -> int:
        """Owner id of this session's ephemeral nodes; another one after `renew`."""

    @property
    def state(self) -> SessionState: ...

    async def get(self, path: str, *, watch: WatchCallback | None = None) -> tuple[bytes, Stat]:
        """Data and Stat.  The watch hears CHANGED or DELETED; it is not left if NoNode is raised."""

    async def exists(self, path: str, *, watch: WatchCallback | None = None) -> Stat | None:
        """The Stat, or None.  The watch is left either way and hears CREATED, CHANGED or DELETED."""

    async def children(self, path: str, *, watch: WatchCallback | None = None) -> list[str]:
        """Names of the children, sorted.  The watch hears CHILDREN, or DELETED of the node itself."""

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> Created: ...

    async def set(self, path: str, data: bytes, *, version: int = ANY_VERSION) -> Stat: ...

    async def delete(self, path: str, *, version: int = ANY_VERSION) -> None: ...

    async def transact(self, operations: Sequence[Operation]) -> list[Result]:
        """All of the operations or none; the error raised names the first that was refused."""

    async def ensure(self, path: str) -> None:
        """Makes the persistent node and the parents it lacks; nothing if it is there."""

    def listen(self, listener: SessionListener) -> None:
        """Calls `listener` at every change of the session's state, on the loop."""

    async def renew(self) -> int:
        """Starts a new session after EXPIRED and returns its id; watches and ephemerals are gone."""

    async def close(self) -> None:
        """Ends the session, which deletes its ephemerals.  A second call does nothing."""


def check_path(path: str) -> None:
    """Raises BadPath unless `path` names a node as ZooKeeper would take it."""
    if path == "/":
        return
    if not path.startswith("/"):
        raise BadPath(f"{path!r} is not a path: it does not start with '/'")
    for part in path[1:].split("/"):
        if part in ("", ".", ".."):
            raise BadPath(f"{path!r} is not a path: a part of it is {part!r}")
    if not path.isprintable():
        raise BadPath(f"{path!r} is not a path: it holds unprintable characters")


def check_data(path: str, data: bytes) -> None:
    """Raises NodeTooLarge when `data` would not fit into a ZooKeeper node."""
    if len(data) > DATA_BYTES_MAX:
        raise NodeTooLarge(f"{path}: {len(data)} bytes, more than the {DATA_BYTES_MAX} a node may hold")


def split_path(path: str) -> tuple[str, str]:
    """Parent and name; the root, which has neither, gives two empty strings."""
    if path == "/":
        return "", ""
    parent, _, name = path.rpartition("/")
    return parent or "/", name


def join_path(parent: str, name: str) -> str:
    """The inverse of `split_path`."""
    if not name:
        return "/"
    return f"/{name}" if parent == "/" else f"{parent}/{name}"
