"""Listeners and the connections they take: who gets in, who is swept out, how it all ends.

`bind` reserves addresses, `start` begins to accept, `stop` ends everything in order.  Requests go to
`on_request(connection, request)` on the event loop; it must not block, and calls `connection.finish`
then or later.  `on_closed(connection)` follows for every connection.

L1  a connection is in `connections` from its admission to its end, and is counted by `admission` as long
L2  what a client does costs other clients no more than its share of the limits
"""

import asyncio
import errno
import logging
import socket
from typing import Final

from barnabas.base.clock import Clock, SystemClock
from barnabas.net.admission import Admission
from barnabas.net.budget import Budget
from barnabas.net.connection import Connection, OnClosed, OnRequest
from barnabas.net.errors import cause_of
from barnabas.net.limits import ServerLimits
from barnabas.net.listener import Listener, open_listener
from barnabas.net.log_gate import LogGate
from barnabas.protocol.connection import BlockPool

__all__ = ["Server"]

_ACCEPTS_PER_TURN: Final = 32
_SWEEP_MS_MAX: Final = 5_000
_PAUSE_MS: Final = 500  # before accepting again when descriptors ran out
_OUT_OF_RESOURCES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Server:
    """All listeners of one broker.  Made and used on one event loop."""

    def __init__(
        self,
        on_request: OnRequest,
        *,
        on_closed: OnClosed | None = None,
        limits: ServerLimits | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.on_request: Final = on_request
        self.limits: Final = limits or ServerLimits()
        self.admission: Final = Admission(self.limits)
        self.budget: Final = Budget(self.limits.held_bytes_max)
        self.connections: Final[dict[Connection, None]] = {}  # oldest first
        self.log: Final = logging.getLogger("barnabas.net")
        self.bytes_received = 0
        self.bytes_sent = 0
        self.accepted_total = 0
        self.refused_total = 0
        self._clock = clock or SystemClock()
        self.log_gate: Final = LogGate(self.log, self._clock)
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._pool = BlockPool()
        self._sockets: dict[socket.socket, Listener] = {}
        self._is_accepting = False
        self._sweeper: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Event = asyncio.Event()

    def bind(self, listener: Listener) -> int:
        """Reserves the listener's address and returns its port.  Raises ListenFault."""
        sockets, port = open_listener(listener)
        for sock in sockets:
            self._sockets[sock] = listener
            if self._is_accepting:
                self._accept_on(sock)
        return port

    def start(self) -> None:
        """Begins to accept on everything that is bound."""
        self._is_accepting = True
        for sock in self._sockets:
            self._accept_on(sock)
        self._schedule_sweep()

    async def stop(self, timeout_ms: int) -> None:
        """Accepts no more, lets connections send what they owe and closes them; cuts the rest in the end."""
        self._stop_accepting()
        for connection in list(self.connections):
            connection.close_after_flush()
        if self.connections:
            self._emptied.clear()
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    await self._emptied.wait()
            except TimeoutError:
                self.log.warning("%d connections were cut off at the end", len(self.connections))
        for connection in list(self.connections):
            connection.abort()

    def sweep(self) -> None:
        """Closes connections that stood still for too long; runs by itself every few seconds."""
        now_ms = self._clock.monotonic_ms()
        is_short = self.budget.is_full
        for connection in list(self.connections):
            if connection.is_fresh:
                connection.is_fresh = False
                connection.active_ms = now_ms
                continue
            still_ms = now_ms - connection.active_ms
            if still_ms >= connection.limits.idle_ms_max:
                # A request in progress is not idleness, unless its client does not take answers.
                if connection.unsent_bytes:
                    connection.close(f"took nothing of {connection.unsent_bytes} bytes for {still_ms} ms")
                elif not connection.requests_open:
                    self.log.debug("%s: %s closed: idle", connection.listener, connection.peer)
                    connection.abort()
            elif is_short and connection.is_half_received and still_ms >= self.limits.stalled_ms_max:
                connection.close(f"sent nothing of a half request for {still_ms} ms while memory is short")

    def forget(self, connection: Connection) -> None:
        """Called by a connection at its end."""
        del self.connections[connection]
        self.admission.release(connection.peer_host, connection.listener)
        if self._on_closed is not None:
            self._on_closed(connection)
        if not self.connections:
            self._emptied.set()

    def _schedule_sweep(self) -> None:
        shortest = min(
            (listener.limits.idle_ms_max for listener in self._sockets.values()), default=_SWEEP_MS_MAX
        )
        delay_ms = max(1, min(shortest // 4, self.limits.stalled_ms_max // 4, _SWEEP_MS_MAX))
        self._sweeper = self._loop.call_later(delay_ms / 1000, self._sweep_and_go_on)

    def _sweep_and_go_on(self) -> None:
        self.sweep()
        self._schedule_sweep()

    def _accept_on(self, sock: socket.socket) -> None:
        self._loop.add_reader(sock.fileno(), self._on_acceptable, sock)

    def _stop_accepting(self) -> None:
        self._is_accepting = False
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for sock in self._sockets:
            self._loop.remove_reader(sock.fileno())
            sock.close()
        self._sockets.clear()

    def _on_acceptable(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            wait_ms = self.admission.wait_ms(self._clock.monotonic_ms())
            if wait_ms:
                self._pause(listening, wait_ms)
                return
            try:
                sock, address = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                self.log_gate.warning("cannot accept connections: %s", cause_of(error))
                if error.errno in _OUT_OF_RESOURCES:
                    self._pause(listening, _PAUSE_MS)
                return  # anything else is the fault of one client's network, and of that one only
            self.admission.count_accepted()
            self._take(sock, self._sockets[listening], address)

    def _pause(self, listening: socket.socket, wait_ms: int) -> None:
        """Leaves connections in the backlog for a while."""
        self._loop.remove_reader(listening.fileno())
        self._loop.call_later(wait_ms / 1000, self._accept_again, listening)

    def _accept_again(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            self._accept_on(listening)

    def _take(self, sock: socket.socket, listener: Listener, address: tuple[str, int]) -> None:
        host, port = address[0].removeprefix("::ffff:"), address[1]
        refusal = self.admission.admit(host, listener.name, listener.connections_max)
        if refusal is not None:
            self.refused_total += 1
            self.log_gate.warning("%s: %s:%d refused: %s", listener.name, host, port, refusal)
            sock.close()
            return
        self.accepted_total += 1
        sock.setblocking(False)
        listener.prepare(sock)
        connection = Connection(
            self, sock, listener=listener.name, peer=(host, port), limits=listener.limits, pool=self._pool
        )
        connection.active_ms = self._clock.monotonic_ms()
        self.connections[connection] = None
        connection.start()
