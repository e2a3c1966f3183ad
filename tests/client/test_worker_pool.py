"""`run` with threads: order, retries, commits that pass nothing, and a clean stop."""

import logging
import threading
from collections.abc import Callable

import pytest

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.consumer import Consumer
from barnabas.client.work import Retry
from barnabas.records.record import Record
from tests.client._consumers import consumer_of, poll_until, read
from tests.client._records import produce

pytestmark = pytest.mark.slow

COUNT = 200


@pytest.fixture
def keyed(bootstrap: str, admin: Admin, topic: str) -> str:
    """A topic of two partitions with COUNT records in each, of five keys."""
    admin.create_topic(topic, 2)
    for partition in (0, 1):
        rows = [(b"%d-%d" % (partition, n % 5), b"%d" % n) for n in range(COUNT)]
        produce(bootstrap, topic, rows, partition=partition)
    return topic


class Seen:
    """A handler that writes down what it gets."""

    def __init__(self, wanted: int = 2 * COUNT) -> None:
        self.records: list[Record] = []
        self.threads: dict[tuple[bytes | None, int], set[int]] = {}
        self._lock = threading.Lock()
        self._wanted = wanted

    def __call__(self, record: Record) -> None:
        with self._lock:
            self.records.append(record)
            self.threads.setdefault((record.key, record.partition), set()).add(threading.get_ident())

    def is_all(self) -> bool:
        return len(self.records) >= self._wanted


def committed(bootstrap: str, group: str, topic: str) -> dict[int, int]:
    with consumer_of(bootstrap, group_id=group) as consumer:
        found = consumer.committed(TopicPartition(topic, 0), TopicPartition(topic, 1))
        return {tp.partition: at.offset for tp, at in found.items()}


@pytest.mark.parametrize("order", ["key", "partition", "none"])
def test_every_record_is_handled_once_and_committed(
    bootstrap: str, keyed: str, group: str, order: str
) -> None:
    seen = Seen()
    with consumer_of(bootstrap, group_id=group) as consumer:
        consumer.subscribe(keyed)
        report = consumer.run(seen, workers=4, order=order, until=seen.is_all)  # type: ignore[arg-type]  # one of three
    assert report.processed == 2 * COUNT
    assert len({(r.partition, r.offset) for r in seen.records}) == 2 * COUNT
    assert committed(bootstrap, group, keyed) == {0: COUNT, 1: COUNT}


def test_records_of_one_key_stay_in_order_on_one_thread(bootstrap: str, keyed: str, group: str) -> None:
    seen = Seen()
    with consumer_of(bootstrap, group_id=group) as consumer:
        consumer.subscribe(keyed)
        consumer.run(seen, workers=4, until=seen.is_all)
    assert all(len(threads) == 1 for threads in seen.threads.values())
    for key in seen.threads:
        offsets = [r.offset for r in seen.records if (r.key, r.partition) == key]
        assert offsets == sorted(offsets)
    assert len({next(iter(threads)) for threads in seen.threads.values()}) > 1


def test_a_failing_record_is_tried_again(bootstrap: str, keyed: str, group: str) -> None:
    seen, failures = Seen(), dict.fromkeys(range(2), 2)

    def handler(record: Record) -> None:
        if record.offset == 7 and failures[record.partition]:
            failures[record.partition] -= 1
            raise LookupError("not yet")
        seen(record)

    with consumer_of(bootstrap, group_id=group) as consumer:
        consumer.subscribe(keyed)
        report = consumer.run(handler, until=seen.is_all, retry=Retry(attempts=3, first_ms=1))
    assert (report.processed, report.retried, report.skipped) == (2 * COUNT, 4, 0)


def test_a_record_that_keeps_failing_stops_the_run_in_front_of_it(
    bootstrap: str, keyed: str, group: str
) -> None:
    def handler(record: Record) -> None:
        if record.offset == 50:
            raise LookupError("for ever")

    with consumer_of(bootstrap, group_id=group) as consumer:
        consumer.subscribe(keyed)
        with pytest.raises(LookupError, match="for ever"):
            consumer.run(handler, workers=2, order="partition")
        left = {record.partition: record.offset for record in reversed(read(consumer, 100))}
    assert min(left.values()) <= 50, "what was not done is read again"
    assert all(offset <= 50 for offset in committed(bootstrap, group, keyed).values()) or left


def test_commits_never_pass_the_record_that_failed(bootstrap: str, keyed: str, group: str) -> None:
    def handler(record: Record) -> None:
        if record.offset == 50:
            raise LookupError("for ever")

    consumer = consumer_of(bootstrap, group_id=group)
    consumer.subscribe(keyed)
    with pytest.raises(LookupError):
        consumer.run(handler, workers=8, order="none")
    consumer.close()
    assert all(offset <= 50 for offset in committed(bootstrap, group, keyed).values())


def test_failing_records_can_be_skipped(
    bootstrap: str, keyed: str, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen(2 * COUNT - 2)

    def handler(record: Record) -> None:
        if record.offset == 50:
            raise LookupError("for ever")
        seen(record)

    with consumer_of(bootstrap, group_id=group) as consumer, caplog.at_level(logging.WARNING):
        consumer.subscribe(keyed)
        report = consumer.run(handler, on_error="skip", until=seen.is_all)
    assert report.skipped == 2
    assert f"skipped the record of {keyed}-0 at 50: for ever" in caplog.text
    assert committed(bootstrap, group, keyed) == {0: COUNT, 1: COUNT}


def test_failing_records_can_be_taken_over(bootstrap: str, keyed: str, group: str) -> None:
    dead: list[tuple[int, str]] = []
    seen = Seen(2 * COUNT - 2)

    def handler(record: Record) -> None:
        if record.offset == 50:
            raise LookupError("for ever")
        seen(record)

    with consumer_of(bootstrap, group_id=group) as consumer:
        consumer.subscribe(keyed)
        consumer.run(
            handler,
            on_error=lambda record, error: dead.append((record.partition, str(error))),
            until=lambda: seen.is_all() and len(dead) == 2,
        )
    assert sorted(dead) == [(0, "for ever"), (1, "for ever")]


def test_when_taking_over_fails_the_run_ends(bootstrap: str, keyed: str, group: str) -> None:
    def refuse(record: Record, error: BaseException) -> None:
        raise RuntimeError("no dead letters today") from error

    def fail(record: Record) -> None:
        raise LookupError

    with consumer_of(bootstrap, group_id=group) as consumer:
        consumer.subscribe(keyed)
        with pytest.raises(RuntimeError, match="no dead letters today"):
            consumer.run(fail, on_error=refuse)


def test_workers_that_are_behind_pause_the_consumer(
    bootstrap: str, keyed: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.client.worker_pool._BACKLOG_PER_WORKER", 50)
    go, paused = threading.Event(), threading.Event()
    seen = Seen()

    def handler(record: Record) -> None:
        go.wait(10)
        seen(record)

    with consumer_of(bootstrap, group_id=group, max_poll_records=20) as consumer:
        consumer.subscribe(keyed)

        def until() -> bool:
            if consumer.paused():
                paused.set()
                go.set()
            return seen.is_all()

        consumer.run(handler, workers=2, until=until)
        assert paused.is_set()
        assert consumer.paused() == set()


def test_wakeup_stops_the_run_and_what_was_not_done_comes_again(
    bootstrap: str, keyed: str, group: str
) -> None:
    done: list[int] = []
    with consumer_of(bootstrap, group_id=group) as consumer:
        consumer.subscribe(keyed)

        def handler(record: Record) -> None:
            done.append(record.offset)
            consumer.wakeup()

        consumer.run(handler, workers=1, order="none")
        again = read(consumer, 2 * COUNT - len(done))
    assert len(done) + len(again) == 2 * COUNT


def test_partitions_that_go_are_committed_first(bootstrap: str, keyed: str, group: str) -> None:
    seen = Seen()
    second: list[Consumer] = []
    with consumer_of(bootstrap, group_id=group) as consumer, consumer_of(bootstrap, group_id=group) as other:
        consumer.subscribe(keyed)
        stop = threading.Event()
        again: list[Record] = []

        def join() -> None:
            other.subscribe(keyed)
            again.extend(poll_until([other], lambda: len(other.assignment()) == 1))
            again.extend(other.poll(0.2))
            stop.set()

        thread = threading.Thread(target=join)

        def until() -> bool:
            if seen.is_all() and not second:
                second.append(other)
                thread.start()
            return stop.is_set()

        consumer.run(seen, workers=2, until=until)
        thread.join()
    assert again == []
    assert len(seen.records) == 2 * COUNT


@pytest.mark.parametrize(
    ("settings", "error"),
    [({"order": "x"}, Misuse), ({"workers": 0}, Misuse), ({"on_error": "x"}, ValueError)],
)
def test_what_cannot_be_meant_is_refused(
    bootstrap: str, settings: dict[str, object], error: type[Exception], name: Callable[[str], str]
) -> None:
    with consumer_of(bootstrap, group_id=name("g")) as consumer, pytest.raises(error):
        consumer.run(print, **settings)  # type: ignore[arg-type]  # that is what is refused
