"""What the tree's errors say."""

from barnabas.base.errors import Misuse, StorageFault
from barnabas.store.errors import (
    BadPath,
    BadVersion,
    ConnectionLost,
    DocumentFault,
    NodeTooLarge,
    NoNode,
    StoreCorrupt,
    StoreError,
    StoreInUse,
    StoreTooNew,
)


def test_a_refusal_names_the_node_and_its_place_in_the_transaction() -> None:
    assert str(NoNode("/a")) == "/a: no such node"
    assert str(BadVersion("/a", 2)) == "/a: the node has another version (operation 2 of the transaction)"


def test_only_a_lost_connection_is_worth_a_retry() -> None:
    assert [kind for kind in StoreError.__subclasses__() if kind.retriable] == [ConnectionLost]


def test_whose_fault_it_is_shows_in_the_class() -> None:
    assert issubclass(BadPath, Misuse)
    assert issubclass(NodeTooLarge, Misuse)
    for kind in (StoreCorrupt, StoreTooNew, StoreInUse, DocumentFault):
        assert issubclass(kind, StorageFault)
