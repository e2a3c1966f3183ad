"""A client for tests that says exactly what it is told: any message, any version, any bytes.

It keeps no state but the socket: no metadata, no retries, no batching.  Every wait has a deadline.
"""

import itertools
import socket
import struct
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from barnabas.base.buffers import FileSlice
from barnabas.protocol.api import API
from barnabas.protocol.framing import encode_request
from barnabas.protocol.headers import response_body_position
from barnabas.protocol.schema import Message

M = TypeVar("M", bound=Message)
Result = TypeVar("Result")

DEADLINE_S = 20.0


class ConnectionEnded(Exception):
    """The broker closed the connection."""


class WireClient:
    """One connection to a broker.  `call` asks and waits; `send` and `receive` do so apart, to pipeline."""

    def __init__(self, bootstrap_servers: str, *, client_id: str | None = "wire-test") -> None:
        host, _, port = bootstrap_servers.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=DEADLINE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._correlation_ids = itertools.count(7)
        self._sent: list[tuple[int, int, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def call(self, request: Message, version: int, response: type[M]) -> M:
        """The broker's answer to the request."""
        self.send(request, version)
        return self.receive(response)

    def send(self, request: Message, version: int, *, answered: bool = True) -> None:
        """Sends a request; with `answered` the next `receive` but the outstanding ones is its answer."""
        self.send_bytes(self.frame(request, version, answered=answered))

    def frame(self, request: Message, version: int, *, answered: bool = True) -> bytes:
        """The bytes of a request, for tests that send several in one go."""
        key = request.API_KEY
        assert key is not None, request
        correlation_id = next(self._correlation_ids)
        if answered:
            self._sent.append((key, version, correlation_id))
        parts = encode_request(key, version, correlation_id, self._client_id, request)
        return b"".join(part for part in parts if not isinstance(part, FileSlice))

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send_frame(self, payload: bytes) -> None:
        """Sends bytes behind their size, whatever they are."""
        self.send_bytes(struct.pack(">i", len(payload)) + payload)

    def receive(self, response: type[M]) -> M:
        """The answer to the oldest request that is unanswered."""
        key, version, correlation_id = self._sent.pop(0)
        assert API[key].response is response, f"{API[key].response.__name__} is due"
        frame = memoryview(self.receive_frame())
        assert struct.unpack_from(">i", frame) == (correlation_id,), "answers come in the order of requests"
        return response.decode(version, frame[response_body_position(frame, key, version) :])

    def receive_frame(self) -> bytes:
        """The next frame without its size."""
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise ConnectionEnded(f"after {len(data)} of {size} bytes")
            data += piece
        return bytes(data)

    def is_closed_by_broker(self) -> bool:
        """Waits for the next thing to come: True for the end, False for an answer, now a byte short."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def has_answer(self, within_s: float = 0.0) -> bool:
        """Whether something has come that was not received yet."""
        self._socket.settimeout(within_s or 0.001)
        try:
            return self._socket.recv(1, socket.MSG_PEEK) != b""
        except TimeoutError:
            return False
        finally:
            self._socket.settimeout(DEADLINE_S)


def until(condition: Callable[[], Result], *, deadline_s: float = DEADLINE_S) -> Result:
    """Asks until the answer is true; fails at the deadline."""
    end = time.monotonic() + deadline_s
    while not (result := condition()):
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.002)
    return result
