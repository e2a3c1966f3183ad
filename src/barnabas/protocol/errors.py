"""The one error type of this package, in three shades of fault.

    ProtocolError
    ├── DecodeError         bytes from a peer or from disk that no correct writer makes (PeerFault)
    ├── EncodeError         a message that cannot be written in the version asked for (Misuse)
    └── UnsupportedVersion  the API or the version is not declared here

Whatever bytes come in, nothing but a ProtocolError comes out of a decoder.
"""

from barnabas.base.errors import BarnabasError, Misuse, PeerFault

__all__ = ["DecodeError", "EncodeError", "ProtocolError", "UnsupportedVersion"]


class ProtocolError(BarnabasError):
    """A message does not fit its declaration."""


class DecodeError(ProtocolError, PeerFault):
    """The bytes are not a message of the named type and version."""


class EncodeError(ProtocolError, Misuse):
    """The message holds a value that its version cannot carry."""


class UnsupportedVersion(ProtocolError):
    """The API key is unknown or the version lies outside the declared range."""
