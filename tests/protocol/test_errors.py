"""One error type, and whose fault it is."""

from barnabas.base.errors import BarnabasError, Misuse, PeerFault
from barnabas.protocol.errors import DecodeError, EncodeError, ProtocolError, UnsupportedVersion


def test_every_error_of_the_package_is_a_protocol_error() -> None:
    assert all(issubclass(kind, ProtocolError) for kind in (DecodeError, EncodeError, UnsupportedVersion))
    assert issubclass(ProtocolError, BarnabasError)


def test_bad_bytes_are_the_peers_fault_and_bad_values_the_callers() -> None:
    assert issubclass(DecodeError, PeerFault)
    assert issubclass(EncodeError, Misuse)
