"""How many bytes of requests are held over all connections, and who waits for room.

H1  used = what every connection received and has not been answered for, complete or not
H2  while used is at the limit, at most one connection reads on: the passer, the one whose turn is
    next, and only if no complete request is left whose answer would make room.  So memory ends at the
    limit plus one request.  The passer is half-received, so that its bytes are among those that keep the
    others out; the server cuts it off if it stalls, so nobody is locked out for good
"""

from typing import Protocol

__all__ = ["Budget", "Reader"]


class Reader(Protocol):
    """A connection that stopped reading for want of room."""

    @property
    def is_half_received(self) -> bool:
        """Whether it holds a part of a request."""

    def resume(self) -> None:
        """There is room, or it is this connection's turn."""


class Budget:
    """Shared by the connections of a server.  One caller at a time."""

    __slots__ = ("_limit", "_low", "_open", "_passer", "_waiting", "used")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._low = limit - limit // 4
        self.used = 0
        self._open = 0  # complete requests in progress
        self._waiting: dict[Reader, None] = {}  # oldest first
        self._passer: Reader | None = None

    @property
    def passer(self) -> Reader | None:
        """Who reads on although there is no room."""
        return self._passer

    @property
    def is_full(self) -> bool:
        return self.used >= self._limit

    def may_read(self, reader: Reader) -> bool:
        """Whether there is room, or it is this reader's turn to pass the limit."""
        return self.used < self._limit or reader is self._passer

    def hold(self, count: int, requests: int) -> None:
        """Counts bytes that arrived, and the requests they completed."""
        self.used += count
        self._open += requests

    def free(self, count: int, requests: int) -> None:
        """Counts out what was answered or given up, and wakes who waits for room."""
        self.used -= count
        self._open -= requests
        assert self.used >= 0, "H1: more was freed than held"
        assert self._open >= 0, "H1: more requests were freed than held"
        if self._waiting:
            self._wake()

    def wait(self, reader: Reader) -> None:
        """Puts a reader that stopped into the queue."""
        self._waiting[reader] = None
        self._wake()

    def pass_on(self, reader: Reader) -> None:
        """The reader's request is complete, or it does not read any more: the turn is another's."""
        if self._waiting:
            self._waiting.pop(reader, None)
        if reader is self._passer:
            self._passer = None
            self._wake()

    def _wake(self) -> None:
        if self.used <= self._low:
            waiting, self._waiting = self._waiting, {}
            for reader in waiting:
                reader.resume()
        elif self._open == 0 and self._passer is None:
            self._passer = next((reader for reader in self._waiting if reader.is_half_received), None)
            if self._passer is not None:
                del self._waiting[self._passer]
                self._passer.resume()
