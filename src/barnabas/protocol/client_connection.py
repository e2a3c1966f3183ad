"""A client's end of one connection, without its socket."""

from collections import deque
from struct import Struct as Layout
from typing import Final, NamedTuple

from barnabas.base.buffers import Buffer
from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.blocks import BlockPool
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.errors import DecodeError, ProtocolError
from barnabas.protocol.framing import encode_raw, encode_request
from barnabas.protocol.headers import response_body_position
from barnabas.protocol.inbound import Inbound
from barnabas.protocol.schema import Message

__all__ = ["ClientConnection", "Response"]

_CORRELATION: Final = Layout(">i")
_CORRELATION_MAX: Final = 2**31 - 1
_UNSUPPORTED: Final = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")


class Response(NamedTuple):
    """An answer and the request it belongs to; `message` is None for a bare SASL token.

    Bulk fields of the message are views of the input, and so is `body`.
    """

    correlation_id: int
    api_key: int
    api_version: int
    message: Message | None
    body: memoryview


class _Asked(NamedTuple):
    correlation_id: int
    api_key: int
    api_version: int


class ClientConnection:
    """Requests out, responses in, matched in the order a broker must keep.

    `send` encodes a request and gives its correlation id; write out what `data_to_send` returns.
    Read into `get_buffer`, say how much with `buffer_updated`.  A response that does not belong to
    the oldest request, or cannot be decoded, sets `fault`; nothing is parsed after it.
    """

    __slots__ = ("_asked", "_inbound", "_next_id", "_outgoing", "client_id", "fault")

    def __init__(
        self,
        *,
        client_id: str | None,
        frame_bytes_max: int,
        pool: BlockPool | None = None,
        first_correlation_id: int = 0,
    ) -> None:
        self.client_id = client_id
        self.fault: str | None = None
        self._inbound = Inbound(frame_bytes_max=frame_bytes_max, pool=pool)
        self._next_id = first_correlation_id
        self._asked: deque[_Asked] = deque()
        self._outgoing: list[Buffer] = []

    @property
    def in_flight(self) -> int:
        """How many requests wait for their response."""
        return len(self._asked)

    def send(self, message: Message, version: int, *, answered: bool = True) -> int:
        """Queues a request; the result is its correlation id.  Raises ProtocolError.

        `answered` is false for the one request that gets no response: Produce with acks=0.
        """
        key = message.API_KEY
        assert key is not None, f"{type(message).__name__} is not a request"
        correlation_id = self._next_id
        self._outgoing += encode_request(key, version, correlation_id, self.client_id, message)
        self._next_id = 0 if correlation_id == _CORRELATION_MAX else correlation_id + 1
        if answered:
            self._asked.append(_Asked(correlation_id, key, version))
        return correlation_id

    def send_raw(self, token: bytes) -> None:
        """Queues a bare SASL token, as it follows SaslHandshake v0; the answer is one too."""
        self._outgoing += encode_raw(token)
        self._asked.append(_Asked(-1, -1, 0))

    def data_to_send(self) -> list[Buffer]:
        """What to write out now, each buffer once."""
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    @property
    def unfinished_bytes(self) -> int:
        """How many received bytes belong to a frame that is not complete."""
        return self._inbound.unfinished_bytes

    def get_buffer(self) -> memoryview:
        """Writable room for the next read, never empty; void after `buffer_updated`."""
        return self._inbound.space()

    def buffer_updated(self, count: int) -> list[Response]:
        """The responses that the `count` bytes read into the buffer complete."""
        return self._responses(self._inbound.advance(count))

    def receive(self, data: bytes | bytearray | memoryview) -> list[Response]:
        """The responses that `data` completes; for callers that have the bytes already."""
        return self._responses(self._inbound.receive(data))

    def _responses(self, frames: list[memoryview]) -> list[Response]:
        if self.fault is not None:
            return []
        responses = []
        for frame in frames:
            try:
                responses.append(self._response(frame))
            except ProtocolError as error:
                self.fault = str(error)
                break
        if self.fault is None:
            self.fault = self._inbound.fault
        return responses

    def _response(self, frame: memoryview) -> Response:
        if not self._asked:
            raise DecodeError(f"a response of {len(frame)} bytes to no request")
        correlation_id, key, version = self._asked.popleft()
        if key < 0:
            return Response(correlation_id, key, version, None, frame)
        if len(frame) < _CORRELATION.size:
            raise DecodeError(f"a response of {len(frame)} bytes has no header")
        (found,) = _CORRELATION.unpack_from(frame)
        if found != correlation_id:
            raise DecodeError(f"response {found} came where {correlation_id} was due")
        body = frame[response_body_position(frame, key, version) :]
        if key == ApiKey.API_VERSIONS and body[:2] == _UNSUPPORTED:
            version = 0  # a broker that does not know our version answers in the oldest
        return Response(correlation_id, key, version, API[key].response.decode(version, body), body)
