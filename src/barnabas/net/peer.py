"""A connection to a broker, as its client: requests out, awaitable responses in.

R1  requests may be sent before earlier ones are answered; every one of them gets its answer or an error
R2  when the connection ends, whatever is unanswered fails with PeerGone, or PeerFault if the broker sent
    what no broker may; the text names the address and the cause

No retries and no reconnecting: the caller knows what is safe to repeat.  One caller at a time: the loop.
"""

import asyncio
import os
import socket
from collections import deque
from typing import Final, Self, TypeVar

from barnabas.base.errors import BarnabasError, Closed, PeerFault
from barnabas.net.errors import ConnectFailed, PeerGone, PeerTimeout, cause_of
from barnabas.net.sending import SendQueue
from barnabas.protocol.connection import BlockPool, ClientConnection, Response
from barnabas.protocol.schema import Message

__all__ = ["Peer"]

_READ_BYTES_MAX: Final = 1024 * 1024
_RESPONSE_BYTES_MAX: Final = 100 * 1024 * 1024

_M = TypeVar("_M", bound=Message)


class Peer:
    """One connection.  Made by `connect`; `close` it, or let the broker do so."""

    def __init__(self, sock: socket.socket, address: str, protocol: ClientConnection) -> None:
        self.address: Final = address
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._fd = sock.fileno()
        self._protocol = protocol
        self._sending = SendQueue()
        self._waiting: deque[asyncio.Future[Response]] = deque()
        self._is_writing = False
        self._reset_cause = ""  # taken off the socket by asking for it
        self._end: BarnabasError | None = None
        self._loop.add_reader(self._fd, self._on_readable)

    @classmethod
    async def connect(
        cls,
        host: str,
        port: int,
        *,
        client_id: str | None,
        timeout_ms: int,
        response_bytes_max: int = _RESPONSE_BYTES_MAX,
        pool: BlockPool | None = None,
    ) -> Self:
        """Connects to the first address of the host that answers.  Raises ConnectFailed."""
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                sock = await _connect(host, port)
        except TimeoutError as error:
            raise ConnectFailed(f"{address} did not take the connection within {timeout_ms} ms") from error
        except OSError as error:
            raise ConnectFailed(f"cannot connect to {address}: {cause_of(error)}") from error
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        protocol = ClientConnection(client_id=client_id, frame_bytes_max=response_bytes_max, pool=pool)
        return cls(sock, address, protocol)

    @property
    def is_closed(self) -> bool:
        return self._end is not None

    @property
    def in_flight(self) -> int:
        """How many requests wait for their answer."""
        return len(self._waiting)

    @property
    def unsent_bytes(self) -> int:
        """How much the broker has not taken yet; callers that send a lot should mind it."""
        return self._sending.unsent_bytes

    async def request(self, message: Message, version: int, response: type[_M], *, timeout_ms: int) -> _M:
        """Sends a request and returns its answer, which is of the class `response`.

        Raises PeerTimeout, PeerGone, PeerFault; Closed after `close`; ProtocolError for a message that the
        version cannot carry.  A late answer is dropped.
        """
        answer = (await self._wait(self.send(message, version), type(message).__name__, timeout_ms)).message
        assert isinstance(answer, response), f"{type(answer).__name__} answers {type(message).__name__}"
        return answer

    async def exchange_token(self, token: bytes, *, timeout_ms: int) -> bytes:
        """Sends a bare SASL token, as after SaslHandshake v0, and returns the broker's."""
        self._check_open()
        self._protocol.send_raw(token)
        response = await self._wait(self._expect(), "a SASL token", timeout_ms)
        return bytes(response.body)

    def send(self, message: Message, version: int) -> "asyncio.Future[Response]":
        """Sends a request without waiting; the future gets its response."""
        self._check_open()
        self._protocol.send(message, version)
        return self._expect()

    def send_unanswered(self, message: Message, version: int) -> None:
        """Sends a request that gets no response: Produce with acks=0."""
        self._check_open()
        self._protocol.send(message, version, answered=False)
        self._send()

    def close(self) -> None:
        """Ends the connection; what is unanswered fails with Closed."""
        self._finish(Closed(f"the connection to {self.address} was closed"))

    def _check_open(self) -> None:
        if self._end is not None:
            raise self._end

    def _expect(self) -> "asyncio.Future[Response]":
        future: asyncio.Future[Response] = self._loop.create_future()
        self._waiting.append(future)
        self._send()
        return future

    async def _wait(self, future: "asyncio.Future[Response]", what: str, timeout_ms: int) -> Response:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await future
        except TimeoutError as error:
            raise PeerTimeout(f"{self.address} did not answer {what} within {timeout_ms} ms") from error

    def _on_readable(self) -> None:
        self._read()
        # uvloop calls back only once for a connection that was reset, also when bytes from before the reset
        # are left to read: then they and the end must be read now.
        if self._waiting and (error := self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)):
            self._reset_cause = os.strerror(error)
            while self._read():
                pass
            self._finish(PeerGone(self._gone_text(self._reset_cause)))

    def _read(self) -> bool:
        """Reads once; whether there were bytes and the connection goes on."""
        space = self._protocol.get_buffer()[:_READ_BYTES_MAX]
        try:
            count = self._sock.recv_into(space)
        except BlockingIOError:
            return False
        except OSError as error:
            self._finish(PeerGone(self._gone_text(cause_of(error))))
            return False
        if count == 0:
            self._finish(PeerGone(self._gone_text(self._reset_cause or "it was closed by the other side")))
            return False
        for response in self._protocol.buffer_updated(count):
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(response)
        if self._protocol.fault is not None:
            self._finish(PeerFault(f"{self.address} sent what no broker may: {self._protocol.fault}"))
        return self._end is None

    def _send(self) -> None:
        self._sending.push(self._protocol.data_to_send())
        if not self._is_writing:
            self._flush()

    def _flush(self) -> None:
        try:
            is_empty = self._sending.flush(self._sock)
        except OSError as error:
            self._finish(PeerGone(self._gone_text(cause_of(error))))
            return
        if is_empty is self._is_writing:
            self._is_writing = not is_empty
            if is_empty:
                self._loop.remove_writer(self._fd)
            else:
                self._loop.add_writer(self._fd, self._flush)

    def _gone_text(self, cause: str) -> str:
        return (
            f"the connection to {self.address} ended with {len(self._waiting)} requests unanswered: {cause}"
        )

    def _finish(self, end: BarnabasError) -> None:
        if self._end is not None:
            return
        self._end = end
        self._loop.remove_reader(self._fd)
        if self._is_writing:
            self._loop.remove_writer(self._fd)
        self._sock.close()
        self._sending.clear()
        for future in self._waiting:
            if not future.done():
                future.set_exception(end)
        self._waiting.clear()


async def _connect(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    last: OSError = OSError(f"{host} has no address")
    for family, kind, number, _, address in found:
        sock = socket.socket(family, kind, number)
        try:
            sock.setblocking(False)
            await loop.sock_connect(sock, address)
        except OSError as error:
            last = error
            sock.close()
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise last
