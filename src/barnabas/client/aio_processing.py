"""Consume, process, produce on the caller's event loop; the promises of `processing` (E1-E3) hold here too.

async def enrich(record: Record) -> ProducerRecord:
    return ProducerRecord("enriched", await look_up(record.value), record.key)

await process(consumer, producer, enrich)
"""

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from barnabas.base.errors import Misuse
from barnabas.client.aio_consumer import Consumer
from barnabas.client.aio_producer import Producer
from barnabas.client.errors import KafkaError
from barnabas.client.processing import POLL_S, Results, is_about_the_group, records_of
from barnabas.records.record import Record

__all__ = ["process"]

_log: Final = logging.getLogger("barnabas.client.processing")


async def process(
    consumer: Consumer,
    producer: Producer,
    fn: Callable[[Record], Results | Awaitable[Results]],
    *,
    max_records: int | None = None,
) -> int:
    """Sends what `fn` makes of every record, exactly once, until `consumer.wakeup()` is called.

    As the synchronous `process`; `fn` may be a coroutine function, and is called for one record after the
    other.  A task that is cancelled aborts the transaction it is in.
    """
    if not consumer.reads_committed:
        raise Misuse("exactly once needs isolation.level=read_committed for the consumer")
    done = 0
    while True:
        records = await consumer.poll(POLL_S, max_records)
        if not records:
            if consumer.was_woken:
                return done
            continue
        try:
            async with producer.transaction(consumer):
                for record in records:
                    await _send(producer, fn(record))
        except KafkaError as error:
            if not is_about_the_group(error):
                raise
            _log.info("%d records will be read again: %s", len(records), error)
        else:
            done += len(records)
        if consumer.was_woken:
            return done


async def _send(producer: Producer, results: Results | Awaitable[Results]) -> None:
    given = await results if inspect.isawaitable(results) else results
    for result in records_of(given):
        await producer.send(
            result.topic,
            result.value,
            result.key,
            headers=result.headers,
            partition=result.partition,
            timestamp_ms=result.timestamp_ms,
        )
