"""One client: its socket, the state machine that reads it, and the answers on their way out.

N1  the socket is read only while all of these hold: no parsed request waits for its turn, fewer than
    requests_open_max are in progress, the client has taken all but unsent_bytes_max of its answers, the
    server's budget has room, nobody muted the connection, and it is not ending
N2  requests are handed out in the order they came, answers leave in that order, each request ends once
N3  a wake-up costs bounded work: one read, TURN_REQUESTS requests, TURN_BYTES sent
N4  after `close` nothing is read, handed out or sent; late answers are dropped

Why not asyncio's transports: uvloop has no sendfile, and a transport's own write buffer would hide how
much a client has not taken.  One caller at a time: the event loop.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from barnabas.base.buffers import Buffer
from barnabas.net.errors import FileCut
from barnabas.net.limits import ConnectionLimits
from barnabas.net.sending import SendQueue
from barnabas.protocol.connection import BlockPool, Request, ServerConnection

if TYPE_CHECKING:
    from barnabas.net.server import Server

__all__ = ["TURN_REQUESTS", "Connection", "OnClosed", "OnRequest"]

TURN_REQUESTS: Final = 64
_READ_BYTES_MAX: Final = 1024 * 1024

OnRequest = Callable[["Connection", Request], None]
OnClosed = Callable[["Connection"], None]


class Connection:
    """Made by the server; handlers see `listener`, `peer_host`, `finish` and the ways to end it."""

    __slots__ = (
        "__weakref__",
        "_fd",
        "_is_delivering",
        "_is_draining",
        "_is_muted",
        "_is_reading",
        "_is_scheduled",
        "_is_writing",
        "_loop",
        "_owed",
        "_parsed",
        "_sending",
        "_server",
        "_sock",
        "_unfinished",
        "active_ms",
        "attachment",
        "is_closed",
        "is_fresh",
        "limits",
        "listener",
        "peer_host",
        "peer_port",
        "protocol",
    )

    def __init__(
        self,
        server: "Server",
        sock: socket.socket,
        *,
        listener: str,
        peer: tuple[str, int],
        limits: ConnectionLimits,
        pool: BlockPool,
    ) -> None:
        self.listener: Final = listener
        self.peer_host, self.peer_port = peer
        self.limits: Final = limits
        self.protocol: Final = ServerConnection(frame_bytes_max=limits.request_bytes_max, pool=pool)
        self.attachment: object = None  # for whoever handles requests: principal, session
        self.is_closed = False
        self.is_fresh = True  # something moved since the sweeper looked last
        self.active_ms = 0  # the sweeper's: when it last saw something move
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._fd = sock.fileno()
        self._sending = SendQueue()
        self._parsed: deque[Request] = deque()
        self._owed: dict[int, int] = {}  # ticket -> bytes held for it
        self._unfinished = 0  # bytes held of a request that is still arriving
        self._is_reading = False
        self._is_writing = False
        self._is_delivering = False
        self._is_scheduled = False
        self._is_draining = False
        self._is_muted = False

    def __repr__(self) -> str:
        return f"<Connection {self.listener} {self.peer}>"

    @property
    def peer(self) -> str:
        """The client's address as text."""
        host = f"[{self.peer_host}]" if ":" in self.peer_host else self.peer_host
        return f"{host}:{self.peer_port}"

    @property
    def requests_open(self) -> int:
        """How many requests were handed out and not finished."""
        return len(self._owed)

    @property
    def has_early_answers(self) -> bool:
        """Whether an answer is ready and waits for that of an older request."""
        return self.protocol.has_early_answers

    @property
    def unsent_bytes(self) -> int:
        return self._sending.unsent_bytes

    @property
    def is_half_received(self) -> bool:
        """Whether a request has begun to arrive and is not complete."""
        return self._unfinished > 0

    # For handlers

    def finish(self, ticket: int, buffers: list[Buffer] | None) -> None:
        """Answers a request, in its turn; None ends it without an answer (acks=0)."""
        if self.is_closed:
            return
        held = self._owed.pop(ticket, None)
        assert held is not None, f"N2: request {ticket} of {self.peer} is not open"
        self.protocol.finish(ticket, buffers)
        self._server.budget.free(held, 1)
        if self._is_delivering or self.is_closed:
            return
        self._send()
        if self._parsed:
            self._schedule()
        self._balance()

    def close(self, reason: str) -> None:
        """Cuts the connection after a try to send what is ready; `reason` is logged."""
        if self.is_closed:
            return
        self._server.log_gate.warning("%s: %s closed: %s", self.listener, self.peer, reason)
        self._finish_off()

    def close_after_flush(self) -> None:
        """Reads no more, and closes once every request handed out is answered and sent."""
        if self.is_closed:
            return
        self._drop_parsed()
        self._drain()

    def mute(self) -> None:
        """Stops reading until `unmute`, as a quota wants it."""
        self._is_muted = True
        self._balance()

    def unmute(self) -> None:
        self._is_muted = False
        self._balance()

    # For the server

    def resume(self) -> None:
        """The budget has room again."""
        self._balance()

    def abort(self) -> None:
        """Cuts the connection at once, without a word."""
        if self.is_closed:
            return
        self.is_closed = True
        if self._is_reading:
            self._loop.remove_reader(self._fd)
        if self._is_writing:
            self._loop.remove_writer(self._fd)
        self._sending.clear()
        budget = self._server.budget
        held = self._unfinished + sum(self._owed.values()) + sum(len(one.body) for one in self._parsed)
        budget.pass_on(self)
        budget.free(held, len(self._owed) + len(self._parsed))
        self._parsed.clear()
        self._owed.clear()
        self._sock.close()
        self._server.forget(self)

    # Reading

    def start(self) -> None:
        """Begins to read; called once."""
        self._balance()

    def _on_readable(self) -> None:
        try:
            self._read()
        except Exception:
            # Our own bug.  Left in place, the reader would be called again and again for the same bytes.
            self._server.log.exception("%s: reading from %s failed", self.listener, self.peer)
            self.abort()

    def _read(self) -> None:
        server = self._server
        budget = server.budget
        if not budget.may_read(self):
            self._balance()
            return
        protocol = self.protocol
        space = protocol.get_buffer()
        if len(space) > _READ_BYTES_MAX:
            space = space[:_READ_BYTES_MAX]
        try:
            count = self._sock.recv_into(space)
        except BlockingIOError:
            return
        except OSError:
            self.abort()
            return
        if count == 0:
            self.abort()
            return
        self.is_fresh = True
        requests = protocol.buffer_updated(count)
        unfinished = protocol.unfinished_bytes
        held = unfinished - self._unfinished
        self._unfinished = unfinished
        server.bytes_received += count
        if requests:
            for request in requests:
                held += len(request.body)
            budget.hold(held, len(requests))
            budget.pass_on(self)
            self._parsed.extend(requests)
            self._deliver()
        else:
            budget.hold(held, 0)
            # uvloop calls back only once for a connection that was reset, also when bytes from before the
            # reset were left to read; a request that is complete notices when its answer is sent.
            if self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self.abort()
                return
            self._balance()
        if protocol.fault is not None and not self._is_draining:
            server.log_gate.warning("%s: %s closed: %s", self.listener, self.peer, protocol.fault)
            self._drain()

    def _deliver(self) -> None:
        """Hands out parsed requests, as many as are allowed now, then sends what they gave."""
        self._is_scheduled = False
        parsed, owed, on_request = self._parsed, self._owed, self._server.on_request
        turn = min(TURN_REQUESTS, self.limits.requests_open_max - len(owed))
        self._is_delivering = True
        try:
            while parsed and turn > 0:
                request = parsed.popleft()
                owed[request.ticket] = len(request.body)
                on_request(self, request)
                turn -= 1
        except Exception:
            # The handler's own bug.  It costs the client its connection, and nobody else anything.
            self._server.log.exception("%s: a request of %s failed", self.listener, self.peer)
            self.close("internal error")
        finally:
            self._is_delivering = False
        if self.is_closed:
            return
        self._send()
        if parsed and len(owed) < self.limits.requests_open_max:
            self._schedule()
        self._balance()

    def _schedule(self) -> None:
        if not self._is_scheduled and not self.is_closed:
            self._is_scheduled = True
            self._loop.call_soon(self._deliver_later)

    def _deliver_later(self) -> None:
        if not self.is_closed:
            self._deliver()

    def _balance(self) -> None:
        """Starts or stops reading as N1 says, with room between the two so that it does not flap."""
        if self.is_closed:
            return
        limits, unsent, open_count = self.limits, self._sending.unsent_bytes, len(self._owed)
        if self._is_reading:
            has_room = open_count < limits.requests_open_max and unsent <= limits.unsent_bytes_max
        else:
            has_room = open_count <= limits.requests_open_max // 2 and unsent <= limits.unsent_bytes_max // 2
        wanted = has_room and not self._parsed and not self._is_draining and not self._is_muted
        if wanted and not self._server.budget.may_read(self):
            self._read_when(False)
            self._server.budget.wait(self)  # may call `resume`, and so this again
            return
        self._read_when(wanted)
        if not wanted and self._server.budget.passer is self:
            self._server.budget.pass_on(self)

    def _read_when(self, wanted: bool) -> None:
        if wanted is not self._is_reading:
            self._is_reading = wanted
            if wanted:
                self._loop.add_reader(self._fd, self._on_readable)
            else:
                self._loop.remove_reader(self._fd)

    # Sending

    def _send(self) -> None:
        """Gives the socket what is ready; what it does not take goes when it is writable."""
        sending = self._sending
        data = self.protocol.data_to_send()
        if data:
            sending.push(data)
        if sending.unsent_bytes and not self._is_writing:
            self._flush()
        elif self._is_draining and not sending.unsent_bytes:
            self._end_if_drained()

    def _flush(self) -> None:
        sending = self._sending
        before = sending.unsent_bytes
        try:
            is_empty = sending.flush(self._sock)
        except FileCut as fault:
            self._server.log.error("%s: %s closed: %s", self.listener, self.peer, fault)
            self.abort()
            return
        except OSError:
            self.abort()
            return
        if sent := before - sending.unsent_bytes:
            self.is_fresh = True
            self._server.bytes_sent += sent
        if is_empty is self._is_writing:
            self._is_writing = not is_empty
            if is_empty:
                self._loop.remove_writer(self._fd)
            else:
                self._loop.add_writer(self._fd, self._on_writable)
        if self._is_draining and is_empty:
            self._end_if_drained()

    def _on_writable(self) -> None:
        self._flush()
        self._balance()

    # Ending

    def _drain(self) -> None:
        self._is_draining = True
        self._balance()
        if not self._is_delivering:
            self._send()

    def _end_if_drained(self) -> None:
        if not self._owed and not self._parsed and not self.is_closed:
            self._finish_off()

    def _finish_off(self) -> None:
        """Sends what is ready and fits, then closes so that the client can still read it."""
        self._sending.push(self.protocol.data_to_send())
        with suppress(OSError, FileCut):
            self._sending.flush(self._sock)
            # Unread input would make the kernel reset the connection and drop what was just sent.
            self._sock.shutdown(socket.SHUT_WR)
            self._sock.recv_into(self.protocol.get_buffer())
        self.abort()

    def _drop_parsed(self) -> None:
        if self._parsed:
            self._server.budget.free(sum(len(one.body) for one in self._parsed), len(self._parsed))
            self._parsed.clear()
