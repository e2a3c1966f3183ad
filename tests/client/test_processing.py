"""Tests of consume-process-produce, exactly once."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.consumer import Consumer
from barnabas.client.errors import ProducerFenced, TransactionAborted
from barnabas.client.interceptors import ProducerRecord
from barnabas.client.processing import process
from barnabas.client.producer import Producer
from barnabas.records.record import Record
from tests.client._consumers import consumer_of, poll_until, read
from tests.client._kit import settings_for

COUNT = 200
PARTITIONS = 4


class Crash(Exception):
    """Ends the processing in the middle."""


class Job:
    """Two topics, the first one full, and the group that copies it to the second."""

    def __init__(self, bootstrap: str, name: Callable[[str], str], admin: Admin) -> None:
        self.bootstrap = bootstrap
        self.source, self.target, self.group = name("source"), name("target"), name("group")
        for topic in (self.source, self.target):
            admin.create_topic(topic, PARTITIONS)
        with Producer(settings_for(bootstrap)) as producer:
            for number in range(COUNT):
                producer.send(self.source, b"%d" % number, b"%d" % number)

    def consumer(self, **more: Any) -> Consumer:
        settings = {"isolation_level": "read_committed", "enable_auto_commit": False, **more}
        consumer = consumer_of(self.bootstrap, group_id=self.group, **settings)
        consumer.subscribe(self.source)
        return consumer

    def producer(self, transactional_id: str) -> Producer:
        return Producer(
            settings_for(self.bootstrap), transactional_id=f"{self.group}-{transactional_id}", linger_ms=0
        )

    def copy(self, record: Record) -> ProducerRecord:
        return ProducerRecord(self.target, record.value, record.key)

    def seen(self) -> Counter[int]:
        """How often a read_committed reader finds each number in the target; waits for a last record."""
        partitions = [TopicPartition(self.target, index) for index in range(PARTITIONS)]
        with Producer(settings_for(self.bootstrap)) as producer:
            for tp in partitions:
                producer.send(self.target, b"-1", partition=tp.partition)
        found: Counter[int] = Counter()
        with consumer_of(self.bootstrap, isolation_level="read_committed") as consumer:
            consumer.assign(partitions)
            while found[-1] < PARTITIONS:
                found.update(int(record.value or b"") for record in read(consumer, 1))
        del found[-1]
        return found


@pytest.fixture
def job(bootstrap: str, name: Callable[[str], str], admin: Admin) -> Job:
    return Job(bootstrap, name, admin)


def until_done(job: Job, consumer: Consumer, seen: set[bytes]) -> Callable[[Record], ProducerRecord]:
    """Copies, and ends the processing when every record of the source was seen."""

    def fn(record: Record) -> ProducerRecord:
        assert record.value is not None
        seen.add(record.value)
        if len(seen) == COUNT:
            consumer.wakeup()
        return job.copy(record)

    return fn


ONCE = Counter(dict.fromkeys(range(COUNT), 1))


def test_every_record_is_processed_once(job: Job) -> None:
    with job.consumer() as consumer, job.producer("a") as producer:
        assert process(consumer, producer, until_done(job, consumer, set()), max_records=30) == COUNT
    assert job.seen() == ONCE


def test_a_function_may_give_nothing_or_several(job: Job) -> None:
    seen: set[bytes] = set()
    with job.consumer() as consumer, job.producer("a") as producer:
        note = until_done(job, consumer, seen)

        def fn(record: Record) -> list[ProducerRecord] | None:
            result = note(record)
            return [result, result] if int(record.value or b"") % 2 == 0 else None

        process(consumer, producer, fn)
    assert job.seen() == Counter({number: 2 for number in range(0, COUNT, 2)})


def test_after_a_crash_another_goes_on_where_the_last_commit_was(job: Job) -> None:
    calls = 0

    def fail(record: Record) -> ProducerRecord:
        nonlocal calls
        calls += 1
        if calls == 75:
            raise Crash
        return job.copy(record)

    with job.consumer() as consumer, job.producer("a") as producer:
        with pytest.raises(Crash):
            process(consumer, producer, fail, max_records=20)
        # The same consumer may go on: it stands before the records that were aborted.
        calls = 60
        with pytest.raises(Crash):
            process(consumer, producer, fail, max_records=20)
    last = consumer_of(job.bootstrap, group_id=job.group, enable_auto_commit=False)
    with last:
        left = COUNT - sum(
            at.offset
            for at in last.committed(*(TopicPartition(job.source, n) for n in range(PARTITIONS))).values()
        )
    assert 0 < left < COUNT
    with (
        job.consumer() as consumer,
        job.producer("a") as producer,
    ):
        remaining = left

        def rest(record: Record) -> ProducerRecord:
            nonlocal remaining
            remaining -= 1
            if remaining == 0:
                consumer.wakeup()
            return job.copy(record)

        assert process(consumer, producer, rest) == left
    assert job.seen() == ONCE


def test_a_zombie_writes_nothing(job: Job) -> None:
    with job.consumer() as consumer, job.producer("a") as zombie, job.producer("a") as successor:

        def fn(record: Record) -> ProducerRecord:
            successor.init_transactions()
            return job.copy(record)

        with pytest.raises(ProducerFenced):
            process(consumer, zombie, fn, max_records=10)
        assert process(consumer, successor, until_done(job, consumer, set())) == COUNT
    assert job.seen() == ONCE


def test_two_members_share_the_work_and_a_rebalance_in_between_doubles_nothing(job: Job) -> None:
    seen: set[bytes] = set()
    members: list[Consumer] = []
    failures: list[BaseException] = []

    def fn(record: Record) -> ProducerRecord:
        assert record.value is not None
        seen.add(record.value)
        if len(seen) == COUNT:
            for member in members:
                member.wakeup()
        return job.copy(record)

    def work(name: str, consumer: Consumer) -> None:
        try:
            with job.producer(name) as producer:
                process(consumer, producer, fn, max_records=5)
        except BaseException as error:
            failures.append(error)
            raise

    with job.consumer() as first:
        members.append(first)
        one = threading.Thread(target=work, args=("a", first))
        one.start()
        with job.consumer() as second:
            members.append(second)
            two = threading.Thread(target=work, args=("b", second))
            two.start()
            one.join(30)
            for member in members:
                member.wakeup()
            two.join(30)
    assert failures == []
    # Whoever lost a partition in the middle of a transaction left its records to the next member.
    found = job.seen()
    assert max(found.values()) == 1
    with job.consumer() as rest, job.producer("c") as producer:
        while len(found) < COUNT:
            with producer.transaction(rest):
                for record in rest.poll(1):
                    producer.send(job.target, record.value, record.key)
            found = job.seen()
    assert found == ONCE


def test_what_no_repeat_mends_is_raised(job: Job, admin: Admin, name: Callable[[str], str]) -> None:
    small = name("small")
    admin.create_topic(small, 1, configs={"max.message.bytes": "200"})
    with job.consumer() as consumer, job.producer("a") as producer:
        with pytest.raises(TransactionAborted):
            process(consumer, producer, lambda record: ProducerRecord(small, b"x" * 1000), max_records=3)
        assert process(consumer, producer, until_done(job, consumer, set())) == COUNT


def test_a_consumer_that_reads_what_was_aborted_is_refused(job: Job) -> None:
    with (
        job.consumer(isolation_level="read_uncommitted") as consumer,
        job.producer("a") as producer,
        pytest.raises(Misuse, match=r"isolation\.level"),
    ):
        process(consumer, producer, job.copy)


def test_a_member_that_lost_its_partitions_in_the_middle_leaves_no_trace(job: Job) -> None:
    seen: set[bytes] = set()
    calls: Counter[bytes | None] = Counter()
    with job.consumer(max_poll_interval_ms=300) as slow, job.producer("a") as producer:
        copy = until_done(job, slow, seen)

        def fn(record: Record) -> ProducerRecord:
            if not calls:
                with job.consumer() as other:  # gets everything, as this one has not polled for too long
                    poll_until([other], lambda: len(other.assignment()) == PARTITIONS)
            calls[record.value] += 1
            # Nothing of the first transaction counts, so that all of them come once more.
            return copy(record) if max(calls.values()) > 1 else job.copy(record)

        assert process(slow, producer, fn, max_records=20) == COUNT
    assert job.seen() == ONCE
