"""Consume, process, produce: every record counts exactly once, whatever fails.

    def enrich(record: Record) -> ProducerRecord:
        return ProducerRecord("enriched", look_up(record.value), record.key)

    process(consumer, producer, enrich)

Each poll is one transaction: what `fn` returns for its records, and the consumer's positions behind them.

E1  results and positions are committed together or not at all
E2  when the group takes partitions away meanwhile, the transaction is aborted, and whoever has them then
    reads their records again
E3  an exception of `fn`, and what no repeat can mend, aborts the transaction and is raised; the consumer
    stands before the records of that transaction then, so the caller may go on with another call

`fn` may run several times for a record; only what it returned the last time counts.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from barnabas.base.errors import Misuse
from barnabas.client.consumer import Consumer
from barnabas.client.errors import (
    CommitFailed,
    KafkaError,
    RebalanceInProgress,
    TransactionAborted,
    UnknownMember,
)
from barnabas.client.interceptors import ProducerRecord
from barnabas.client.producer import Producer
from barnabas.records.record import Record

__all__ = ["POLL_S", "Results", "is_about_the_group", "process", "records_of"]

_log: Final = logging.getLogger("barnabas.client.processing")
POLL_S: Final = 1.0
_REBALANCED: Final = (CommitFailed, RebalanceInProgress, UnknownMember)

Results = ProducerRecord | Iterable[ProducerRecord] | None


def process(
    consumer: Consumer,
    producer: Producer,
    fn: Callable[[Record], Results],
    *,
    max_records: int | None = None,
) -> int:
    """Sends what `fn` makes of every record, exactly once, until `consumer.wakeup()` is called.

    The result is the number of records whose transactions were committed.  The consumer is subscribed, with
    enable.auto.commit=false and isolation.level=read_committed; the producer has a transactional.id of its
    own.  `max_records` are part of one transaction at most (max.poll.records).
    Raises what `fn` raises, ProducerFenced when another producer with the same id took over, KafkaError.
    """
    if not consumer.reads_committed:
        raise Misuse("exactly once needs isolation.level=read_committed for the consumer")
    done = 0
    while True:
        records = consumer.poll(POLL_S, max_records)
        if not records:
            if consumer.was_woken:
                return done
            continue
        try:
            with producer.transaction(consumer):
                for record in records:
                    _send(producer, fn(record))
        except KafkaError as error:
            if not is_about_the_group(error):
                raise
            _log.info("%d records will be read again: %s", len(records), error)
        else:
            done += len(records)
        if consumer.was_woken:
            return done


def _send(producer: Producer, results: Results) -> None:
    for result in records_of(results):
        producer.send(
            result.topic,
            result.value,
            result.key,
            headers=result.headers,
            partition=result.partition,
            timestamp_ms=result.timestamp_ms,
        )


def records_of(results: Results) -> Iterable[ProducerRecord]:
    """What a function made of one record, as records."""
    if results is None:
        return ()
    return (results,) if isinstance(results, ProducerRecord) else results


def is_about_the_group(error: KafkaError) -> bool:
    """Whether a transaction failed only because the group gave the partitions to others."""
    if isinstance(error, TransactionAborted):
        return isinstance(error.__cause__, _REBALANCED)
    return isinstance(error, _REBALANCED)
