"""What becomes of a record: its metadata, and how callers wait for it.

All records of a batch share one outcome, so a future is only (batch, index) and the batch holds the rest:
a million records need no lock, event or callback list each.  The functions here are the methods of
`RecordFuture` in both twins of `client.hot`.

D1  a batch is done once; its outcome is complete before `is_done` is true
D2  callbacks run once each, on the client's thread, or at once in the caller's when it comes late;
    what they raise is logged
D3  a record counts as seen when somebody asked for its outcome or gave a callback; `flush` and `close`
    report failed records that nobody saw
"""

import asyncio
import logging
import threading
from _thread import allocate_lock
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.client.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client._hot_plain import BatchBase, RecordFuture

__all__ = ["OnDelivery", "RecordMetadata", "finish", "share", "unseen", "watch"]

_log: Final = logging.getLogger("barnabas.client.producer")
_lock: Final = threading.Lock()  # guards the callback lists of all batches; never held while calling out

NO_TIMESTAMP: Final = -1


class RecordMetadata(NamedTuple):
    """Where a record is.  `offset` is -1 when it failed, with acks=0, and when the broker forgot it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds: the record's own, or the broker's when the topic has LogAppendTime."""
    serialized_key_size: int
    """-1 without a key."""
    serialized_value_size: int
    """-1 for a null value."""


OnDelivery = Callable[[RecordMetadata, KafkaError | None], object]


def leaf(future: "RecordFuture") -> "tuple[BatchBase, int]":
    """The batch that holds the record now, and its place there: a batch too large for the broker is split."""
    batch, index = future.batch, future.index
    while batch.parts is not None:
        first, batch = next((first, part) for first, part in reversed(batch.parts) if first <= index)
        index -= first
    return batch, index


def metadata_of(future: "RecordFuture") -> RecordMetadata:
    batch, index = leaf(future)
    offset = batch.base_offset
    return RecordMetadata(
        batch.topic,
        batch.partition,
        offset if offset < 0 else offset + index,
        future.timestamp if batch.append_time_ms < 0 else batch.append_time_ms,
        future.key_size,
        future.value_size,
    )


def is_done(future: "RecordFuture") -> bool:
    return leaf(future)[0].is_done


def _look(future: "RecordFuture") -> "BatchBase":
    """Notes that somebody cares for the record; the batch it is in."""
    batch, index = leaf(future)
    if batch.error is not None or not batch.is_done:
        if batch.seen is None:
            batch.seen = set()
        batch.seen.add(index)
    return batch


def wait(future: "RecordFuture", timeout: float | None) -> "BatchBase":
    """The finished batch.  Raises TimeoutError; the record stays under way then."""
    batch = _look(future)
    while not batch.is_done:
        waiter = allocate_lock()
        waiter.acquire()
        with _lock:
            if batch.parts is None and not batch.is_done:
                batch.waiters.append(waiter)
            else:
                batch = leaf(future)[0]
                continue
        batch.home.hasten(batch)
        if not waiter.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
            raise TimeoutError(
                f"a record for {batch.topic}-{batch.partition} is not acknowledged after {timeout} s; "
                "it is still under way"
            )
        batch = leaf(future)[0]  # another one if it was split meanwhile
    return batch


def result_of(future: "RecordFuture", timeout: float | None = None) -> RecordMetadata:
    batch = wait(future, timeout)
    if batch.error is not None:
        raise batch.error.with_traceback(None)  # one error for many records: without the last one's trace
    return metadata_of(future)


def exception_of(future: "RecordFuture", timeout: float | None = None) -> KafkaError | None:
    return wait(future, timeout).error


def add_done_callback(future: "RecordFuture", callback: "Callable[[RecordFuture], object]") -> None:
    batch = _look(future)
    with _lock:
        batch = leaf(future)[0]
        if not batch.is_done:
            batch.callbacks.append((callback, future))
            return
    _call(callback, future)


def watch(future: "RecordFuture", on_outcome: OnDelivery) -> None:
    """As add_done_callback, with (metadata, error), and without counting as somebody who saw the outcome."""

    def tell(done: "RecordFuture") -> None:
        on_outcome(metadata_of(done), leaf(done)[0].error)

    with _lock:
        batch = leaf(future)[0]
        if not batch.is_done:
            batch.callbacks.append((tell, future))
            return
    tell(future)


def await_result(future: "RecordFuture") -> Generator[Any, None, RecordMetadata]:
    batch = _look(future)
    if not batch.is_done:
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        add_done_callback(future, partial(_wake, loop, waiter))
        batch.home.hasten_soon(batch)
        yield from waiter
    return result_of(future)


def _wake(loop: asyncio.AbstractEventLoop, waiter: "asyncio.Future[None]", future: "RecordFuture") -> None:
    loop.call_soon_threadsafe(_settle, waiter)


def _settle(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


def finish(batch: "BatchBase", *, base_offset: int, append_time_ms: int, error: KafkaError | None) -> None:
    """Gives a batch its outcome and tells everybody who waits (D1, D2)."""
    assert not batch.is_done, "D1: a batch is done once"
    batch.base_offset = base_offset
    batch.append_time_ms = append_time_ms
    batch.error = error
    with _lock:
        batch.is_done = True
        waiters, batch.waiters = batch.waiters, []
        callbacks, batch.callbacks = batch.callbacks, []
    deliveries, batch.deliveries = batch.deliveries, []
    if error is not None and deliveries:
        batch.seen = (batch.seen or set()) | {leaf(future)[1] for _, future in deliveries}
    for waiter in waiters:
        waiter.release()
    for on_delivery, future in deliveries:
        try:
            on_delivery(metadata_of(future), error)
        except Exception:
            _log.exception("on_delivery of a record for %s-%d failed", batch.topic, batch.partition)
    for callback, future in callbacks:
        _call(callback, future)


def text_of(future: "RecordFuture") -> str:
    batch, _ = leaf(future)
    if not batch.is_done:
        return f"<RecordFuture for {batch.topic}-{batch.partition}: under way>"
    if batch.error is not None:
        return f"<RecordFuture for {batch.topic}-{batch.partition}: {batch.error!r}>"
    return f"<RecordFuture: {metadata_of(future)}>"


def unseen(batch: "BatchBase") -> int:
    """How many records of a failed batch nobody asked about (D3)."""
    assert batch.is_done, "only a finished batch has an outcome to see"
    return batch.count - len(batch.seen or ())


def share(batch: "BatchBase", parts: "list[tuple[int, BatchBase]]") -> None:
    """Hands the waiters of a batch that was split to its parts."""
    with _lock:
        batch.parts = parts
        callbacks, batch.callbacks = batch.callbacks, []
        deliveries, batch.deliveries = batch.deliveries, []
        waiters, batch.waiters = batch.waiters, []
        seen, batch.seen = batch.seen or set(), None
        for callback, future in callbacks:
            leaf(future)[0].callbacks.append((callback, future))
        for on_delivery, future in deliveries:
            leaf(future)[0].deliveries.append((on_delivery, future))
        for (first, part), end in zip(parts, [*(first for first, _ in parts[1:]), batch.count], strict=True):
            part.seen = {index - first for index in seen if first <= index < end} or None
    for waiter in waiters:
        waiter.release()  # they look again, and wait for the part


def _call(callback: "Callable[[RecordFuture], object]", future: "RecordFuture") -> None:
    try:
        callback(future)
    except Exception:
        _log.exception("a callback of a record for %s failed", future.batch.topic)
