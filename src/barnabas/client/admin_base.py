"""What all admin calls share: starting, deadlines, sending each item where it belongs, repeating what can be.

A1  a call ends by its deadline: `timeout_ms`, else default.api.timeout.ms
A2  an item whose error says "ask elsewhere" or "ask later" is asked again until then; a missing topic is
    an answer, not a reason to ask again
A3  what fails for one item fails for that item; what fails for the whole call (no broker, no permission on
    the cluster) raises
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import Final, Self, TypeVar

from barnabas.base.clock import Clock
from barnabas.base.types import TopicPartition
from barnabas.client.cluster import Cluster, CoordinatorKind
from barnabas.client.config import ADMIN, parse
from barnabas.client.errors import ClientClosed, KafkaError, error_for
from barnabas.client.results import Results
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.schema import Message

__all__ = ["AdminBase", "answer_of", "by_topic"]

K = TypeVar("K")
V = TypeVar("V")
M = TypeVar("M", bound=Message)

# Retriable for a client that waits for a topic to appear; for an admin they are the answer.
_ANSWERS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)
_COORDINATOR_MOVED: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION}
)


class AdminBase:
    """The asynchronous admin without its calls.  `start`, or the first call, finds the cluster."""

    def __init__(
        self, config: Mapping[str, object] | None = None, *, clock: Clock | None = None, **settings: object
    ) -> None:
        self._settings = parse(ADMIN, config, **settings)
        self._cluster = Cluster(self._settings, clock=clock)
        self._starting = asyncio.Lock()
        self._is_started = False

    async def start(self) -> Self:
        """Finds the cluster.  Raises NoBrokersAvailable; then the next call tries again."""
        async with self._starting:
            if self._cluster.is_closed:
                raise ClientClosed
            if not self._is_started:
                await self._cluster.start()
                self._is_started = True
        return self

    async def close(self) -> None:
        """Ends every connection; calls under way fail.  May be called again."""
        await self._cluster.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        state = "closed" if self._cluster.is_closed else "open" if self._is_started else "not started"
        return f"{type(self).__name__}({', '.join(self._settings.items('bootstrap.servers'))}; {state})"

    # --- for the calls

    def _timeout_ms(self, timeout_ms: int | None) -> int:
        return self._settings.integer("default.api.timeout.ms") if timeout_ms is None else timeout_ms

    async def _each(
        self,
        items: Iterable[K],
        ask: Callable[[list[K]], Awaitable[Mapping[K, V | KafkaError]]],
        timeout_ms: int | None,
    ) -> Results[K, V]:
        """The outcome of every item; `ask` is called again with those that deserve another try."""
        await self.start()
        loop = asyncio.get_running_loop()
        limit_ms = self._timeout_ms(timeout_ms)
        deadline = loop.time() + limit_ms / 1000
        backoff = self._cluster.retry_backoff()
        order = list(dict.fromkeys(items))
        outcomes: dict[K, V | KafkaError] = {}
        pending = order
        while pending:
            left_ms = max(1, round((deadline - loop.time()) * 1000))
            asked = pending

            async def attempt(asked: list[K] = asked) -> Mapping[K, V | KafkaError]:
                return await ask(asked)

            outcomes.update(await self._cluster.retry(attempt, timeout_ms=left_ms))
            pending = [item for item in asked if _asks_again(outcomes[item])]
            wait_s = backoff.next_ms() / 1000
            if pending and loop.time() + wait_s >= deadline:
                break
            if pending:
                self._cluster.want_refresh()
                await asyncio.sleep(wait_s)
        return Results({item: outcomes[item] for item in order})

    async def _leaders(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, KafkaError]]:
        """Partitions by the broker that leads them, and the errors of those that nobody leads."""
        wanted = list(partitions)
        await self._cluster.refresh({partition.topic for partition in wanted})
        metadata = self._cluster.metadata
        by_node: dict[int, list[TopicPartition]] = {}
        errors: dict[TopicPartition, KafkaError] = {}
        for partition in wanted:
            topic = metadata.topics.get(partition.topic)
            leader = metadata.leader(*partition)
            if topic is None:
                code = metadata.errors.get(partition.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                errors[partition] = error_for(code, subject=f"topic {partition.topic!r}")
            elif not 0 <= partition.partition < len(topic.partitions):
                text = f"the topic has partitions 0 to {len(topic.partitions) - 1}"
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                errors[partition] = error_for(code, text, subject=str(partition))
            elif leader is None:
                errors[partition] = error_for(ErrorCode.LEADER_NOT_AVAILABLE, subject=str(partition))
            else:
                by_node.setdefault(leader, []).append(partition)
        return by_node, errors

    async def _each_partition(
        self,
        partitions: Iterable[TopicPartition],
        ask_node: Callable[[int, list[TopicPartition]], Awaitable[Mapping[TopicPartition, V | KafkaError]]],
        timeout_ms: int | None,
    ) -> Results[TopicPartition, V]:
        """The outcome of every partition, asked at its leader; leaders are asked side by side."""

        async def ask(asked: list[TopicPartition]) -> Mapping[TopicPartition, V | KafkaError]:
            by_node, errors = await self._leaders(asked)
            outcomes: dict[TopicPartition, V | KafkaError] = dict(errors)
            found = await asyncio.gather(
                *(ask_node(node, some) for node, some in by_node.items()), return_exceptions=True
            )
            for some, answer in zip(by_node.values(), found, strict=True):
                if isinstance(answer, KafkaError):
                    outcomes.update(dict.fromkeys(some, answer))
                elif isinstance(answer, BaseException):
                    raise answer
                else:
                    missing = error_for(
                        ErrorCode.UNKNOWN_SERVER_ERROR, "the broker left it out of its answer"
                    )
                    outcomes.update({partition: answer.get(partition, missing) for partition in some})
            return outcomes

        return await self._each(partitions, ask, timeout_ms)

    async def _at_coordinator(
        self, group: str, work: Callable[[int], Awaitable[V]], timeout_ms: int | None
    ) -> V:
        """The result of `work` at the group's coordinator, which is looked up again when it has moved."""
        await self.start()

        async def attempt() -> V:
            node = await self._cluster.coordinator(CoordinatorKind.GROUP, group)
            try:
                return await work(node)
            except KafkaError as error:
                if error.code in _COORDINATOR_MOVED:
                    self._cluster.forget_coordinator(CoordinatorKind.GROUP, group)
                raise

        return await self._cluster.retry(attempt, timeout_ms=self._timeout_ms(timeout_ms))

    async def _each_group(
        self, groups: Iterable[str], work: Callable[[int, str], Awaitable[V]], timeout_ms: int | None
    ) -> Results[str, V]:
        """The outcome of every group, asked at its coordinator, all side by side."""
        await self.start()
        names = list(dict.fromkeys(groups))

        async def one(name: str) -> V | KafkaError:
            try:
                return await self._at_coordinator(name, lambda node: work(node, name), timeout_ms)
            except KafkaError as error:
                return error

        return Results(dict(zip(names, await asyncio.gather(*(one(name) for name in names)), strict=True)))


def _asks_again(outcome: object) -> bool:
    return isinstance(outcome, KafkaError) and outcome.retriable and outcome.code not in _ANSWERS


def answer_of(message: Message, kind: type[M]) -> M:
    """The answer as its class; a connection never gives another."""
    assert isinstance(message, kind), f"{type(message).__name__} where {kind.__name__} was due"
    return message


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers by topic, in the order given."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
