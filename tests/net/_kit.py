"""What the network tests share: both event loops, raw clients, a handler that keeps requests."""

import asyncio
import socket
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop

from barnabas.base.buffers import Buffer
from barnabas.base.clock import Clock
from barnabas.net.connection import Connection
from barnabas.net.limits import ConnectionLimits, ServerLimits
from barnabas.net.listener import Listener
from barnabas.net.server import Server
from barnabas.protocol.connection import Request

HEARTBEAT = 12
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


def run(main: Coroutine[Any, Any, None], loop: str = "uvloop") -> None:
    """Runs a test on a loop of that kind; an error in a callback fails the test."""
    faults: list[dict[str, Any]] = []
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.get_loop().set_exception_handler(lambda _, context: faults.append(context))
        runner.run(main)
    assert faults == []


async def turns(count: int = 30) -> None:
    """Lets the loop go round: over loopback whatever can happen without us has happened then."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    """Waits for something that other events of the loop bring about."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 -- there is no event to wait for, and no time to sleep
            await asyncio.sleep(0)


def frame(body: bytes, correlation_id: int = 0, *, key: int = HEARTBEAT, version: int = 0) -> bytes:
    """A request with that body; the server does not look into it."""
    payload = struct.pack(">hhih", key, version, correlation_id, 1) + b"c" + body
    return struct.pack(">i", len(payload)) + payload


def answer(data: bytes) -> bytes:
    """A frame to send back; only clients look into it."""
    return struct.pack(">i", len(data)) + data


class Kept:
    """A handler that keeps each request until told to answer it."""

    def __init__(self) -> None:
        self.requests: list[tuple[Connection, Request]] = []
        self.bodies: list[bytes] = []
        self.closed: list[Connection] = []

    def on_request(self, connection: Connection, request: Request) -> None:
        self.requests.append((connection, request))
        self.bodies.append(bytes(request.body))

    def on_closed(self, connection: Connection) -> None:
        self.closed.append(connection)

    def finish(self, index: int, buffers: list[Buffer] | None) -> None:
        connection, request = self.requests[index]
        connection.finish(request.ticket, buffers)

    async def wait_for(self, count: int) -> None:
        await until(lambda: len(self.requests) >= count)


def echo(connection: Connection, request: Request) -> None:
    """Answers with the body, at once."""
    connection.finish(request.ticket, [answer(bytes(request.body))])


class Client:
    """A raw client socket on the loop."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def connect(
        cls, port: int, *, host: str = "127.0.0.1", receive_buffer: int | None = None
    ) -> "Client":
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(sock, (host, port))
        except OSError:
            sock.close()
            raise
        return cls(sock)

    async def send(self, data: bytes) -> None:
        async with asyncio.timeout(30):
            await self._loop.sock_sendall(self.sock, data)

    async def read(self, count: int) -> bytes:
        """Exactly `count` bytes, or fewer when the connection ends before."""
        data = bytearray()
        async with asyncio.timeout(30):
            while len(data) < count:
                try:
                    piece = await self._loop.sock_recv(self.sock, min(count - len(data), 1 << 20))
                except ConnectionResetError:
                    break
                if not piece:
                    break
                data += piece
        return bytes(data)

    async def read_answer(self) -> bytes:
        (size,) = struct.unpack(">i", await self.read(4))
        return await self.read(size)

    async def is_cut(self) -> bool:
        """Waits for the end of the connection; nothing may come before it."""
        return await self.read(1) == b""

    def close(self) -> None:
        self.sock.close()


class Site:
    """A server with one listener, closed at the end of the block together with its clients."""

    def __init__(
        self,
        on_request: Callable[[Connection, Request], None],
        *,
        on_closed: Callable[[Connection], None] | None = None,
        limits: ConnectionLimits | None = None,
        server_limits: ServerLimits | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.server = Server(on_request, on_closed=on_closed, limits=server_limits, clock=clock)
        self.port = self.server.bind(Listener("TEST", "127.0.0.1", 0, limits or ConnectionLimits()))
        self.server.start()
        self._clients: list[Client] = []

    async def __aenter__(self) -> "Site":
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        for connection in list(self.server.connections):
            connection.abort()
        await self.server.stop(0)
        assert self.server.budget.used == 0, "H1: bytes were left behind"
        assert self.server.admission.total == 0, "A1: a connection was left behind"

    async def client(self, *, receive_buffer: int | None = None) -> Client:
        client = await Client.connect(self.port, receive_buffer=receive_buffer)
        self._clients.append(client)
        return client

    async def connected(self) -> tuple[Client, Connection]:
        """A client and the server's end of it."""
        known = set(self.server.connections)
        client = await self.client()
        await until(lambda: len(self.server.connections) > len(known))
        (connection,) = set(self.server.connections) - known
        return client, connection
