"""The root error and the kinds of fault: whose fault it is decides who can mend it.

    BarnabasError
    ├── Misuse           the caller broke a rule of the API; a change of the calling code mends it
    │   └── Closed       the object was used after it was closed
    ├── ConfigFault      a setting is unknown or has a bad value; the user mends it
    ├── PeerFault        bytes or behaviour of a remote side that no correct peer shows
    ├── StorageFault     the disk, or what is on it, failed us
    └── InvariantBroken  our own bug; nothing but a fix mends it

Wire error codes live in `protocol.codes`; the broker maps classes to codes at its edge.
"""

__all__ = [
    "BarnabasError",
    "Closed",
    "ConfigFault",
    "InvariantBroken",
    "Misuse",
    "PeerFault",
    "StorageFault",
]


class BarnabasError(Exception):
    """Root of every error that Barnabas raises on purpose; `retriable` says if waiting may help."""

    retriable: bool = False


class Misuse(BarnabasError):
    """The caller used an object in a way its docstring forbids."""


class Closed(Misuse):
    """The object was closed before this call."""


class ConfigFault(BarnabasError):
    """A setting is unknown or its value is not allowed; the text names the setting and the way out."""


class PeerFault(BarnabasError):
    """The remote side sent what a correct peer never sends."""


class StorageFault(BarnabasError):
    """Reading or writing files failed, or a file does not hold what it must."""


class InvariantBroken(BarnabasError):
    """Our own state contradicts itself."""
