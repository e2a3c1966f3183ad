"""Fetch (key 1), v0-18; v0-3 get legacy message sets, converted down.

Answers at once when there are `min_bytes` or any error, else waits for the partitions to move on, at
most `max_wait_ms`, and not when an answer is ready behind it on the same connection, which would have to
wait too: Java's consumer asks for offsets behind its own fetch, Spark's connector in every micro-batch.
Records leave as slices of the log's files.  v3 bounds the whole answer but always gives one whole batch;
v4 isolation levels; v7 sessions (KIP-227); v9 and v12 epochs; v13 topic ids.
Not done: follower fetches, reading from a replica in the same rack, quotas (throttle is 0).
"""

from barnabas.base.buffers import Buffer
from barnabas.base.errors import BarnabasError
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.broker.fetch_sessions import FetchPlan, Key, Wanted
from barnabas.broker.old_formats import (
    FIRST_BATCH_VERSION,
    FIRST_ZSTD_VERSION,
    check_codec,
    legacy_records,
)
from barnabas.log.partition_log import ReadResult
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from barnabas.replication.partition import Partition

READ_COMMITTED = 1
FIRST_TOPIC_ID_VERSION = 13
FIRST_STORAGE_ERROR_VERSION = 6
FIRST_LEADER_HINT_VERSION = 16
UNKNOWN_OFFSET = -1


def handle(request: FetchRequest, ctx: Context) -> FetchResponse | None:
    services = ctx.services
    plan = services.fetch_sessions.plan(
        request, by_id=ctx.version >= FIRST_TOPIC_ID_VERSION, now_ms=services.clock.monotonic_ms()
    )
    if plan.error:
        return FetchResponse(error_code=plan.error)
    attempt = _Attempt(request, plan, ctx)
    if attempt.read() or request.max_wait_ms <= 0 or not plan.wanted:
        return attempt.response()

    def again(expired: bool) -> bool:
        # Read even when time ran out: what came since the last look belongs to this answer.
        if not attempt.read() and not expired:
            return False
        ctx.reply(attempt.response())
        return True

    keys = [*attempt.partition_keys(), ctx.connection]
    services.purgatory.park(keys, request.max_wait_ms, ctx.guarded(again))
    return None


class _Attempt:
    """One fetch request: reads what its partitions have now, and writes the answer."""

    __slots__ = ("_committed_only", "_ctx", "_max_bytes", "_plan", "_request", "_results")

    def __init__(self, request: FetchRequest, plan: FetchPlan, ctx: Context) -> None:
        self._request = request
        self._plan = plan
        self._ctx = ctx
        self._committed_only = request.isolation_level == READ_COMMITTED
        self._max_bytes = min(request.max_bytes, ctx.services.settings.integer("fetch.max.bytes"))
        self._results: dict[Key, PartitionData] = {}

    def partition_keys(self) -> list[tuple[str, int]]:
        return [(wanted.topic, wanted.partition) for wanted in self._plan.wanted.values()]

    def read(self) -> bool:
        """Reads every wanted partition; says whether the answer can go out now."""
        left = self._max_bytes
        total = 0
        urgent = False
        self._results = results = {}
        for key, wanted in self._plan.wanted.items():
            results[key] = data = self._read_one(wanted, left, total == 0)
            if data.records:
                size = len(data.records)
                total += size
                left = left - size if left > size else 0
            elif data.error_code or data.diverging_epoch is not None:
                urgent = True
        return urgent or total >= self._request.min_bytes

    def _read_one(self, wanted: Wanted, left: int, min_one_batch: bool) -> PartitionData:
        services = self._ctx.services
        if self._ctx.version >= FIRST_TOPIC_ID_VERSION:
            topic = services.image.topics_by_id.get(wanted.topic_id)
            if topic is None:
                return self._failed(wanted, ErrorCode.UNKNOWN_TOPIC_ID)
            wanted.topic = topic.name
        partition = services.partitions.get(wanted.topic, wanted.partition)
        if partition is None:
            return self._failed(wanted, services.partitions.absence(wanted.topic, wanted.partition))
        try:
            return self._read_partition(partition, wanted, left, min_one_batch)
        except BarnabasError as error:
            return self._failed(wanted, code_of(error), partition)

    def _read_partition(
        self, partition: Partition, wanted: Wanted, left: int, min_one_batch: bool
    ) -> PartitionData:
        partition.check_epoch(wanted.leader_epoch)
        if wanted.last_fetched_epoch >= 0:
            diverging = self._divergence(partition, wanted)
            if diverging is not None:
                return diverging
        log, version = partition.log, self._ctx.version
        offset, max_bytes = wanted.fetch_offset, min(wanted.max_bytes, left)
        read = self._read_records(partition, offset, max_bytes, min_one_batch)
        records: Buffer = b""
        if read.slice is not None:
            page_cache = self._ctx.services.page_cache
            behind = log.bytes_behind(offset, read.slice, page_cache.hot_bytes)
            records = page_cache.reading(read.slice, behind)
        aborted: list[AbortedTransaction] | None = None
        if self._committed_only:
            aborted = [
                AbortedTransaction(producer_id=txn.producer_id, first_offset=txn.first_offset)
                for txn in log.aborted_transactions(offset, read.next_offset)
            ]
        if version < FIRST_ZSTD_VERSION:
            check_codec(log.config.codec, version)
        if version < FIRST_BATCH_VERSION:
            # Control batches are invisible to these readers, who would ask for the same offset for ever.
            while read.slice is not None:
                records = legacy_records(read.slice, version, offset)
                if records:
                    break
                read = self._read_records(partition, read.next_offset, max_bytes, min_one_batch)
        return PartitionData(
            partition_index=wanted.partition,
            error_code=0,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=aborted,
            records=records,
        )

    def _read_records(
        self, partition: Partition, offset: int, max_bytes: int, min_one_batch: bool
    ) -> ReadResult:
        return partition.read(
            offset, max_bytes=max_bytes, committed_only=self._committed_only, min_one_batch=min_one_batch
        )

    def _divergence(self, partition: Partition, wanted: Wanted) -> PartitionData | None:
        """What KIP-320 asks of v12+: the last fetched epoch must not end below the fetch offset here."""
        epoch, end = partition.epoch_end_offset(wanted.last_fetched_epoch)
        if end == UNKNOWN_OFFSET or (epoch >= wanted.last_fetched_epoch and end >= wanted.fetch_offset):
            return None
        return PartitionData(
            partition_index=wanted.partition,
            error_code=0,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log.log_start_offset,
            diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end),
            records=b"",
        )

    def _failed(self, wanted: Wanted, code: ErrorCode, partition: Partition | None = None) -> PartitionData:
        if code is ErrorCode.KAFKA_STORAGE_ERROR and self._ctx.version < FIRST_STORAGE_ERROR_VERSION:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        hint = None
        if partition is not None and code in (
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.FENCED_LEADER_EPOCH,
        ):
            hint = self._leader_hint(wanted)
        return PartitionData(
            partition_index=wanted.partition,
            error_code=code,
            high_watermark=-1,
            current_leader=hint,
            records=b"",
        )

    def _leader_hint(self, wanted: Wanted) -> LeaderIdAndEpoch | None:
        known = self._ctx.services.image.partition(wanted.topic, wanted.partition)
        if known is None or self._ctx.version < FIRST_LEADER_HINT_VERSION:
            return None
        return LeaderIdAndEpoch(leader_id=known.leader, leader_epoch=known.leader_epoch)

    def response(self) -> FetchResponse:
        """The answer of what `read` last found."""
        plan, session = self._plan, self._plan.session
        topics: list[FetchableTopicResponse] = []
        current: FetchableTopicResponse | None = None
        last: object = None
        hints: set[int] = set()
        for key, data in self._results.items():
            wanted = plan.wanted[key]
            news = session is None or wanted.has_news(data)
            if plan.incremental and not news:
                continue
            if current is None or key[0] != last:
                last = key[0]
                current = FetchableTopicResponse(topic=wanted.topic, topic_id=wanted.topic_id, partitions=[])
                topics.append(current)
            current.partitions.append(data)
            if session is not None and data.records:
                session.served(key)
            if data.current_leader is not None:
                hints.add(data.current_leader.leader_id)
        return FetchResponse(
            session_id=plan.session_id,
            responses=topics,
            node_endpoints=self._endpoints(hints) if hints else [],
        )

    def _endpoints(self, leaders: set[int]) -> list[NodeEndpoint]:
        """Addresses of the leaders that the partitions' hints name."""
        endpoints = []
        for leader in sorted(leaders):
            broker = self._ctx.services.image.brokers.get(leader)
            address = broker.endpoints.get(self._ctx.connection.listener) if broker else None
            if broker and address:
                endpoints.append(
                    NodeEndpoint(node_id=leader, host=address.host, port=address.port, rack=broker.rack)
                )
        return endpoints
