"""A broker's end of one connection, without its socket."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.base.buffers import Buffer
from barnabas.protocol.blocks import BlockPool
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.headers import RequestHeader, decode_request_header
from barnabas.protocol.inbound import Inbound

__all__ = ["RAW_KEY", "Request", "ServerConnection"]

RAW_KEY: Final = -1  # stands for the API key of a bare SASL token, which has no header

_RAW: Final[RequestHeader] = (RAW_KEY, 0, 0, None, 0)
_new = tuple.__new__  # half the cost of calling a NamedTuple, once per request


class Request(NamedTuple):
    """One request: what its header says, and its body, which is a writable view of the input.

    Keep no reference to the body, nor to what was decoded from it as a view, longer than needed:
    it keeps the memory it lies in from being reused.
    """

    ticket: int
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: memoryview


class ServerConnection:
    """Bytes in, requests out, responses back in request order.

    Read into `get_buffer`, say how much with `buffer_updated`, answer each request once with
    `finish`, and after any of these write out what `data_to_send` returns.  Malformed input sets
    `fault`: requests returned with it are good, nothing is parsed after it, and the connection
    should be closed once the answers owed are written.

    While `raw` is set, frames are bare SASL tokens (SaslHandshake v0): they come as requests with
    key RAW_KEY, and their answers are made with `encode_raw`.
    """

    __slots__ = ("_early", "_inbound", "_next", "_oldest", "_outgoing", "fault", "raw")

    def __init__(self, *, frame_bytes_max: int, pool: BlockPool | None = None) -> None:
        self.fault: str | None = None
        self.raw = False
        self._inbound = Inbound(frame_bytes_max=frame_bytes_max, pool=pool)
        self._next = 0  # ticket of the next request
        self._oldest = 0  # first ticket whose answer has not left; all below it have
        self._early: dict[int, Iterable[Buffer]] = {}  # answers that wait for an older one
        self._outgoing: list[Buffer] = []

    @property
    def frame_bytes_max(self) -> int:
        """The largest request taken; may be changed at any time, as after a login."""
        return self._inbound.frame_bytes_max

    @frame_bytes_max.setter
    def frame_bytes_max(self, limit: int) -> None:
        self._inbound.frame_bytes_max = limit

    @property
    def unfinished_bytes(self) -> int:
        """Bytes received of a request that is not whole yet."""
        return self._inbound.unfinished_bytes

    @property
    def unanswered(self) -> int:
        """How many requests wait for `finish`, or behind one that does."""
        return self._next - self._oldest

    @property
    def has_early_answers(self) -> bool:
        """Whether an answer is there that may not leave before an older one."""
        return bool(self._early)

    def get_buffer(self) -> memoryview:
        """Writable room for the next read, never empty; void after `buffer_updated`."""
        return self._inbound.space()

    def buffer_updated(self, count: int) -> list[Request]:
        """The requests that the `count` bytes read into the buffer complete."""
        return self._requests(self._inbound.advance(count))

    def receive(self, data: bytes | bytearray | memoryview) -> list[Request]:
        """The requests that `data` completes; for callers that have the bytes already."""
        return self._requests(self._inbound.receive(data))

    def finish(self, ticket: int, response: list[Buffer] | None) -> None:
        """Answers a request with a whole frame, or ends it without an answer (acks=0)."""
        oldest, early = self._oldest, self._early
        assert oldest <= ticket < self._next, f"request {ticket} is not open"
        assert ticket not in early, f"request {ticket} is answered already"
        if ticket != oldest:
            early[ticket] = () if response is None else response
            return
        if response is not None:
            self._outgoing += response
        oldest += 1
        while early and oldest in early:
            self._outgoing += early.pop(oldest)
            oldest += 1
        self._oldest = oldest

    def data_to_send(self) -> list[Buffer]:
        """What to write out now, each buffer once."""
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def _requests(self, frames: list[memoryview]) -> list[Request]:
        if self.fault is not None:
            return []
        requests = []
        for frame in frames:
            try:
                header = _RAW if self.raw else decode_request_header(frame)
            except ProtocolError as error:
                self.fault = str(error)
                break
            key, version, correlation_id, client_id, position = header
            body = frame[position:]
            requests.append(_new(Request, (self._next, key, version, correlation_id, client_id, body)))
            self._next += 1
        if self.fault is None:
            self.fault = self._inbound.fault
        return requests
