"""The copying loop of a mirror: one source partition after the other, or several at once, into the target.

The state is in the target cluster, so that it does not matter who calls this, when, how often, or whether two
do at once.

T1  A target that keeps offsets: its log end is the position.  A run is appended only where it belongs, so
    that two who copy the same write it once (`log.copied`).
T2  Another target: the position is the committed offset of the mirror's group for the partition, committed in
    the transaction that holds the records.  One transactional id for each source partition: whoever begins
    later fences whoever began before, or finds its commit (SPARK.md section 7.2).
T3  Only what is committed at the source is read; the end is given, and all of it is there to be read.

Blocking; one thread.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Self

from barnabas.base.types import TopicPartition
from barnabas.client.bulk_fetch import BulkFetcher, FetchedChunk
from barnabas.client.bulk_produce import BulkProducer, ReadyBatch
from barnabas.client.config import CONSUMER, PRODUCER, settings_for
from barnabas.client.errors import KafkaError, ProducerFenced, TransactionAborted
from barnabas.client.run_sender import RunSender
from barnabas.protocol.codes import ErrorCode
from barnabas.records.errors import RecordError
from barnabas.spark.errors import SparkPartError
from barnabas.spark.pipelines.mirror_batches import kept_run, pieces
from barnabas.spark.pipelines.mirror_marks import Mark, read_mark
from barnabas.spark.pipelines.mirror_settings import MirrorPlan

__all__ = ["BrokenAtSource", "Copied", "LostAtSource", "MirrorLinks", "TopicEnded", "Work", "copy"]

_log: Final = logging.getLogger("barnabas.mirror")
_RETRY_S: Final = 0.2
_RETRY_S_MAX: Final = 5.0
_MARK_OLD_S: Final = 12 * 3600
"""An idle partition's mark is committed again after so long: brokers forget offsets after seven days."""


class TopicEnded(SparkPartError):
    """A source partition ends before what was copied of it: it was deleted and made again."""


MADE_AGAIN: Final = "was the topic deleted and made again? Delete the copy, or mirror it under another name"


def other_topic(name: str, copied: str, now: str) -> str:
    """What is said when the topic of a name is another one now."""
    return (
        f"topic {name} was deleted and made again at the source: its id was {copied} when it was copied, and "
        f"is {now} now. Delete the copy, or mirror it under another name"
    )


class LostAtSource(SparkPartError):
    """The source has deleted records before they were copied."""


class BrokenAtSource(SparkPartError):
    """The source has bytes that are no batches, or not those that were written."""


class Work(NamedTuple):
    """One source partition to copy up to `end`; `start` is where it begins if nothing was copied yet."""

    topic: str
    partition: int
    end: int
    target: str
    kept: bool
    start: int = 0
    limit: int | None = None
    """Not one record from here on, even if its batch begins before; a mirror has no such limit."""
    topic_id: str = ""
    """Of the source topic, to be told from one that is made under its name later."""
    batch_bytes_max: int | None = None
    """What the target takes as one batch, if it is known; what is larger goes as it is."""


@dataclass(slots=True)
class Copied:
    """What was done for one partition: source offsets [start, end)."""

    topic: str
    partition: int
    start: int
    end: int
    records: int = 0
    """As far as it is known: what an attempt wrote whose answers were lost is not counted."""
    size_bytes: int = 0
    lost: int = 0
    """Offsets that the source did not have any more."""


@dataclass(slots=True)
class MirrorLinks:
    """The connections of one worker to both clusters, opened when they are needed; `close` them."""

    plan: MirrorPlan
    _fetcher: BulkFetcher | None = None
    _sender: RunSender | None = None
    _producers: dict[str, BulkProducer] = field(default_factory=dict)

    @property
    def fetcher(self) -> BulkFetcher:
        if self._fetcher is None:
            self._fetcher = BulkFetcher(settings_for(CONSUMER, self.plan.source))
        return self._fetcher

    @property
    def sender(self) -> RunSender:
        if self._sender is None:
            self._sender = RunSender(settings_for(PRODUCER, self.plan.target))
        return self._sender

    def producer(self, transactional_id: str) -> BulkProducer:
        """The producer of an id; the first time, it takes the id over from whoever had it (T2)."""
        known = self._producers.get(transactional_id)
        if known is None:
            # A producer is a thread and a connection: old ones make room.
            while len(self._producers) >= 32:
                self._producers.pop(next(iter(self._producers))).close()
            settings = settings_for(PRODUCER, self.plan.target)
            known = BulkProducer(settings, transactional_id=transactional_id)
        else:
            del self._producers[transactional_id]  # and to the end again: used last
        self._producers[transactional_id] = known
        return known

    def has_producer(self, transactional_id: str) -> bool:
        return transactional_id in self._producers

    def drop_producer(self, transactional_id: str) -> None:
        """The next one under this id begins anew; a transaction that is open is given up."""
        known = self._producers.pop(transactional_id, None)
        if known is not None:
            known.close()

    def close(self) -> None:
        for producer in self._producers.values():
            producer.close()
        self._producers.clear()
        if self._sender is not None:
            self._sender.close()
        if self._fetcher is not None:
            self._fetcher.close()
        self._sender = self._fetcher = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def copy(works: Iterable[Work], links: MirrorLinks) -> list[Copied]:
    """Copies every partition up to its end; what was done, in the order of `works`.

    Raises KafkaError, LostAtSource, BrokenAtSource, TopicEnded, and ProducerFenced when somebody else has
    taken a partition over.
    """
    wanted = list(works)
    kept = [work for work in wanted if work.kept]
    done = {(each.topic, each.partition): each for each in (copy_kept(kept, links) if kept else ())}
    for work in wanted:
        if not work.kept:
            done[work.topic, work.partition] = copy_translated(work, links)
    return [done[work.topic, work.partition] for work in wanted]


# --- T1


def copy_kept(works: list[Work], links: MirrorLinks) -> list[Copied]:
    """Copies partitions whose targets keep offsets, side by side."""
    done: list[Copied] = []

    def attempt() -> None:
        try:
            _copy_runs(works, done, links)
        except KafkaError as error:
            raise links.sender.recover() or error from error

    _until_done(attempt, lambda: sum(each.end for each in done), links.plan, also=_is_out_of_order)
    return done


def _copy_runs(works: list[Work], done: list[Copied], links: MirrorLinks) -> None:
    sender = links.sender
    found = sender.log_ends(TopicPartition(work.target, work.partition) for work in works)
    ends = [found[TopicPartition(work.target, work.partition)] for work in works]
    at = [max(work.start, end) for work, end in zip(works, ends, strict=True)]
    if not done:  # the first attempt
        done += [Copied(work.topic, work.partition, at[index], at[index]) for index, work in enumerate(works)]
    for each, begin in zip(done, at, strict=True):
        each.end = max(each.end, begin)  # what an attempt before this one wrote: it got on
    left = [index for index, work in enumerate(works) if at[index] < work.end]
    ranges = [(works[i].topic, works[i].partition, at[i], works[i].end) for i in left]
    sent = [replace(each) for each in done]
    for chunk in links.fetcher.read(ranges, isolation="read_committed", timeout_ms=links.plan.timeout_ms):
        index = left[chunk.range_index]
        work, copied = works[index], sent[index]
        if chunk.lost is not None:
            copied.lost += _accept_loss(chunk, links.plan, is_first=ends[index] <= work.start)
            at[index] = chunk.next_offset
        else:
            with _saying_where(work):
                run = kept_run(chunk, max(ends[index], at[index]))
            if run.spans:
                sender.append(work.target, work.partition, run.spans, log_end=ends[index])
                ends[index] = run.next_offset
            copied.records += run.records
            copied.size_bytes += run.size_bytes
        copied.end = max(copied.end, chunk.next_offset, ends[index])
    sender.flush()
    done[:] = sent


def _is_out_of_order(error: KafkaError) -> bool:
    """A request before it was lost, or somebody else writes too: where the log ends now tells."""
    return error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


# --- T2


def copy_translated(work: Work, links: MirrorLinks) -> Copied:
    """Copies a partition into one that numbers records itself, in transactions."""
    done = Copied(work.topic, work.partition, -1, -1)
    id_ = links.plan.transactional_id(work.topic, work.partition)

    def attempt() -> None:
        was_known = links.has_producer(id_)
        try:
            _Transactions(work, done, links.producer(id_), links).run()
        except BaseException as error:
            links.drop_producer(id_)  # which aborts; after a lost answer its successor finds out
            if was_known and isinstance(error, ProducerFenced):
                # Not while we copied: since the last time somebody else had the partition.
                attempt()
            else:
                raise

    _until_done(
        attempt, lambda: done.end, links.plan, also=lambda error: isinstance(error, TransactionAborted)
    )
    return done


class _Sent(NamedTuple):
    """What the map of offsets needs to know of a piece."""

    source: int
    records: int
    is_dense: bool


class _Transactions:
    """One partition's way through its producer, from the mark it finds to the end."""

    def __init__(self, work: Work, done: Copied, producer: BulkProducer, links: MirrorLinks) -> None:
        self._work = work
        self._done = done
        self._producer = producer
        self._links = links
        self._sent: list[tuple[_Sent, ReadyBatch]] = []
        self._bytes = 0
        self._is_open = False
        found = producer.committed(links.plan.group, work.target, work.partition)
        self._mark = mark = read_mark(found) if found is not None else Mark(work.start)
        if work.topic_id and mark.topic_id not in ("", work.topic_id):
            raise TopicEnded(other_topic(work.topic, mark.topic_id, work.topic_id))
        mark.topic_id = work.topic_id or mark.topic_id
        if done.start < 0:
            done.start = done.end = self._mark.position

    def run(self) -> None:
        work, plan, mark = self._work, self._links.plan, self._mark
        if mark.position >= work.end:
            self._done.end = max(self._done.end, mark.position)
            if mark.written_s and time.time() - mark.written_s > _MARK_OLD_S:
                self._begin()
                self._commit()
            return
        since = time.monotonic()
        ranges = [(work.topic, work.partition, mark.position, work.end)]
        for chunk in self._links.fetcher.read(ranges, isolation="read_committed", timeout_ms=plan.timeout_ms):
            self._begin()
            self._take(chunk)
            late = time.monotonic() - since > plan.transaction_ms / 1000
            if self._bytes >= plan.transaction_bytes or late:
                self._commit()
                since = time.monotonic()
        if self._is_open:
            self._commit()

    def _begin(self) -> None:
        if not self._is_open:
            self._producer.begin()
            self._is_open = True

    def _take(self, chunk: FetchedChunk) -> None:
        work, mark = self._work, self._mark
        if chunk.lost is not None:
            self._done.lost += _accept_loss(chunk, self._links.plan, is_first=mark.position == work.start)
        else:
            with _saying_where(work):
                for piece in pieces(chunk, mark.position, work.limit, work.batch_bytes_max):
                    self._bytes += len(piece.data)
                    ready = self._producer.send(work.target, work.partition, piece.data)
                    # Without its bytes: their memory serves the next pieces as soon as they are written.
                    self._sent.append((_Sent(piece.source, piece.records, piece.is_dense), ready))
                    mark.position = piece.next_offset
        mark.position = max(mark.position, chunk.next_offset)

    def _commit(self) -> None:
        work, mark, done = self._work, self._mark, self._done
        self._producer.flush()
        for sent, batch in self._sent:
            if sent.is_dense and batch.base_offset >= 0:
                mark.offsets.add(sent.source, batch.base_offset, sent.records)
            elif batch.base_offset >= 0:
                mark.offsets.add_loose(sent.source, batch.base_offset)
            else:
                mark.offsets.add_unknown(sent.source)
        tp = TopicPartition(work.target, work.partition)
        self._producer.send_offsets(self._links.plan.group, {tp: mark.committed(int(time.time()))})
        self._producer.commit()
        done.records += sum(sent.records for sent, _ in self._sent)
        done.size_bytes += self._bytes
        done.end = mark.position
        self._sent, self._bytes, self._is_open = [], 0, False


# --- both


@contextmanager
def _saying_where(work: Work) -> Iterator[None]:
    try:
        yield
    except RecordError as error:
        raise BrokenAtSource(f"{work.topic}-{work.partition} is broken at the source: {error}") from error


def _accept_loss(chunk: FetchedChunk, plan: MirrorPlan, *, is_first: bool) -> int:
    """How many offsets are lost; none if nothing was copied before: what is gone then was never asked for."""
    lost = chunk.lost
    assert lost is not None, "called for a loss"
    if "starts at" in lost.why and is_first:
        return 0
    if "ends at" in lost.why:
        raise TopicEnded(
            f"{chunk.topic}-{chunk.partition} was copied up to offset {lost.start}, but {lost.why}; "
            f"{MADE_AGAIN}"
        )
    if not plan.skip_lost:
        raise LostAtSource(
            f"offsets {lost.start} to {lost.end - 1} of {chunk.topic}-{chunk.partition} were deleted at the "
            f"source before they were copied: {lost.why}; --skip-lost (skip_lost: true) goes on without them"
        )
    _log.warning("%s-%d: offsets %d to %d are lost: %s", chunk.topic, chunk.partition, *lost)
    return lost.end - lost.start


def _until_done(
    attempt: Callable[[], None],
    progress: Callable[[], int],
    plan: MirrorPlan,
    *,
    also: Callable[[KafkaError], bool],
) -> None:
    """Tries again after errors that pass, for as long as it gets on or the time of the plan lasts."""
    since, reached, wait_s = time.monotonic(), progress(), _RETRY_S
    while True:
        try:
            attempt()
            return
        except ProducerFenced:
            raise
        except KafkaError as error:
            if not error.retriable and not also(error):
                raise
            now = time.monotonic()
            if progress() > reached:
                since, reached, wait_s = now, progress(), _RETRY_S
            elif now - since > plan.timeout_ms / 1000:
                raise
            _log.info("trying again: %s", error)
        time.sleep(wait_s)
        wait_s = min(wait_s * 2, _RETRY_S_MAX)
