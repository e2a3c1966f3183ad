"""Tests of outcomes: waiting, callbacks, awaiting, splitting, and who has seen a failure."""

import asyncio
import logging
import threading
from typing import Any

import pytest

from barnabas.base.errors import Misuse
from barnabas.client import delivery
from barnabas.client.delivery import RecordMetadata, finish
from barnabas.client.errors import KafkaError
from tests.client._hot_kit import Twin, twins


@pytest.fixture(params=twins())
def twin(request: pytest.FixtureRequest) -> Twin:
    return Twin(request.param)


def add(batch: Any, count: int = 1, on_delivery: Any = None) -> list[Any]:
    return [batch.add(100 + n, b"k", b"v%d" % n, (), on_delivery) for n in range(count)]


def succeed(batch: Any, base_offset: int = 40, append_time_ms: int = -1) -> None:
    finish(batch, base_offset=base_offset, append_time_ms=append_time_ms, error=None)


def fail(batch: Any, error: KafkaError | None = None) -> KafkaError:
    error = error or KafkaError("no")
    finish(batch, base_offset=-1, append_time_ms=-1, error=error)
    return error


class TestMetadata:
    def test_each_record_has_its_own_offset(self, twin: Twin) -> None:
        batch = twin.batch(partition=3)
        futures = add(batch, 2)
        succeed(batch)
        assert futures[1].result() == RecordMetadata("t", 3, 41, 101, 1, 2)

    def test_the_broker_s_time_wins(self, twin: Twin) -> None:
        batch = twin.batch()
        (future,) = add(batch)
        succeed(batch, append_time_ms=999)
        assert future.result().timestamp == 999

    def test_an_offset_that_is_not_known_is_minus_one_for_all(self, twin: Twin) -> None:
        batch = twin.batch()
        futures = add(batch, 2)
        succeed(batch, base_offset=-1)
        assert [future.result().offset for future in futures] == [-1, -1]


class TestWaiting:
    def test_a_thread_is_woken_and_the_batch_hastened(self, twin: Twin) -> None:
        batch = twin.batch()
        (future,) = add(batch)
        found: list[RecordMetadata] = []
        thread = threading.Thread(target=lambda: found.append(future.result(10)))
        thread.start()
        while not twin.home.hastened:
            thread.join(0.001)
        succeed(batch)
        thread.join()
        assert found[0].offset == 40
        assert twin.home.hastened == [batch]

    def test_a_timeout_leaves_the_record_under_way(self, twin: Twin) -> None:
        batch = twin.batch()
        (future,) = add(batch)
        with pytest.raises(TimeoutError, match=r"a record for t-0 is not acknowledged after 0\.0 s"):
            future.result(0.0)
        assert not future.done()
        succeed(batch)
        assert future.result(0.0).offset == 40

    def test_failures_raise_and_exception_returns(self, twin: Twin) -> None:
        batch = twin.batch()
        (future,) = add(batch)
        error = fail(batch)
        with pytest.raises(KafkaError, match="no"):
            future.result()
        assert future.exception() is error

    def test_success_has_no_exception(self, twin: Twin) -> None:
        batch = twin.batch()
        (future,) = add(batch)
        succeed(batch)
        assert future.exception() is None
        assert future.done()

    def test_one_error_raised_for_many_records_does_not_collect_their_traces(self, twin: Twin) -> None:
        batch = twin.batch(limit=100_000)
        futures = add(batch, 100)
        error = fail(batch)
        for future in futures:
            with pytest.raises(KafkaError):
                future.result()
        depth = 0
        trace = error.__traceback__
        while trace is not None:
            depth, trace = depth + 1, trace.tb_next
        assert depth < 10

    def test_a_home_may_refuse_to_wait(self, twin: Twin) -> None:
        def refuse(batch: object) -> None:
            raise Misuse("not here")

        batch = twin.batch()
        (future,) = add(batch)
        twin.home.hasten = refuse  # type: ignore[method-assign]  # a home on the loop's own thread
        with pytest.raises(Misuse, match="not here"):
            future.result()


class TestCallbacks:
    def test_they_get_the_future_once(self, twin: Twin) -> None:
        batch = twin.batch()
        (future,) = add(batch)
        seen: list[object] = []
        future.add_done_callback(seen.append)
        assert seen == []
        succeed(batch)
        assert seen == [future]

    def test_a_late_one_is_called_at_once(self, twin: Twin) -> None:
        batch = twin.batch()
        (future,) = add(batch)
        succeed(batch)
        seen: list[object] = []
        future.add_done_callback(seen.append)
        assert seen == [future]

    def test_on_delivery_gets_metadata_and_error_in_order(self, twin: Twin) -> None:
        batch = twin.batch()
        seen: list[tuple[RecordMetadata, KafkaError | None]] = []
        add(batch, 2, lambda metadata, error: seen.append((metadata, error)))
        error = fail(batch)
        assert [(metadata.offset, metadata.timestamp, cause) for metadata, cause in seen] == [
            (-1, 100, error),
            (-1, 101, error),
        ]

    def test_one_that_raises_is_logged_and_the_others_are_called(
        self, twin: Twin, caplog: pytest.LogCaptureFixture
    ) -> None:
        batch = twin.batch()
        (first,) = add(batch, 1, lambda metadata, error: 1 / 0)
        seen: list[object] = []
        first.add_done_callback(lambda future: 1 / 0)
        first.add_done_callback(seen.append)
        with caplog.at_level(logging.ERROR):
            succeed(batch)
        assert seen == [first]
        assert "on_delivery of a record for t-0 failed" in caplog.text
        assert "a callback of a record for t failed" in caplog.text

    def test_a_batch_is_done_once(self, twin: Twin) -> None:
        batch = twin.batch()
        succeed(batch)
        with pytest.raises(AssertionError, match="D1"):
            succeed(batch)


class TestAwaiting:
    def test_a_task_gets_the_result(self, twin: Twin) -> None:
        batch = twin.batch()
        (future,) = add(batch)

        async def main() -> RecordMetadata:
            loop = asyncio.get_running_loop()
            loop.call_soon(succeed, batch)
            result: RecordMetadata = await future
            return result

        assert asyncio.run(main()).offset == 40
        assert twin.home.hastened == [batch]

    def test_or_the_error(self, twin: Twin) -> None:
        batch = twin.batch()
        (future,) = add(batch)
        fail(batch)

        async def main() -> None:
            await future

        with pytest.raises(KafkaError, match="no"):
            asyncio.run(main())

    def test_a_cancelled_task_harms_nobody(self, twin: Twin) -> None:
        batch = twin.batch()
        futures = add(batch, 2)

        async def wait_for(future: Any) -> Any:
            return await future

        async def main() -> int:
            tasks = [asyncio.create_task(wait_for(future)) for future in futures]
            await asyncio.sleep(0)
            tasks[0].cancel()
            await asyncio.sleep(0)
            succeed(batch)
            result = await tasks[1]
            offset: int = result.offset
            return offset

        assert asyncio.run(main()) == 41


class TestWhoHasSeenAFailure:
    def test_nobody(self, twin: Twin) -> None:
        batch = twin.batch()
        add(batch, 3)
        fail(batch)
        assert delivery.unseen(batch) == 3

    def test_those_who_asked_before_or_after(self, twin: Twin) -> None:
        batch = twin.batch()
        futures = add(batch, 4)
        futures[0].add_done_callback(lambda future: None)
        with pytest.raises(TimeoutError):
            futures[1].result(0)
        fail(batch)
        assert delivery.unseen(batch) == 2
        futures[2].exception()
        futures[2].exception()
        assert delivery.unseen(batch) == 1

    def test_on_delivery_counts(self, twin: Twin) -> None:
        batch = twin.batch()
        add(batch, 2, lambda metadata, error: None)
        fail(batch)
        assert delivery.unseen(batch) == 0

    def test_a_watcher_does_not(self, twin: Twin) -> None:
        batch = twin.batch()
        (future,) = add(batch)
        seen: list[object] = []
        delivery.watch(future, lambda metadata, error: seen.append(error))
        error = fail(batch)
        delivery.watch(future, lambda metadata, error: seen.append(error))
        assert seen == [error, error]
        assert delivery.unseen(batch) == 1


class TestASplitBatch:
    def make(self, twin: Twin) -> tuple[list[Any], Any, Any, Any]:
        batch, first, second = twin.batch(), twin.batch(), twin.batch()
        seen: list[tuple[int, int]] = []
        futures = [
            batch.add(100, None, b"v", (), lambda metadata, error, n=n: seen.append((n, metadata.offset)))
            for n in range(4)
        ]
        first.count = 1
        second.count = 3
        self.seen = seen
        return futures, batch, first, second

    def test_its_futures_follow_the_parts(self, twin: Twin) -> None:
        futures, batch, first, second = self.make(twin)
        delivery.share(batch, [(0, first), (1, second)])
        succeed(second, 70)
        assert [future.done() for future in futures] == [False, True, True, True]
        succeed(first, 20)
        assert [future.result().offset for future in futures] == [20, 70, 71, 72]
        assert self.seen == [(1, 70), (2, 71), (3, 72), (0, 20)]

    def test_who_waits_goes_on_waiting_for_the_part(self, twin: Twin) -> None:
        futures, batch, first, second = self.make(twin)
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(futures[2].result(10).offset))
        thread.start()
        while batch not in twin.home.hastened:
            thread.join(0.001)
        delivery.share(batch, [(0, first), (1, second)])
        while second not in twin.home.hastened:
            thread.join(0.001)
        succeed(first, 0)
        assert found == []
        succeed(second, 50)
        thread.join()
        assert found == [51]

    def test_callbacks_move_and_seen_is_shared(self, twin: Twin) -> None:
        batch, first, second = twin.batch(), twin.batch(), twin.batch()
        futures = add(batch, 4)
        first.count, second.count = 2, 2
        called: list[object] = []
        futures[3].add_done_callback(called.append)
        delivery.share(batch, [(0, first), (2, second)])
        fail(second)
        fail(first)
        assert called == [futures[3]]
        assert (delivery.unseen(first), delivery.unseen(second)) == (2, 1)

    def test_parts_can_be_split_again(self, twin: Twin) -> None:
        futures, batch, first, second = self.make(twin)
        third, fourth = twin.batch(), twin.batch()
        third.count, fourth.count = 1, 2
        delivery.share(batch, [(0, first), (1, second)])
        delivery.share(second, [(0, third), (1, fourth)])
        for part, offset in ((first, 1), (third, 2), (fourth, 3)):
            succeed(part, offset)
        assert [future.result().offset for future in futures] == [1, 2, 3, 4]


def test_a_future_says_how_it_stands(twin: Twin) -> None:
    batch, other = twin.batch(), twin.batch()
    (future,) = add(batch)
    (failed,) = add(other)
    assert repr(future) == "<RecordFuture for t-0: under way>"
    succeed(batch)
    fail(other)
    assert repr(future).startswith("<RecordFuture: RecordMetadata(topic='t', partition=0, offset=40")
    assert repr(failed).startswith("<RecordFuture for t-0: KafkaError('no'")
