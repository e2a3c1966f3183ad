"""Whose fault a network error is, and whether another try may help."""

from barnabas.base.errors import ConfigFault, PeerFault, StorageFault
from barnabas.net.errors import ConnectFailed, FileCut, ListenFault, PeerGone, PeerTimeout, PeerUnavailable


def test_an_unavailable_peer_is_worth_another_try() -> None:
    for kind in (ConnectFailed, PeerTimeout, PeerGone):
        assert issubclass(kind, PeerUnavailable)
        assert kind.retriable
    assert not PeerFault.retriable


def test_the_kinds_are_those_of_base() -> None:
    assert issubclass(ListenFault, ConfigFault)
    assert issubclass(FileCut, StorageFault)
