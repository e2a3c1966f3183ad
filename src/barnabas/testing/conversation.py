"""Which bytes of a connection answer which request; for a proxy that loses chosen answers.

A frame is its length (4 bytes) and so many more: in a request the API key, its version and the correlation
id come first, in an answer the correlation id.  Nothing else is looked at, and bytes that are no frames of
Kafka's do no harm.
"""

import struct
from collections.abc import Iterator
from typing import Final

__all__ = ["Conversation", "FrameHeads"]

_REQUEST: Final = struct.Struct(">ihhi")
_ANSWER: Final = struct.Struct(">ii")
_LENGTH_BYTES: Final = 4


class FrameHeads:
    """Finds the first bytes of every frame in a stream that comes in pieces."""

    def __init__(self, form: struct.Struct) -> None:
        self._form = form
        self._head = bytearray()
        self._left = 0  # of the frame whose head was found last

    def feed(self, piece: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The heads that end in this piece, each with the place where its frame begins: 0 if before it."""
        at = 0
        while at < len(piece):
            if self._left:
                step = min(self._left, len(piece) - at)
                self._left -= step
                at += step
                continue
            step = min(self._form.size - len(self._head), len(piece) - at)
            self._head += piece[at : at + step]
            at += step
            if len(self._head) == self._form.size:
                fields = self._form.unpack(self._head)
                self._head.clear()
                self._left = max(_LENGTH_BYTES + fields[0] - self._form.size, 0)
                yield max(at - self._form.size, 0), fields


class Conversation:
    """The requests of one connection, and the answers as they come."""

    def __init__(self) -> None:
        self._requests = FrameHeads(_REQUEST)
        self._answers = FrameHeads(_ANSWER)
        self._asked: dict[int, int] = {}

    def asked(self, piece: bytes) -> None:
        """Takes what the client sends."""
        for _, (_, api_key, _, correlation_id) in self._requests.feed(piece):
            self._asked[correlation_id] = api_key

    def answers(self, piece: bytes) -> Iterator[tuple[int, int]]:
        """Where in what the broker sends an answer begins, and the API key of its request."""
        for place, (_, correlation_id) in self._answers.feed(piece):
            api_key = self._asked.pop(correlation_id, None)
            if api_key is not None:
                yield place, api_key
