"""The way of a client to a cluster, a step at a time: what works, what does not, and the fix.

    DNS -> connect -> TLS -> SASL -> ApiVersions -> metadata -> each advertised address -> produce and fetch

A step that fails ends the way of its address.  Every step has a time limit, and nothing is left open.
"""

import asyncio
import ipaddress
import os
import socket
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from barnabas.base.errors import BarnabasError
from barnabas.cli.connection import Connection
from barnabas.client.bootstrap import bootstrap_addresses
from barnabas.client.config import ClientSettings
from barnabas.client.dialing import Address, ConnectFailure, connect
from barnabas.client.errors import KafkaError, NotAuthorized
from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

__all__ = ["Check", "Outcome", "examine"]

_CONNECT_S: Final = 5.0
_ANSWER_MS: Final = 10_000


class Outcome(StrEnum):
    OK = "ok"
    FAILED = "failed"
    WARNING = "warning"
    SKIPPED = "not checked"


@dataclass(frozen=True, slots=True)
class Check:
    """One step: what was looked at, what came of it, and how to mend it."""

    stage: str
    subject: str
    outcome: Outcome
    detail: str
    fix: str = ""
    took_ms: float = 0.0


def examine(connection: Connection, *, write: bool) -> Iterator[Check]:
    """The steps as they are done, up to the first address that cannot be used and the broker it names."""
    settings = connection.client_settings()
    is_sound = True
    with asyncio.Runner() as runner:
        steps = _network(settings)
        while True:
            check = runner.run(_next(steps))
            if check is None:
                break
            is_sound = is_sound and check.outcome is not Outcome.FAILED
            yield check
    if not is_sound:
        return
    if write:
        yield from _round_trip(connection)
    else:
        yield Check("write", "scratch topic", Outcome.SKIPPED, "--write produces and fetches a record")


async def _next(steps: AsyncIterator[Check]) -> Check | None:
    return await anext(steps, None)


async def _network(settings: ClientSettings) -> AsyncIterator[Check]:
    seen: MetadataResponse | None = None
    entry: Address | None = None
    for address in bootstrap_addresses(settings):
        walk = _Walk(address, settings)
        async for check in walk.steps():
            yield check
        if walk.metadata is not None and seen is None:
            seen, entry = walk.metadata, address
    if seen is None or entry is None:
        return
    if not seen.brokers:
        yield Check(
            "metadata", str(entry), Outcome.FAILED, "the broker answers, but names no broker of the cluster",
            "the cluster may still be starting, or has no controller: look into the broker's log",
        )  # fmt: skip
        return
    for broker in seen.brokers:
        told = Address(broker.host, broker.port)
        if told == entry:
            yield Check(
                "advertised", f"broker {broker.node_id}", Outcome.OK, f"{told} is the address just used"
            )
            continue
        walk = _Walk(told, settings, node=broker.node_id, entry=entry, cluster_id=seen.cluster_id)
        async for check in walk.steps():
            yield check
    async for check in _health(seen, settings, entry):
        yield check


class _Walk:
    """The steps to one address; `metadata` is set when all of them went well."""

    def __init__(
        self,
        address: Address,
        settings: ClientSettings,
        *,
        node: int | None = None,
        entry: Address | None = None,
        cluster_id: str | None = None,
    ) -> None:
        self._address = address
        self._settings = settings
        self._node = node
        self._entry = entry
        self._cluster_id = cluster_id
        self._started = time.perf_counter()
        self.metadata: MetadataResponse | None = None

    async def steps(self) -> AsyncIterator[Check]:
        """Ends after the first step that fails."""
        found = await self._resolve()
        yield found[0]
        if not found[1]:
            return
        reached = await self._reach(found[1])
        yield reached
        if reached.outcome is Outcome.FAILED:
            return
        if self._node is None:
            plain = "the connection is plain; TLS and SASL are not spoken yet"
            yield self._check("TLS, SASL", Outcome.SKIPPED, plain)
        async for check in self._talk():
            yield check

    async def _resolve(self) -> tuple[Check, list[str]]:
        host = self._address.host
        try:
            ipaddress.ip_address(host)
        except ValueError:
            pass
        else:
            return self._check("DNS", Outcome.OK, f"{host} is a number, no look-up needed"), [host]
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_CONNECT_S):
                infos = await loop.getaddrinfo(host, self._address.port, type=socket.SOCK_STREAM)
        except (OSError, TimeoutError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "no answer of the name server in time"
            fix = (
                f"{host} is not known on this machine: mind the spelling, or add it to DNS or /etc/hosts"
                if self._node is None
                else f"broker {self._node} tells clients to use {host}, which this machine does not know: "
                f"set advertised.listeners of that broker to a name that clients know, or add {host} to DNS"
            )
            return self._check("DNS", Outcome.FAILED, f"{host}: {reason}", fix), []
        numbers = list(dict.fromkeys(str(info[4][0]) for info in infos))
        return self._check("DNS", Outcome.OK, f"{host} is {', '.join(numbers)}"), numbers

    async def _reach(self, numbers: list[str]) -> Check:
        failures: list[str] = []
        for number in numbers:
            try:
                async with asyncio.timeout(_CONNECT_S):
                    _, writer = await asyncio.open_connection(number, self._address.port)
            except TimeoutError:
                failures.append(f"{number} does not answer within {_CONNECT_S:.0f} s")
            except OSError as error:
                failures.append(f"{number}: {_reason(error)}")
            else:
                writer.close()
                also = f" (but {'; '.join(failures)})" if failures else ""
                return self._check("connect", Outcome.OK, f"{number} port {self._address.port} is open{also}")
        return self._check("connect", Outcome.FAILED, "; ".join(failures), self._connect_fix(failures))

    def _connect_fix(self, failures: list[str]) -> str:
        port = self._address.port
        if self._node is not None:
            fix = (
                f"broker {self._node} tells clients to use {self._address}, where nothing can be reached "
                "from here: set advertised.listeners of that broker to an address that clients can reach"
            )
            if self._entry is not None and _is_loopback(self._address.host):
                fix += f", for example PLAINTEXT://{self._entry}"
            return fix
        if any("does not answer" in failure for failure in failures):
            return (
                f"packets to port {port} get lost: look for a firewall, a security group or a wrong address"
            )
        return (
            f"no program listens there: start the broker (`barnabas start --port {port}`), or mind the port; "
            "of a container the port must be published"
        )

    async def _talk(self) -> AsyncIterator[Check]:
        try:
            peer, agreed = await connect(self._address, self._settings)
        except ConnectFailure as failed:
            yield await self._no_broker(failed)
            return
        try:
            versions = sum(agreed.version_of(api) is not None for api in API)
            newest = max(agreed.offered, default=0)
            detail = f"{len(agreed.offered)} APIs offered, {versions} of them spoken by this client"
            yield self._check("ApiVersions", Outcome.OK, f"{detail}; highest key {newest}")
            version = agreed.version_of(ApiKey.METADATA)
            if version is None:
                fix = "the broker is older than 0.10 or a different kind of server; use a newer one"
                yield self._check("metadata", Outcome.FAILED, "no version of Metadata in common", fix)
                return
            try:
                answer = await peer.request(
                    MetadataRequest(topics=[]), version, MetadataResponse, timeout_ms=_ANSWER_MS
                )
            except BarnabasError as error:
                fix = "the listener may want a login (SASL), which is not spoken yet; use a plain listener"
                yield self._check("metadata", Outcome.FAILED, str(error), fix)
                return
            yield self._described(answer)
        finally:
            peer.close()

    async def _no_broker(self, failed: ConnectFailure) -> Check:
        from barnabas.client.diagnosis import what_listens_at

        failure = failed.failure
        finding = await what_listens_at(self._address) if failure.stage in ("protocol", "closed") else None
        stage, cause = (finding.stage, finding.cause) if finding else (failure.stage, failure.cause)
        fix = "connect to the port of a Kafka listener"
        if stage == "TLS":
            fix = "use a PLAINTEXT listener of the broker: TLS is not spoken yet"
        elif stage == "timeout":
            fix = "the broker may be stuck, or the port belongs to something else: look into the broker's log"
        return self._check("ApiVersions", Outcome.FAILED, cause, fix)

    def _described(self, answer: MetadataResponse) -> Check:
        if self._node is not None and self._cluster_id and answer.cluster_id not in (None, self._cluster_id):
            return self._check(
                "metadata", Outcome.FAILED,
                f"{self._address} belongs to cluster {answer.cluster_id}, not {self._cluster_id}",
                f"set advertised.listeners of broker {self._node} to its own address",
            )  # fmt: skip
        self.metadata = answer
        return self._check(
            "metadata", Outcome.OK, f"cluster {answer.cluster_id}, {len(answer.brokers)} brokers"
        )

    def _check(self, stage: str, outcome: Outcome, detail: str, fix: str = "") -> Check:
        now = time.perf_counter()
        took_ms, self._started = (now - self._started) * 1000, now
        who = str(self._address) if self._node is None else f"broker {self._node} at {self._address}"
        return Check(stage, who, outcome, detail, fix, took_ms)


async def _health(seen: MetadataResponse, settings: ClientSettings, entry: Address) -> AsyncIterator[Check]:
    """What a reachable cluster may still lack: a controller, leaders of partitions."""
    ids = {broker.node_id for broker in seen.brokers}
    if seen.controller_id not in ids:
        fix = "topics cannot be made or changed until one is elected: look into the brokers' logs"
        yield Check("controller", str(entry), Outcome.WARNING, "the cluster names no controller", fix)
    peer, agreed = await connect(entry, settings)
    try:
        version = agreed.version_of(ApiKey.METADATA)
        assert version is not None, "it was asked before"
        answer = await peer.request(
            MetadataRequest(topics=None), version, MetadataResponse, timeout_ms=_ANSWER_MS
        )
    except BarnabasError as error:
        yield Check("topics", str(entry), Outcome.FAILED, str(error), "look into the broker's log")
        return
    finally:
        peer.close()
    lost = [f"{t.name}-{p.partition_index}" for t in answer.topics for p in t.partitions if p.leader_id < 0]
    if lost:
        shown = f"{', '.join(lost[:5])}{' …' if len(lost) > 5 else ''}"
        fix = "bring the brokers back that hold the replicas; `barnabas topics describe` names them"
        yield Check(
            "topics", str(entry), Outcome.WARNING, f"{len(lost)} partitions have no leader: {shown}", fix
        )
    else:
        total = sum(len(topic.partitions) for topic in answer.topics)
        detail = f"{len(answer.topics)} topics, all {total} partitions have a leader"
        yield Check("topics", str(entry), Outcome.OK, detail)


def _round_trip(connection: Connection) -> Iterator[Check]:
    """A record through a topic of its own, which is deleted again."""
    topic = f"barnabas-doctor-{uuid.uuid4().hex[:12]}"
    started = time.perf_counter()

    def check(stage: str, outcome: Outcome, detail: str, fix: str = "") -> Check:
        nonlocal started
        now = time.perf_counter()
        took_ms, started = (now - started) * 1000, now
        return Check(stage, topic, outcome, detail, fix, took_ms)

    stage = "create topic"
    with connection.admin() as admin:
        try:
            admin.create_topic(topic, 1)
            yield check(stage, Outcome.OK, "made with one partition")
            stage = "produce"
            with connection.producer({"max.block.ms": "10000"}) as producer:
                written = producer.send(topic, b"barnabas doctor").result(30)
            yield check(stage, Outcome.OK, f"acknowledged at offset {written.offset}")
            stage = "fetch"
            yield check(stage, *_fetched(connection, topic))
            stage = "delete topic"
        except (KafkaError, TimeoutError) as error:
            yield check(stage, Outcome.FAILED, str(error) or "no answer in time", _write_fix(error))
        yield from _clean_up(admin, topic, check)


def _fetched(connection: Connection, topic: str) -> tuple[Outcome, str, str]:
    from barnabas.base.types import TopicPartition

    with connection.consumer({"auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        records = consumer.poll(10.0)
    if [record.value for record in records] == [b"barnabas doctor"]:
        return Outcome.OK, "the record came back as it was sent", ""
    fix = "acknowledged records cannot be read: look into the broker's log and at the state of the replicas"
    return Outcome.FAILED, "the record did not come back within 10 s", fix


def _clean_up(admin: "Admin", topic: str, check: "object") -> Iterator[Check]:
    assert callable(check)
    try:
        admin.delete_topics([topic]).check()
    except KafkaError as error:
        from barnabas.client.errors import UnknownTopic

        if not isinstance(error, UnknownTopic):
            yield check("delete topic", Outcome.WARNING, str(error), f"delete {topic} by hand")
        return
    yield check("delete topic", Outcome.OK, "the scratch topic is gone")


def _write_fix(error: Exception) -> str:
    if isinstance(error, NotAuthorized):
        return "the user may not do this: give it the rights, or leave --write out"
    return "look into the broker's log; `barnabas topics describe` shows leaders and in-sync replicas"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)
