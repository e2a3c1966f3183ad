"""Consumers under faults: cut and stalled connections, restarts, and a group whose members come and die.

What must hold: a consumer alone sees every record once, in order.  A group sees every record at least once,
and at no time is an offset committed below which a record was not processed.
"""

import contextlib
import random
import threading
import time

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.errors import KafkaError
from barnabas.testing.fault_proxy import FaultProxy
from tests.client._consumers import consumer_of
from tests.client._faulty import FaultyBroker, faulty_broker
from tests.client._records import produce

PARTITIONS = 6
LIMIT_S = 60.0
BROKER = {"group.min.session.timeout.ms": "100", "offsets.topic.num.partitions": "1"}


def fill(
    broker: FaultyBroker, topic: str, chunks: int, *, partitions: int = PARTITIONS, size: int = 50
) -> int:
    """Writes `chunks` batches of `size` records to each partition; the result is how many records that is."""
    for chunk in range(chunks):
        for partition in range(partitions):
            values = [b"%d" % (chunk * size + n) for n in range(size)]
            produce(broker.bootstrap_servers, topic, values, partition=partition)
    return chunks * partitions * size


def disturb(proxy: FaultProxy, chance: random.Random) -> None:
    match chance.randrange(5):
        case 0:
            proxy.cut()
        case 1:
            proxy.reset()
        case 2:
            proxy.stall()
            time.sleep(chance.random() * 0.05)
            proxy.resume()
        case 3:
            proxy.split(chance.randrange(100, 5000))
        case _:
            proxy.split(64 * 1024)


def read_under_faults(broker: FaultyBroker, topic: str, count: int, seed: int) -> None:
    """Reads alone, with a fault every few polls, and checks order and completeness."""
    chance = random.Random(seed)
    expected = dict.fromkeys(range(PARTITIONS), 0)
    seen = 0
    settings = {"max_poll_records": 100, "max_partition_fetch_bytes": 3000, "request_timeout_ms": 2000}
    with consumer_of(broker.bootstrap_servers, **settings) as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        deadline = time.monotonic() + LIMIT_S
        while seen < count:
            assert time.monotonic() < deadline, f"seed {seed}: only {seen} of {count} records came"
            for record in consumer.poll(0.5):
                assert record.offset == expected[record.partition], f"seed {seed}: out of order"
                assert record.value == b"%d" % record.offset
                expected[record.partition] += 1
                seen += 1
            if chance.random() < 0.3:
                disturb(broker.proxy, chance)
        broker.proxy.split(64 * 1024)
        assert consumer.poll(0.1) == [], "nothing comes twice"


@pytest.mark.slow
def test_a_consumer_alone_sees_every_record_once_in_order(topic: str) -> None:
    with faulty_broker(BROKER) as broker:
        make_topic(broker, topic)
        read_under_faults(broker, topic, fill(broker, topic, 4), seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_a_consumer_alone_sees_every_record_once_for_long(topic: str, seed: int) -> None:
    with faulty_broker(BROKER) as broker:
        make_topic(broker, topic)
        read_under_faults(broker, topic, fill(broker, topic, 40), seed=seed)


def make_topic(broker: FaultyBroker, topic: str) -> None:
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.create_topic(topic, PARTITIONS)


class Processed:
    """What the group has processed, and whether commits stayed behind it."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self._lock = threading.Lock()
        self._done: dict[int, set[int]] = {number: set() for number in range(PARTITIONS)}

    def add(self, partition: int, offset: int) -> None:
        with self._lock:
            self._done[partition].add(offset)

    def count(self) -> int:
        with self._lock:
            return sum(map(len, self._done.values()))

    def check_commits(self, committed: dict[int, int]) -> None:
        """Every record below a committed offset was processed before it was committed."""
        with self._lock:
            for partition, offset in committed.items():
                missing = set(range(offset)) - self._done[partition]
                assert not missing, (
                    f"partition {partition}: {offset} is committed, {sorted(missing)[:5]} missing"
                )


class Member:
    """A member on a thread of its own, until it is closed or dies without a word."""

    def __init__(
        self, broker: FaultyBroker, group: str, processed: Processed, assignor: str, auto: bool
    ) -> None:
        self._processed = processed
        self._auto = auto
        self._end = threading.Event()
        self._dies = False
        self.failure: BaseException | None = None
        self._consumer = consumer_of(
            broker.bootstrap_servers,
            group_id=group,
            partition_assignment_strategy=assignor,
            session_timeout_ms=500,
            heartbeat_interval_ms=50,
            max_poll_records=20,
            enable_auto_commit=auto,
            auto_commit_interval_ms=20,
            request_timeout_ms=2000,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._consumer.subscribe(self._processed.topic)
            while not self._end.is_set():
                for record in self._consumer.poll(0.05):
                    self._processed.add(record.partition, record.offset)
                if not self._auto:
                    with contextlib.suppress(KafkaError):
                        self._consumer.commit(timeout=1)
            if self._dies:  # as by kill -9: no commit, and the group is not told
                self._consumer._thread.call(self._consumer._core.close(0, leave=False))
                self._consumer._thread.stop()
            else:
                self._consumer.close(5)
        except BaseException as error:
            self.failure = error
            self._consumer._thread.stop()

    def end(self, *, dies: bool) -> None:
        self._dies = dies
        self._end.set()
        self._consumer.wakeup()
        self._thread.join(30)
        assert not self._thread.is_alive(), "the member did not end"
        if self.failure is not None:
            raise self.failure


def committed_by(broker: FaultyBroker, group: str, topic: str) -> dict[int, int]:
    with consumer_of(broker.bootstrap_servers, group_id=group) as looker:
        found = looker.committed(*(TopicPartition(topic, number) for number in range(PARTITIONS)), timeout=20)
        return {tp.partition: at.offset for tp, at in found.items()}


def live_through_chaos(topic: str, group: str, *, assignor: str, auto: bool, seed: int, steps: int) -> None:
    chance = random.Random(seed)
    with faulty_broker(BROKER) as broker:
        make_topic(broker, topic)
        processed = Processed(topic)
        members = [Member(broker, group, processed, assignor, auto) for _ in range(3)]
        written = 0
        try:
            for _ in range(steps):
                written += fill(broker, topic, 1)
                time.sleep(chance.random() * 0.3)
                processed.check_commits(committed_by(broker, group, topic))
                members.pop(chance.randrange(len(members))).end(dies=chance.random() < 0.5)
                if chance.random() < 0.3:
                    broker.proxy.cut()
                members.append(Member(broker, group, processed, assignor, auto))
            deadline = time.monotonic() + LIMIT_S
            while processed.count() < written:
                assert time.monotonic() < deadline, f"seed {seed}: {processed.count()} of {written} processed"
                time.sleep(0.02)
        finally:
            for member in members:
                member.end(dies=False)
        committed = committed_by(broker, group, topic)
        processed.check_commits(committed)
        assert sum(committed.values()) == written, "the last to leave committed everything"


@pytest.mark.slow
@pytest.mark.parametrize(("assignor", "auto"), [("range", True), ("cooperative-sticky", False)])
def test_a_group_that_comes_and_dies_loses_nothing(topic: str, group: str, assignor: str, auto: bool) -> None:
    live_through_chaos(topic, group, assignor=assignor, auto=auto, seed=3, steps=4)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("assignor", ["range", "sticky", "cooperative-sticky"])
@pytest.mark.parametrize("auto", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_a_group_that_comes_and_dies_loses_nothing_for_long(
    topic: str, group: str, assignor: str, auto: bool, seed: int
) -> None:
    live_through_chaos(topic, group, assignor=assignor, auto=auto, seed=seed, steps=30)


@pytest.mark.slow
def test_a_broker_that_restarts_under_a_group_is_read_on(topic: str, group: str) -> None:
    with faulty_broker(BROKER) as broker:
        make_topic(broker, topic)
        processed = Processed(topic)
        member = Member(broker, group, processed, "range", True)
        written = fill(broker, topic, 1)
        broker.restart()
        written += fill(broker, topic, 1)
        deadline = time.monotonic() + LIMIT_S
        while processed.count() < written:
            assert time.monotonic() < deadline, f"{processed.count()} of {written} processed"
            time.sleep(0.02)
        member.end(dies=False)
        committed = committed_by(broker, group, topic)
        processed.check_commits(committed)
        assert sum(committed.values()) == written
