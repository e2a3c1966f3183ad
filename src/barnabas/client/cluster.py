"""The cluster as one thing to talk to: who leads what, where to send, when to ask again.

L1  `metadata` is replaced, never changed; listeners are told after each replacement
L2  wishes for a refresh are joined: at most one Metadata request is under way, and they come no faster than
    retry.backoff.ms
L3  when no known broker can be reached, the bootstrap addresses are asked again
    (metadata.recovery.strategy=rebootstrap)
L4  after `close` there is no task and no socket left; calls raise ClientClosed

The base of producer, consumer and admin.  Everything runs on the loop that `start` ran on.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from enum import IntEnum
from typing import Final, TypeVar

from barnabas.base.clock import Clock, SystemClock
from barnabas.client.backoff import Backoff
from barnabas.client.bootstrap import bootstrap_addresses, enter
from barnabas.client.config import ClientSettings
from barnabas.client.connections import Connections, Link
from barnabas.client.dialing import ConnectFailure
from barnabas.client.errors import (
    AddressFailure,
    ClientClosed,
    ConnectionLost,
    KafkaError,
    NoBrokersAvailable,
    RequestTimedOut,
    error_for,
)
from barnabas.client.metadata import BrokerInfo, Metadata, TopicInfo
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.protocol.schema import Message

__all__ = ["Cluster", "CoordinatorKind"]

_log: Final = logging.getLogger("barnabas.client.cluster")
_BOOTSTRAP_NODE: Final = -1
_AUTO_CREATE_FROM: Final = 4  # Metadata versions below always allow creation

Result = TypeVar("Result")


class CoordinatorKind(IntEnum):
    """What a coordinator coordinates; the numbers are those of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


class Cluster:
    """One client's view of a cluster and its connections to it."""

    def __init__(self, settings: ClientSettings, *, clock: Clock | None = None) -> None:
        self.settings: Final = settings
        self.clock: Final[Clock] = clock or SystemClock()
        self.metadata = Metadata()
        self._connections = Connections(settings, on_lost=self.want_refresh)
        self._tracked: set[str] = set()
        self._tracks_all = False
        self._listeners: list[Callable[[Metadata], None]] = []
        self._coordinators: dict[tuple[CoordinatorKind, str], int] = {}
        self._wanted = asyncio.Event()
        self._asking = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None
        self._is_closed = False

    # --- life

    async def start(self) -> None:
        """Finds the cluster.  Raises NoBrokersAvailable, which says what failed for each address."""
        if self._is_closed:
            raise ClientClosed
        assert self._keeper is None, "started once"
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.settings.integer("bootstrap.timeout.ms") / 1000
        backoff = self._reconnect_backoff()
        while True:
            try:
                await self._enter()
                break
            except NoBrokersAvailable as error:
                wait_s = backoff.next_ms() / 1000
                if loop.time() + wait_s > deadline or self._is_closed:
                    raise
                _log.debug("%s; trying again in %.0f ms", error, wait_s * 1000)
                await asyncio.sleep(wait_s)
        self._keeper = loop.create_task(self._keep_fresh(), name="barnabas metadata")

    async def close(self) -> None:
        """Ends every task and connection; unanswered requests fail.  May be called again."""
        self._is_closed = True
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        await self._connections.close()

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    # --- requests

    def send(
        self,
        node: int,
        message: Message,
        *,
        purpose: str = "data",
        timeout_ms: int | None = None,
        version_max: int | None = None,
        answered: bool = True,
    ) -> "asyncio.Future[Message]":
        """Sends a request to a broker, after connecting if needed; requests of one purpose keep their order.

        The future gets the answer or a KafkaError.  `version_max` lowers the version, for a request that
        newer versions cannot carry; `answered` is false for Produce with acks=0.
        """
        try:
            link = self._link(node, purpose)
        except KafkaError as error:
            failed: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
            failed.set_exception(error)
            return failed
        return link.send(message, timeout_ms=timeout_ms, version_max=version_max, answered=answered)

    async def request(
        self,
        node: int,
        message: Message,
        *,
        timeout_ms: int | None = None,
        purpose: str = "data",
        version_max: int | None = None,
    ) -> Message:
        """Sends a request and waits for its answer.  Raises KafkaError; does not look into the answer."""
        return await self.send(node, message, purpose=purpose, timeout_ms=timeout_ms, version_max=version_max)

    async def ready(self, node: int, *, purpose: str = "data") -> None:
        """Connects to a broker if needed, so that `version_of` knows.  Raises KafkaError."""
        await self._link(node, purpose).ready()

    def version_of(self, node: int, api: ApiKey) -> int | None:
        """The version that requests to a broker will have; None if it does not offer the API, or is not
        connected yet (see `ready`)."""
        agreed = self._connections.agreed_with(node)
        return None if agreed is None else agreed.version_of(api)

    def feature(self, node: int, name: str) -> int:
        """The level of a finalized feature, as `transaction.version`; 0 if the broker does not name it."""
        agreed = self._connections.agreed_with(node)
        return 0 if agreed is None else agreed.features.get(name, 0)

    async def retry(self, attempt: Callable[[], Awaitable[Result]], *, timeout_ms: int) -> Result:
        """The result of `attempt`, called again after retriable errors, with back-off, until the time is up.

        Raises the last error, or RequestTimedOut if not even the first attempt ended in time.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        backoff = self.retry_backoff()
        last: KafkaError | None = None
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    return await attempt()
            except KafkaError as error:
                if not error.retriable:
                    raise
                if error.refreshes_metadata:
                    self.want_refresh()
                last = error
            except TimeoutError as error:
                if last is None:
                    raise RequestTimedOut(f"not done within {timeout_ms} ms") from error
                last.add_note(f"the next try did not end within the {timeout_ms} ms of the call")
                raise last from error
            wait_s = backoff.next_ms() / 1000
            if loop.time() + wait_s >= deadline:
                raise last
            await asyncio.sleep(wait_s)

    def retry_backoff(self) -> Backoff:
        """Waits between repeats, as retry.backoff.ms says."""
        return Backoff(
            self.settings.integer("retry.backoff.ms"), self.settings.integer("retry.backoff.max.ms")
        )

    # --- metadata

    def track(self, topics: Iterable[str] | None) -> None:
        """Keeps these topics fresh from now on, or all topics there are when None."""
        if topics is None:
            self._tracks_all = True
            self.want_refresh()
            return
        new = set(topics) - self._tracked
        self._tracked |= new
        if any(name not in self.metadata.topics for name in new):
            self.want_refresh()

    def untrack(self, topics: Iterable[str] | None) -> None:
        """Stops keeping topics fresh; None takes back `track(None)`."""
        if topics is None:
            self._tracks_all = False
        else:
            self._tracked.difference_update(topics)

    def on_change(self, callback: Callable[[Metadata], None]) -> Callable[[], None]:
        """Calls back with every new metadata; the result ends that."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback) if callback in self._listeners else None

    def want_refresh(self) -> None:
        """Refreshes soon; many wishes make one request."""
        self._wanted.set()

    async def refresh(self, topics: Iterable[str] | None = None, *, create: bool = False) -> None:
        """Asks for these topics now, or for the tracked ones.  Raises KafkaError when nobody answers.

        With `create` a broker that allows it makes topics that are missing.
        """
        everything = topics is None and self._tracks_all
        async with self._asking:
            names = None if everything else sorted(set(self._tracked if topics is None else topics))
            response = await self._ask_anyone(
                ApiKey.METADATA, lambda version: _metadata_request(names, version, create)
            )
            assert isinstance(response, MetadataResponse), response
            if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
                await self._enter()
                return
            self._take(response, names)

    async def refresh_all(self) -> None:
        """Asks for all topics there are, once."""
        async with self._asking:
            response = await self._ask_anyone(
                ApiKey.METADATA, lambda version: _metadata_request(None, version, False)
            )
            assert isinstance(response, MetadataResponse), response
            self._take(response, None)

    async def topic(self, name: str, *, timeout_ms: int, create: bool = True) -> TopicInfo:
        """The topic, as soon as it is known; it is tracked from then on.

        Raises UnknownTopic when it did not appear in time, InvalidTopic, TopicAuthorization and
        NoBrokersAvailable at once.
        """
        if (known := self.metadata.topics.get(name)) is not None:
            return known

        async def attempt() -> TopicInfo:
            await self.refresh([name], create=create)
            if (found := self.metadata.topics.get(name)) is not None:
                return found
            code = self.metadata.errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            raise error_for(code, subject=f"topic {name!r}")

        found = await self.retry(attempt, timeout_ms=timeout_ms)
        self._tracked.add(name)
        return found

    # --- who to ask

    async def any_node(self) -> int:
        """A broker that can be reached, a connected and idle one if there is.  Raises NoBrokersAvailable."""
        failures: list[AddressFailure] = []
        for broker in self._by_preference():
            try:
                await self._link(broker.id, "data").ready()
            except ClientClosed:
                raise
            except KafkaError as error:
                failures.append(_failure_of(broker, error))
            else:
                return broker.id
        if self.settings.string("metadata.recovery.strategy") != "rebootstrap":
            raise NoBrokersAvailable.after(tuple(failures))
        return await self._enter()

    async def controller(self) -> int:
        """The broker to send changes of topics to: the controller, or any broker when none is named."""
        if self.metadata.controller_id not in self.metadata.brokers:
            await self.refresh()
        found = self.metadata.controller_id
        return found if found in self.metadata.brokers else await self.any_node()

    async def coordinator(self, kind: CoordinatorKind, key: str, *, timeout_ms: int | None = None) -> int:
        """The broker that coordinates a group or a transactional id; remembered until forgotten."""
        known = self._coordinators.get((kind, key))
        if known is not None and known in self.metadata.brokers:
            return known
        limit_ms = self.settings.integer("request.timeout.ms") if timeout_ms is None else timeout_ms
        node = await self.retry(lambda: self._find_coordinator(kind, key), timeout_ms=limit_ms)
        self._coordinators[kind, key] = node
        return node

    def forget_coordinator(self, kind: CoordinatorKind, key: str) -> None:
        """Looks the coordinator up anew next time: it answered NOT_COORDINATOR or could not be reached."""
        self._coordinators.pop((kind, key), None)

    # --- inside

    def _link(self, node: int, purpose: str) -> Link:
        if self._is_closed:
            raise ClientClosed
        broker = self.metadata.brokers.get(node)
        if broker is None:
            self.want_refresh()
            raise ConnectionLost(f"broker {node} is not known to the cluster")
        return self._connections.link(node, broker.address, purpose)

    def _by_preference(self) -> list[BrokerInfo]:
        """Brokers, the one that will most likely answer soonest first."""

        def rank(broker: BrokerInfo) -> tuple[int, int, float]:
            link = self._connections.existing(broker.id, "data")
            if link is None:
                return 1, 0, random.random()
            group = 0 if link.is_connected else 2 if link.is_backing_off else 1
            return group, link.in_flight, random.random()

        return sorted(self.metadata.brokers.values(), key=rank)

    async def _ask_anyone(self, api: ApiKey, build: Callable[[int], Message]) -> Message:
        """The answer of any broker; a connection that breaks meanwhile is tried again elsewhere."""
        tries = len(self.metadata.brokers) + 1
        while True:
            node = await self.any_node()
            tries -= 1
            try:
                return await self.request(node, build(self.version_of(node, api) or 0))
            except (ConnectionLost, RequestTimedOut):
                if tries <= 0:
                    raise

    async def _find_coordinator(self, kind: CoordinatorKind, key: str) -> int:
        def build(version: int) -> FindCoordinatorRequest:
            if version >= 4:
                return FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            return FindCoordinatorRequest(key=key, key_type=kind)

        response = await self._ask_anyone(ApiKey.FIND_COORDINATOR, build)
        assert isinstance(response, FindCoordinatorResponse), response
        found = response.coordinators[0] if response.coordinators else response
        if found.error_code != ErrorCode.NONE:
            what = "group" if kind is CoordinatorKind.GROUP else "transactional id"
            raise error_for(found.error_code, found.error_message, subject=f"coordinator of {what} {key!r}")
        broker = BrokerInfo(found.node_id, found.host, found.port)
        known = self.metadata.brokers.get(broker.id)
        if known is None or known.address != broker.address:
            self._replace(self.metadata.with_broker(broker))
        return broker.id

    async def _enter(self) -> int:
        """Comes in through a bootstrap address; the result is a broker that is connected."""
        entry = await enter(bootstrap_addresses(self.settings), self.settings)
        self._take(entry.metadata, ())
        for broker in self.metadata.brokers.values():
            if broker.address == entry.address:
                link = self._connections.link(broker.id, broker.address, "data")
                if link.is_connected:
                    entry.peer.close()
                else:
                    link.adopt(entry.peer, entry.agreed)
                self.want_refresh()
                return broker.id
        entry.peer.close()  # another name than the brokers have for themselves: only their own count
        self.want_refresh()
        failures = []
        for broker in self._by_preference():
            try:
                await self._link(broker.id, "data").ready()
            except ClientClosed:
                raise
            except KafkaError as error:
                failures.append(_failure_of(broker, error))
            else:
                return broker.id
        raise NoBrokersAvailable.after(tuple(failures), bootstrap=str(entry.address))

    def _take(self, response: MetadataResponse, asked: Iterable[str] | None) -> None:
        gone = set(self.metadata.brokers)
        self._replace(self.metadata.merged(response, asked=asked))
        for node in gone - set(self.metadata.brokers):
            self._connections.forget(node)

    def _replace(self, metadata: Metadata) -> None:
        if metadata == self.metadata:
            return
        self.metadata = metadata
        for listener in list(self._listeners):
            listener(metadata)

    async def _keep_fresh(self) -> None:
        max_age_s = self.settings.integer("metadata.max.age.ms") / 1000
        backoff = self.retry_backoff()
        pause_s = self.settings.integer("retry.backoff.ms") / 1000
        while True:
            try:
                async with asyncio.timeout(max_age_s):
                    await self._wanted.wait()
            except TimeoutError:
                self._connections.close_idle()
            self._wanted.clear()
            try:
                await self.refresh()
            except KafkaError as error:
                _log.debug("metadata was not refreshed: %s", error)
                self._wanted.set()
                await asyncio.sleep(backoff.next_ms() / 1000)
            else:
                backoff.reset()
                await asyncio.sleep(pause_s)

    def _reconnect_backoff(self) -> Backoff:
        return Backoff(
            self.settings.integer("reconnect.backoff.ms"), self.settings.integer("reconnect.backoff.max.ms")
        )


def _metadata_request(names: list[str] | None, version: int, create: bool) -> MetadataRequest:
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create or version < _AUTO_CREATE_FROM)


def _failure_of(broker: BrokerInfo, error: KafkaError) -> AddressFailure:
    if isinstance(error, ConnectFailure):
        return error.failure
    return AddressFailure(str(broker.address), "connect", str(error), broker.id)
