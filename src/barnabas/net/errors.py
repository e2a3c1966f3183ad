"""What can go wrong between sockets.

    BarnabasError
    ├── ConfigFault ── ListenFault     an address cannot be listened on
    ├── StorageFault ── FileCut        a file is shorter than the answer that names it
    └── PeerUnavailable                the other side cannot be reached, went away or fell silent; retriable
        ├── ConnectFailed              no connection came about
        ├── PeerTimeout                no answer in time
        └── PeerGone                   the connection ended with requests unanswered

A peer that sends nonsense raises PeerFault, which is never worth a retry on the same connection.
"""

import os

from barnabas.base.errors import BarnabasError, ConfigFault, StorageFault

__all__ = [
    "ConnectFailed",
    "FileCut",
    "ListenFault",
    "PeerGone",
    "PeerTimeout",
    "PeerUnavailable",
    "cause_of",
]


class ListenFault(ConfigFault):
    """A listener's address cannot be used; the text names it and the cause."""


class FileCut(StorageFault):
    """A file lost bytes that an answer already promised; only cutting the connection is honest."""


class PeerUnavailable(BarnabasError):
    """Nothing came back; the text names the address and the cause.  Another try may help."""

    retriable = True


class ConnectFailed(PeerUnavailable):
    """No connection came about."""


class PeerTimeout(PeerUnavailable):
    """No answer came in time; whether the request took effect is not known."""


class PeerGone(PeerUnavailable):
    """The connection ended before the answer; whether the request took effect is not known."""


def cause_of(error: OSError) -> str:
    """The system's words for an error; asyncio puts its own, with the address again, in their place."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)
