"""Connections to brokers: made when first needed, made again when lost, versions agreed on each.

C1  requests of one link leave in the order of `send`, also those that waited for the connection
C2  every request ends: with its answer, an error, or the cancellation of its future
C3  after a failed try to connect the next one waits (reconnect.backoff.ms, doubling); what is sent meanwhile
    waits with it, and fails with the cause if that try fails too
C4  a broker that says it throttles us gets nothing more until its time is over; what is sent meanwhile waits
C5  the version of a request is the highest that we and the broker speak, or a lower one the caller asks for

No retries: callers know what is safe to repeat.  Everything runs on one event loop.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from barnabas.base.errors import BarnabasError, Closed, PeerFault
from barnabas.client.backoff import Backoff
from barnabas.client.config import ClientSettings
from barnabas.client.dialing import Address, Agreed, ConnectFailure, connect
from barnabas.client.errors import (
    AddressFailure,
    BadAnswer,
    ClientClosed,
    ConnectionLost,
    KafkaError,
    RequestTimedOut,
    UnsupportedByBroker,
)
from barnabas.net.errors import PeerUnavailable
from barnabas.net.peer import Peer
from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.connection import Response
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.schema import Message

__all__ = ["Connections", "Link"]

_log: Final = logging.getLogger("barnabas.client.connections")
_IDLE_NEVER: Final = -1


@dataclass(slots=True, eq=False)
class _Sending:
    """A request between `send` and its answer."""

    message: Message
    future: "asyncio.Future[Message]"
    version_max: int | None
    is_answered: bool
    limit_ms: int
    deadline: float = 0.0
    timer: asyncio.TimerHandle | None = None


class Link:
    """The connection to one broker for one purpose."""

    def __init__(
        self, node: int, address: Address, settings: ClientSettings, on_lost: Callable[[], None]
    ) -> None:
        self.node: Final = node
        self.address: Final = address
        self.agreed: Agreed | None = None
        self.last_failure: AddressFailure | None = None
        self._settings = settings
        self._on_lost = on_lost
        self._timeout_ms = settings.integer("request.timeout.ms")
        self._loop = asyncio.get_running_loop()
        self._backoff = Backoff(
            settings.integer("reconnect.backoff.ms"), settings.integer("reconnect.backoff.max.ms")
        )
        self._not_before = 0.0  # loop time of the next try to connect
        self._peer: Peer | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._waiting: deque[_Sending] = deque()
        # Requests with the usual time limit, the oldest first: one timer watches them all.
        self._watched: deque[_Sending] = deque()
        self._watching: asyncio.TimerHandle | None = None
        self._mute: asyncio.TimerHandle | None = None  # set while the broker throttles us
        self._end: KafkaError | None = None
        self.last_used = self._loop.time()

    @property
    def is_connected(self) -> bool:
        return self._peer is not None and not self._peer.is_closed

    @property
    def is_backing_off(self) -> bool:
        """Whether the last try to connect failed and the next has to wait."""
        return not self.is_connected and self._loop.time() < self._not_before

    @property
    def in_flight(self) -> int:
        return len(self._waiting) + (self._peer.in_flight if self._peer is not None else 0)

    def send(
        self,
        message: Message,
        *,
        timeout_ms: int | None = None,
        version_max: int | None = None,
        answered: bool = True,
    ) -> "asyncio.Future[Message]":
        """Sends a request, after connecting if needed; the future gets the answer or a KafkaError.

        `answered` is false for Produce with acks=0: the future gets an empty answer once it is on its way.
        A request that is not answered within request.timeout.ms ends the connection, as nothing behind it
        could be answered either.
        """
        future: asyncio.Future[Message] = self._loop.create_future()
        limit_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        sending = _Sending(message, future, version_max, answered, limit_ms)
        self.last_used = self._loop.time()
        self._watch(sending)
        if self._end is not None:
            self._fail(sending, self._end)
        elif self._peer is None or self._peer.is_closed:
            self._waiting.append(sending)
            self._start_connecting()
        elif self._mute is not None:
            self._waiting.append(sending)
        else:
            self._transmit(sending, self._peer)
        return future

    async def ready(self) -> Agreed:
        """Connects if needed.  Raises ConnectFailure; after `close`, what that was told."""
        if self._end is not None:
            raise self._end
        if not self.is_connected:
            connecting = self._start_connecting()
            try:
                await asyncio.shield(connecting)
            except asyncio.CancelledError:
                self._raise_if_ended(connecting)
                raise
        assert self.agreed is not None, "a connection agrees on versions first"
        return self.agreed

    def adopt(self, peer: Peer, agreed: Agreed) -> None:
        """Takes over a connection made elsewhere, so that bootstrap does not cost one more."""
        assert not self.is_connected, "one connection at a time"
        self._peer, self.agreed = peer, agreed
        self._backoff.reset()
        if self._mute is None:
            self._flush_waiting()

    async def close(self, end: KafkaError | None = None) -> None:
        """Ends the link for good; requests fail with `end`, which is ClientClosed unless given."""
        if self._end is None:
            self._end = end or ClientClosed()
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        self._drop(self._end)
        for timer in (self._watching, self._mute):
            if timer is not None:
                timer.cancel()
        self._watching = self._mute = None
        self._watched.clear()

    def disconnect(self) -> None:
        """Ends the connection but not the link: the next request connects anew."""
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    def _raise_if_ended(self, connecting: "asyncio.Task[None]") -> None:
        """Tells a waiter why its try was cancelled, if `close` did that and not the waiter's own caller."""
        if self._end is not None and connecting.cancelled():
            raise self._end from None

    def _start_connecting(self) -> "asyncio.Task[None]":
        if self._connecting is None:
            self._connecting = self._loop.create_task(self._connect(), name=f"connect {self.address}")
            self._connecting.add_done_callback(_retrieved)
        return self._connecting

    async def _connect(self) -> None:
        try:
            if (wait_s := self._not_before - self._loop.time()) > 0:
                await asyncio.sleep(wait_s)
            peer, agreed = await connect(self.address, self._settings, node=self.node)
        except KafkaError as error:
            self._not_before = self._loop.time() + self._backoff.next_ms() / 1000
            if isinstance(error, ConnectFailure):
                self.last_failure = error.failure
            _log.debug("%s", error)
            self._drop(error)
            self._on_lost()
            raise
        finally:
            self._connecting = None
        if self._end is not None:
            peer.close()
            raise self._end
        self.last_failure = None
        self.adopt(peer, agreed)

    def _flush_waiting(self) -> None:
        while self._waiting and self._mute is None and self._peer is not None and not self._peer.is_closed:
            self._transmit(self._waiting.popleft(), self._peer)
        if self._waiting and not self.is_connected:
            self._start_connecting()

    def _throttle(self, wait_ms: int) -> None:
        if self._mute is not None:
            self._mute.cancel()
        _log.debug("%s throttles us for %d ms", self._name, wait_ms)
        self._mute = self._loop.call_later(wait_ms / 1000, self._unmute)

    def _unmute(self) -> None:
        self._mute = None
        self._flush_waiting()

    def _drop(self, error: KafkaError) -> None:
        waiting, self._waiting = self._waiting, deque()
        for sending in waiting:
            self._fail(sending, error)
        self.disconnect()

    def _transmit(self, sending: _Sending, peer: Peer) -> None:
        if sending.future.done():  # timed out or cancelled while it waited
            self._settle(sending)
            return
        message = sending.message
        try:
            version = self._version(message, sending.version_max)
            if not sending.is_answered:
                peer.send_unanswered(message, version)
                self._settle(sending)
                sending.future.set_result(API[_key(message)].response())
                return
            answer = peer.send(message, version)
        except KafkaError as error:
            self._fail(sending, error)
        except (BarnabasError, ProtocolError) as error:
            self._fail(sending, self._kafka_error(error))
        else:
            answer.add_done_callback(partial(self._answered, sending))

    def _version(self, message: Message, version_max: int | None) -> int:
        assert self.agreed is not None, "versions are agreed before requests are sent"
        key = _key(message)
        version = self.agreed.version_of(key)
        if version is not None and version_max is not None and version > version_max:
            version = version_max if version_max >= self.agreed.offered[key].low else None
        if version is None:
            theirs = self.agreed.offered.get(key)
            offer = f"offers versions {theirs} of" if theirs is not None else "does not offer"
            ours = API[key].versions if version_max is None else f"up to {version_max}"
            raise UnsupportedByBroker(
                f"broker {self.node} at {self.address} {offer} {ApiKey(key).title}; this call needs {ours}"
            )
        return version

    def _answered(self, sending: _Sending, answer: "asyncio.Future[Response]") -> None:
        self._settle(sending)
        if answer.cancelled():
            self._fail(sending, self._end or ClientClosed())
        elif (error := answer.exception()) is not None:
            self._fail(sending, self._kafka_error(error))
            self._on_lost()
        elif not sending.future.done():
            message = answer.result().message
            assert message is not None, "a request with a header is answered with a message"
            if (wait_ms := getattr(message, "throttle_time_ms", 0)) > 0:
                self._throttle(wait_ms)
            sending.future.set_result(message)

    def _kafka_error(self, error: BaseException) -> KafkaError:
        match error:
            case KafkaError():
                return error
            case Closed():
                return self._end or ConnectionLost(f"the connection to {self._name} was given up")
            case PeerUnavailable():
                return ConnectionLost(f"{self._name}: {error}")
            case PeerFault():
                return BadAnswer(f"{self._name}: {error}")
            case _:
                return KafkaError(str(error), code=ErrorCode.INVALID_REQUEST)

    @property
    def _name(self) -> str:
        return f"broker {self.node}" if self.node >= 0 else f"bootstrap server {self.address}"

    def _watch(self, sending: _Sending) -> None:
        sending.deadline = self.last_used + sending.limit_ms / 1000
        if sending.limit_ms != self._timeout_ms:
            sending.timer = self._loop.call_at(sending.deadline, self._expire, sending)
            return
        self._watched.append(sending)
        if self._watching is None:
            self._watching = self._loop.call_at(sending.deadline, self._look)

    def _look(self) -> None:
        """Expires what is due, and comes back when the next one is."""
        self._watching = None
        while self._watched:
            oldest = self._watched[0]
            if not oldest.future.done() and oldest.deadline > self._loop.time():
                self._watching = self._loop.call_at(oldest.deadline, self._look)
                return
            self._watched.popleft()
            if not oldest.future.done():
                self._expire(oldest)

    def _expire(self, sending: _Sending) -> None:
        what = type(sending.message).__name__.removesuffix("Request")
        lacks = f"no answer to {what}"
        if sending in self._waiting:
            held = self.is_connected and self._mute is not None
            lacks = f"its quota kept us from sending {what}" if held else f"no connection for {what}"
        text = f"{self._name} at {self.address}: {lacks} within {sending.limit_ms} ms"
        self._fail(sending, RequestTimedOut(text))
        if sending.limit_ms >= self._timeout_ms:
            self.disconnect()

    def _fail(self, sending: _Sending, error: KafkaError) -> None:
        self._settle(sending)
        if not sending.future.done():
            sending.future.set_exception(error)

    def _settle(self, sending: _Sending) -> None:
        """Ends the watch over a request that has its outcome, or is about to get it."""
        if sending.timer is not None:
            sending.timer.cancel()
            sending.timer = None
        elif self._watched and self._watched[0] is sending:  # answers come in order, so it mostly is
            self._watched.popleft()
            while self._watched and self._watched[0].future.done():
                self._watched.popleft()


def _key(message: Message) -> ApiKey:
    assert message.API_KEY is not None, f"{type(message).__name__} is not a request"
    return message.API_KEY


def _retrieved(task: "asyncio.Task[None]") -> None:
    """Marks the error as seen: the requests that waited got it."""
    if not task.cancelled():
        task.exception()


class Connections:
    """All links of one client, by broker and purpose."""

    def __init__(self, settings: ClientSettings, *, on_lost: Callable[[], None]) -> None:
        self._settings = settings
        self._on_lost = on_lost
        self._links: dict[tuple[int, str], Link] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def link(self, node: int, address: Address, purpose: str) -> Link:
        """The link to a broker; a broker that moved to another address gets a new one."""
        if self._is_closed:
            raise ClientClosed
        link = self._links.get((node, purpose))
        if link is None or link.address != address:
            if link is not None:
                self._leave(link, f"broker {node} moved from {link.address} to {address}")
            link = self._links[node, purpose] = Link(node, address, self._settings, self._on_lost)
        return link

    def existing(self, node: int, purpose: str) -> Link | None:
        return self._links.get((node, purpose))

    def of_node(self, node: int) -> list[Link]:
        return [link for (at, _), link in self._links.items() if at == node]

    def agreed_with(self, node: int) -> Agreed | None:
        """What a broker offered on the newest of its connections, None before the first."""
        return next((link.agreed for link in self.of_node(node) if link.agreed is not None), None)

    def forget(self, node: int) -> None:
        """Ends the links to a broker that is no more."""
        for key in [key for key in self._links if key[0] == node]:
            self._leave(self._links.pop(key), f"broker {node} left the cluster")

    def close_idle(self) -> None:
        """Ends connections that nothing used for connections.max.idle.ms."""
        idle_ms = self._settings.integer("connections.max.idle.ms")
        if idle_ms == _IDLE_NEVER:
            return
        oldest = asyncio.get_running_loop().time() - idle_ms / 1000
        for link in self._links.values():
            if link.is_connected and link.in_flight == 0 and link.last_used <= oldest:
                link.disconnect()

    async def close(self) -> None:
        self._is_closed = True
        links, self._links = list(self._links.values()), {}
        await asyncio.gather(*(link.close() for link in links), *self._closing)

    def _leave(self, link: Link, why: str) -> None:
        task = asyncio.get_running_loop().create_task(link.close(ConnectionLost(why)))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
