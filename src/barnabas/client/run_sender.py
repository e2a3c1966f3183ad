"""Copied runs (`records.copied`) on their way to the leaders of topics that keep offsets.

    with RunSender({"bootstrap.servers": "localhost:9092"}) as sender:
        end = sender.log_end("copy", 0)
        sender.append("copy", 0, [batches], log_end=end)
        sender.flush()

R1  requests for a partition leave in the order of `append`, several under way at once
R2  after the first failure nothing more is sent until `recover`; what was under way behind it is refused by
    the broker, or was there already: the log end decides, nobody has to remember what was sent

Needs no producer id and no transaction: an append names the log end it was made for.  Blocking; one thread.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from barnabas.base.types import TopicPartition
from barnabas.client.cluster import Cluster
from barnabas.client.config import PRODUCER, ClientSettings, parse
from barnabas.client.errors import BadAnswer, KafkaError, RequestTimedOut, error_for
from barnabas.client.offsets import LATEST, list_offsets
from barnabas.client.thread import ClientThread
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.schema import Message
from barnabas.records.copied import run_header

__all__ = ["RunSender"]

_NAMES_UP_TO: Final = 12  # of Produce; from 13 on topics go by id
_BYTES_UNDER_WAY: Final = 24 << 20
_PURPOSE: Final = "runs"


class RunSender:
    """Settings are a producer's.  Raises ConfigFault, NoBrokersAvailable."""

    def __init__(self, settings: Mapping[str, object], *, bytes_under_way: int = _BYTES_UNDER_WAY) -> None:
        self.settings: Final[ClientSettings] = parse(PRODUCER, settings)
        self._request_timeout_ms = self.settings.integer("request.timeout.ms")
        self._timeout_ms = self.settings.integer("delivery.timeout.ms")
        self._bytes_max = bytes_under_way
        self._changed = threading.Condition()
        self._bytes = 0  # under way; guarded by _changed, as is the next one
        self._failure: KafkaError | None = None
        self._cluster = Cluster(self.settings)
        self._thread = ClientThread("barnabas-client-runs", closing=self._cluster.close)
        try:
            self._thread.call(self._cluster.start())
        except BaseException:
            self.close()
            raise

    def log_end(self, topic: str, partition: int) -> int:
        """Where the partition ends: the first offset that is not there for sure.  Raises KafkaError."""
        tp = TopicPartition(topic, partition)
        return self.log_ends([tp])[tp]

    def log_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """As `log_end`, of several at once."""
        wanted = dict.fromkeys(partitions, LATEST)
        found = self._thread.call(list_offsets(self._cluster, wanted, timeout_ms=self._timeout_ms))
        for topic in {tp.topic for tp in wanted}:
            self._thread.call(self._track(topic))
        return {tp: at.offset for tp, at in found.items()}

    def append(self, topic: str, partition: int, batches: Sequence[memoryview], *, log_end: int) -> None:
        """Sends whole batches that belong behind `log_end`; their memory must stay as it is until `flush`.

        Waits while too much is under way.  Raises what an earlier append failed with.
        """
        if topic not in self._cluster.metadata.topics:
            self._thread.call(self._track(topic))
        size = sum(len(part) for part in batches)
        with self._changed:
            self._wait(lambda: self._bytes == 0 or self._bytes + size <= self._bytes_max)
            self._bytes += size
        self._thread.post(self._send, topic, partition, [run_header(log_end), *batches], size)

    def flush(self) -> None:
        """Returns when everything is acknowledged.  Raises the first failure."""
        with self._changed:
            self._wait(lambda: self._bytes == 0)

    def recover(self) -> KafkaError | None:
        """Waits until nothing is under way; gives the failure and forgets it.  Look at `log_end` then."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._bytes == 0, self._timeout_ms / 1000):
                raise RequestTimedOut(f"requests did not end within {self._timeout_ms} ms")
            failure, self._failure = self._failure, None
            return failure

    def close(self) -> None:
        """Ends every connection.  May be called again."""
        self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- waiting

    def _wait(self, is_ready: Callable[[], bool]) -> None:
        ready = self._changed.wait_for(
            lambda: self._failure is not None or is_ready(), self._timeout_ms / 1000
        )
        if self._failure is not None:
            raise self._failure
        if not ready:
            raise RequestTimedOut(f"runs were not acknowledged within {self._timeout_ms} ms")

    def _ended(self, size: int, failure: KafkaError | None) -> None:
        with self._changed:
            self._bytes -= size
            self._failure = self._failure or failure
            self._changed.notify_all()

    # --- on the loop

    async def _track(self, topic: str) -> None:
        self._cluster.track([topic])
        if self._cluster.metadata.topics.get(topic) is None:
            await self._cluster.refresh([topic])

    def _send(self, topic: str, partition: int, records: "list[bytes | memoryview]", size: int) -> None:
        if self._failure is not None:
            self._ended(size, None)
            return
        info = self._cluster.metadata.topics.get(topic)
        leader = self._cluster.metadata.leader(topic, partition)
        if info is None or leader is None:
            self._cluster.want_refresh()
            lost = error_for(ErrorCode.LEADER_NOT_AVAILABLE, subject=f"{topic}-{partition}")
            self._ended(size, lost)
            return
        part = PartitionProduceData(index=partition, records=records)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=self._request_timeout_ms,
            topic_data=[TopicProduceData(name=topic, topic_id=info.id, partition_data=[part])],
        )
        answer = self._cluster.send(
            leader,
            request,
            purpose=_PURPOSE,
            timeout_ms=self._request_timeout_ms,
            version_max=None if info.has_id else _NAMES_UP_TO,
        )
        answer.add_done_callback(lambda done: self._answered(done, f"{topic}-{partition}", size))

    def _answered(self, answer: "asyncio.Future[Message]", subject: str, size: int) -> None:
        failure: KafkaError | None = None
        if answer.cancelled():
            failure = RequestTimedOut(f"{subject}: the client was closed")
        elif (error := answer.exception()) is not None:
            failure = error if isinstance(error, KafkaError) else RequestTimedOut(f"{subject}: {error}")
        else:
            response = answer.result()
            assert isinstance(response, ProduceResponse), response
            part = next((each for topic in response.responses for each in topic.partition_responses), None)
            if part is None:
                failure = BadAnswer(f"{subject}: the broker's answer leaves it out")
            elif part.error_code:
                failure = error_for(part.error_code, part.error_message, subject=subject)
        if failure is not None and failure.refreshes_metadata:
            self._cluster.want_refresh()
        self._ended(size, failure)
