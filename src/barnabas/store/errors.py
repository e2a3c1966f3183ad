"""What the coordination tree may refuse, one class per reason.

    StoreError                       a correct call met a tree in another state; carries path, operation
    ├── NoNode                       the node, or the parent of a node to create, is not there
    ├── NodeExists                   create met a node of that name
    ├── BadVersion                   a conditional set, delete or check lost the race
    ├── NotEmpty                     delete met children
    ├── NoChildrenForEphemerals      create below an ephemeral node
    ├── SessionExpired               the session's ephemerals are gone; only `renew` helps
    └── ConnectionLost               unknown whether the call took effect; retriable
    BadPath, NodeTooLarge (Misuse)   refused before the tree is looked at
    StoreCorrupt, StoreTooNew, StoreInUse, DocumentFault (StorageFault)   what is on disk, or who holds it

Use after close raises `base.errors.Closed`; a failing disk raises `base.errors.StorageFault`.
"""

from barnabas.base.errors import BarnabasError, Misuse, StorageFault

__all__ = [
    "BadPath",
    "BadVersion",
    "ConnectionLost",
    "DocumentFault",
    "NoChildrenForEphemerals",
    "NoNode",
    "NodeExists",
    "NodeTooLarge",
    "NotEmpty",
    "SessionExpired",
    "StoreCorrupt",
    "StoreError",
    "StoreInUse",
    "StoreTooNew",
]


class StoreError(BarnabasError):
    """The tree refused a call; `path` names the node, `operation` its place in a transaction, if any."""

    reason = "refused"

    def __init__(self, path: str, operation: int | None = None) -> None:
        super().__init__(path, operation)
        self.path = path
        self.operation = operation

    def __str__(self) -> str:
        place = "" if self.operation is None else f" (operation {self.operation} of the transaction)"
        return f"{self.path}: {self.reason}{place}"


class NoNode(StoreError):
    """The node is not there, or for create its parent is not."""

    reason = "no such node"


class NodeExists(StoreError):
    """Create met a node that is there already."""

    reason = "the node exists"


class BadVersion(StoreError):
    """The node's version is not the expected one: somebody wrote in between."""

    reason = "the node has another version"


class NotEmpty(StoreError):
    """Delete met a node with children."""

    reason = "the node has children"


class NoChildrenForEphemerals(StoreError):
    """Create below an ephemeral node."""

    reason = "an ephemeral node has no children"


class SessionExpired(StoreError):
    """The session is over and its ephemeral nodes are gone."""

    reason = "the session has expired"


class ConnectionLost(StoreError):
    """The connection broke under the call; whether it took effect is not known."""

    reason = "the connection was lost"
    retriable = True


class BadPath(Misuse):
    """The path is not absolute, or has an empty, dotted or unprintable part."""


class NodeTooLarge(Misuse):
    """The data passes the limit that ZooKeeper sets for a node."""


class StoreCorrupt(StorageFault):
    """The store's file is damaged or is not a store."""


class StoreTooNew(StorageFault):
    """The store's file was written by a newer version."""


class StoreInUse(StorageFault):
    """Another process has the store open."""


class DocumentFault(StorageFault):
    """A node holds bytes that are not the document that belongs there."""
