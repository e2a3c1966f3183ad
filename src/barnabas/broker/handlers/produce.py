"""Produce (key 0), v0-13; v0-2 with legacy message sets, which are converted up.

acks: 0 gets no answer at all (an error closes the connection, so that the client asks for metadata), 1
answers after the leader's append, -1 once every in-sync replica has the batch. v3+ carries exactly one batch
of magic 2 per partition; v7 allows zstd; v8 adds the error's text; v10 names the current leader; v13 names
topics by id.  Large batches are checked off the event loop. A transactional batch is taken only if the
partition is part of its producer's open transaction, else INVALID_TXN_STATE, from v11 on
TRANSACTION_ABORTABLE; v12 makes it part of it.  A topic with barnabas.offsets.kept takes copied runs
(`records.copied`) and nothing else.  Not done: quotas (throttle is 0).
"""

from collections.abc import Awaitable, Iterator
from functools import partial

from barnabas.base.errors import BarnabasError
from barnabas.base.types import TopicPartition
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.broker.txn_verification import (
    FIRST_IMPLICIT_VERSION,
    join_transaction,
    starting_partitions,
    transaction_refusal,
)
from barnabas.coordinator.ports import Producer
from barnabas.log.append import PreparedAppend, prepare_append
from barnabas.log.copied import PreparedCopy, prepare_copy
from barnabas.metadata.names import is_internal
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.records.batch import (
    ATTRIBUTE_CODEC_MASK,
    HEADER_BYTES,
    LENGTH_COUNTS_FROM,
    MAGIC,
    read_header,
)
from barnabas.records.codecs import Codec
from barnabas.records.conversion import up_convert
from barnabas.records.errors import CorruptBatch, InvalidRecord, UnsupportedCodec
from barnabas.replication.partition import Partition

ACKS_ALL = -1
ACKS = (ACKS_ALL, 0, 1)
FIRST_BATCH_VERSION = 3
DECOMPRESSED_BYTES_MAX = 64 * 2**20  # of a legacy message set
FIRST_ZSTD_VERSION = 7
FIRST_LEADER_HINT_VERSION = 10
FIRST_TOPIC_ID_VERSION = 13

SMALL_BYTES = 16_384  # below this a thread costs more than it gives
DECOMPRESSION_COST = 32  # a compressed byte takes about as long as so many plain ones
RECORD_COST = 64  # and so does a record
REFUSED_TRANSACTION = "the partition is not part of an open transaction of this producer"
_ATTRIBUTES = 5  # places in a batch header
_RECORD_COUNT = 12

Answer = ProduceResponse | Awaitable[ProduceResponse | None] | None
# A partition's records, prepared by a thread, or the reason why they are refused.
Ready = PreparedAppend | PreparedCopy
Prepared = Ready | BarnabasError


def handle(request: ProduceRequest, ctx: Context) -> Answer:
    if request.acks not in ACKS:
        return _refused(request, ErrorCode.INVALID_REQUIRED_ACKS)
    if request.transactional_id is not None and ctx.version >= FIRST_IMPLICIT_VERSION:
        starting = starting_partitions(_batches(request, ctx))
        if starting is not None:
            return _join_then_produce(request, ctx, request.transactional_id, *starting)
    return _produce(request, ctx, ErrorCode.NONE)


async def _join_then_produce(
    request: ProduceRequest,
    ctx: Context,
    transactional_id: str,
    producer: Producer,
    partitions: list[TopicPartition],
) -> ProduceResponse | None:
    error = await join_transaction(transactional_id, producer, partitions, ctx)
    answer = _produce(request, ctx, error)
    return answer if answer is None or isinstance(answer, ProduceResponse) else await answer


def _batches(request: ProduceRequest, ctx: Context) -> Iterator[tuple[Partition, object]]:
    for topic in request.topic_data:
        name = _topic_name(topic.name, topic.topic_id, ctx)
        if name is not None and not is_internal(name):
            for part in topic.partition_data:
                partition = ctx.services.partitions.get(name, part.index)
                if partition is not None:
                    yield partition, part.records


def _produce(request: ProduceRequest, ctx: Context, join_error: ErrorCode) -> Answer:
    """`join_error` is why its new partitions are not part of the producer's transaction."""
    offload_bytes = ctx.services.settings.integer("barnabas.offload.bytes")
    for topic in request.topic_data:
        for part in topic.partition_data:
            if part.records is not None and _is_large(part.records, offload_bytes):
                return _produce_large(request, ctx, join_error)
    result = _append_all(request, ctx, None, join_error)
    return _flush_then_answer(request, ctx, result) if result.unflushed else _answer(request, ctx, result)


async def _produce_large(
    request: ProduceRequest, ctx: Context, join_error: ErrorCode
) -> ProduceResponse | None:
    """Checks every batch on a thread, then appends them all on the loop, in the request's order."""
    prepared: dict[int, Prepared] = {}
    for topic in request.topic_data:
        name = _topic_name(topic.name, topic.topic_id, ctx)
        for part in topic.partition_data:
            partition = ctx.services.partitions.get(name, part.index) if name is not None else None
            if partition is None:
                continue
            prepare = partial(_prepare, part, partition, ctx)
            try:
                prepared[id(part)] = await ctx.services.offload.run(prepare)
            except BarnabasError as error:
                # Without its traceback: the frames in it hold the request and would wait for the collector.
                prepared[id(part)] = error.with_traceback(None)
    return await _flush_then_answer(request, ctx, _append_all(request, ctx, prepared, join_error))


def _is_large(records: memoryview, offload_bytes: int) -> bool:
    """Whether checking the batch takes long enough to leave the loop to others meanwhile.

    What costs is the decompression, then the number of records; checksums run at memory speed.
    """
    size = len(records)
    if size < SMALL_BYTES:
        return False
    header = read_header(records)
    if header[_ATTRIBUTES] & ATTRIBUTE_CODEC_MASK:
        size *= DECOMPRESSION_COST
    count: int = header[_RECORD_COUNT]
    return max(size, count * RECORD_COST) >= offload_bytes


class _Appended:
    """What became of one request: the answer in the making, and what still has to be replicated."""

    __slots__ = ("failed", "join_error", "pending", "response", "unflushed")

    def __init__(self, join_error: ErrorCode) -> None:
        self.join_error = join_error
        self.response = ProduceResponse()
        self.pending: list[tuple[Partition, int, PartitionProduceResponse]] = []
        self.unflushed: list[tuple[Partition, PartitionProduceResponse]] = []
        self.failed = False


def _append_all(
    request: ProduceRequest, ctx: Context, prepared: dict[int, Prepared] | None, join_error: ErrorCode
) -> _Appended:
    result = _Appended(join_error)
    for topic in request.topic_data:
        name = _topic_name(topic.name, topic.topic_id, ctx)
        parts = [_append(name, part, request, ctx, prepared, result) for part in topic.partition_data]
        result.response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=parts)
        )
    return result


def _append(
    topic: str | None,
    part: PartitionProduceData,
    request: ProduceRequest,
    ctx: Context,
    prepared: dict[int, Prepared] | None,
    result: _Appended,
) -> PartitionProduceResponse:
    if topic is None:
        result.failed = True
        return _failed(part.index, ErrorCode.UNKNOWN_TOPIC_ID)
    partition = ctx.services.partitions.get(topic, part.index)
    if partition is None:
        result.failed = True
        return _failed(part.index, ctx.services.partitions.absence(topic, part.index))
    if is_internal(topic):
        # What stands in there is the coordinators' word; only they may write it.
        result.failed = True
        return _failed(
            part.index, ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic}"
        )
    try:
        ready = prepared.get(id(part)) if prepared is not None else None
        if ready is None:  # small, or its partition was not there when the large ones were prepared
            ready = _prepare(part, partition, ctx)
        if isinstance(ready, BarnabasError):
            raise ready
        batch = ready.batches[0]
        if batch.is_transactional and (
            code := transaction_refusal(batch, request.transactional_id, partition, ctx, result.join_error)
        ):
            result.failed = True
            return _failed(part.index, code, REFUSED_TRANSACTION)
        done = partition.append(ready, acks_all=request.acks == ACKS_ALL, now_ms=ctx.services.clock.now_ms())
    except BarnabasError as error:
        result.failed = True
        return _failed(part.index, code_of(error), str(error), _leader_hint(partition, error, ctx))
    answer = PartitionProduceResponse(
        index=part.index,
        error_code=0,
        base_offset=done.base_offset,
        log_append_time_ms=done.log_append_time,
        log_start_offset=done.log_start_offset,
    )
    if done.flush_due:
        result.unflushed.append((partition, answer))
    elif done.rolled:
        ctx.services.flusher.flush_soon(partition.log)
    if request.acks == ACKS_ALL and not partition.committed(done.last_offset):
        result.pending.append((partition, done.last_offset, answer))
    return answer


def _prepare(part: PartitionProduceData, partition: Partition, ctx: Context) -> Ready:
    if partition.log.config.offsets_kept:
        if ctx.version < FIRST_BATCH_VERSION or not isinstance(part.records, memoryview):
            raise InvalidRecord("there is no batch of records")
        return prepare_copy(part.records, partition.log.config)
    data = _one_batch(part.records, ctx.version)
    return prepare_append(data, partition.log.config, now_ms=ctx.services.clock.now_ms())


def _one_batch(records: object, version: int) -> memoryview:
    """The one batch that the request may carry for a partition, in memory that may be written to."""
    if not isinstance(records, memoryview):
        raise InvalidRecord("there is no batch of records")
    if version < FIRST_BATCH_VERSION:
        return memoryview(up_convert(records, limit=DECOMPRESSED_BYTES_MAX))
    if len(records) < HEADER_BYTES:
        raise InvalidRecord(f"{len(records)} bytes are no batch of records")
    header = read_header(records)
    size, magic, attributes = header[1] + LENGTH_COUNTS_FROM, header[3], header[_ATTRIBUTES]
    if magic != MAGIC:
        raise InvalidRecord(f"Produce v{version} takes batches of magic {MAGIC}, not {magic}")
    if size < len(records):
        raise InvalidRecord("there is more than one batch of records")
    if size > len(records):
        raise CorruptBatch(f"the batch is {size} bytes long, {len(records)} were sent")
    if attributes & ATTRIBUTE_CODEC_MASK == Codec.ZSTD and version < FIRST_ZSTD_VERSION:
        raise UnsupportedCodec(f"zstd needs Produce v{FIRST_ZSTD_VERSION} or newer")
    return records


async def _flush_then_answer(
    request: ProduceRequest, ctx: Context, result: _Appended
) -> ProduceResponse | None:
    """flush.messages wants these batches on disk before anybody is told that they are taken."""
    for partition, answer in result.unflushed:
        try:
            await ctx.services.flusher.flush(partition.log)
        except BarnabasError as error:
            result.failed = True
            answer.error_code, answer.error_message = code_of(error), str(error)
    return _answer(request, ctx, result)


def _answer(request: ProduceRequest, ctx: Context, result: _Appended) -> ProduceResponse | None:
    if request.acks == 0:
        ctx.drop()
        if result.failed:
            # Without an answer this is the only way to make the client look for the right broker.
            ctx.connection.close("a produce with acks=0 failed")
        return None
    if not result.pending:
        return result.response

    def attempt(expired: bool) -> bool:
        return _replicated(result, ctx, expired)

    keys = [partition.topic_partition for partition, _, _ in result.pending]
    ctx.services.purgatory.park(keys, request.timeout_ms, ctx.guarded(attempt))
    return None


def _replicated(result: _Appended, ctx: Context, expired: bool) -> bool:
    """Answers once every pending partition is committed, led elsewhere, or out of time."""
    waiting = []
    for partition, last_offset, answer in result.pending:
        try:
            committed = partition.committed(last_offset)
        except BarnabasError as error:
            answer.error_code = code_of(error)
            continue
        if committed:
            if len(partition.leading.in_sync) < partition.log.config.min_insync_replicas:
                answer.error_code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        elif expired:
            answer.error_code = ErrorCode.REQUEST_TIMED_OUT
        else:
            waiting.append((partition, last_offset, answer))
    result.pending = waiting
    if waiting:
        return False
    ctx.reply(result.response)
    return True


def _topic_name(name: str, topic_id: bytes, ctx: Context) -> str | None:
    if ctx.version < FIRST_TOPIC_ID_VERSION:
        return name
    topic = ctx.services.image.topics_by_id.get(topic_id)
    return topic.name if topic else None


def _leader_hint(partition: Partition, error: BarnabasError, ctx: Context) -> LeaderIdAndEpoch | None:
    if ctx.version < FIRST_LEADER_HINT_VERSION or code_of(error) is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return None
    known = ctx.services.image.partition(*partition.topic_partition)
    return LeaderIdAndEpoch(leader_id=known.leader, leader_epoch=known.leader_epoch) if known else None


def _failed(
    index: int, code: ErrorCode, message: str | None = None, leader: LeaderIdAndEpoch | None = None
) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index, error_code=code, base_offset=-1, error_message=message, current_leader=leader
    )


def _refused(request: ProduceRequest, code: ErrorCode) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_failed(part.index, code) for part in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )
