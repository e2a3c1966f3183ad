"""Tests of a flush's bookkeeping."""

import asyncio

from barnabas.client.flushes import Flush
from barnabas.client.producer_batch import ProducerBatch
from tests.client._batches import make_batch


def flush_of(*batches: ProducerBatch) -> Flush:
    loop = asyncio.new_event_loop()
    done = loop.create_future()
    loop.close()
    return Flush(batches, done)


def test_nothing_to_wait_for_is_done_at_once() -> None:
    flush = flush_of()
    assert flush.done.done()


def test_it_is_done_with_the_last_batch() -> None:
    first, second, other = make_batch(1), make_batch(2), make_batch(3)
    flush = flush_of(first, second)
    flush.finished(other)
    flush.finished(first)
    assert not flush.done.done()
    flush.finished(second)
    assert flush.done.done()


def test_a_split_batch_is_waited_for_in_parts() -> None:
    whole, part, rest, other = (make_batch(number) for number in range(4))
    flush = flush_of(whole)
    flush.split(other, [make_batch(9)])
    flush.split(whole, [part, rest])
    flush.finished(part)
    assert not flush.done.done()
    flush.finished(rest)
    assert flush.done.done()


def test_one_that_is_done_is_left_alone() -> None:
    flush = flush_of(batch := make_batch(1))
    flush.done.set_result(None)
    flush.finished(batch)
    assert flush.done.done()
