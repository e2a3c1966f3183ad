"""Compaction and retention under transactions: readers of committed data see the same before and after."""

import random

import pytest

from barnabas.testing import Broker
from tests.broker._calls import READ_COMMITTED, list_offset, now_ms, partition_of
from tests.broker._transactions import TransactionalProducer, committed_records, committed_values
from tests.broker._wire import WireClient, until
from tests.broker.conftest import StartBroker

LATEST = -1
V1, V2 = 1, 2
ROUNDS = 6
KEYS = [b"a", b"b", b"c"]
OFTEN = {
    "log.cleaner.backoff.ms": "20",
    "log.retention.check.interval.ms": "20",
    "log.cleaner.delete.retention.ms": "0",
}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0",
    "max.compaction.lag.ms": "1",
    "delete.retention.ms": "0",
}


def roll(broker: Broker, topic: str = "t") -> None:
    """What is written so far may be compacted or deleted."""

    async def work() -> None:
        partition_of(broker, topic).log.roll(now_ms())

    broker.run(work())


def segment_count(broker: Broker, topic: str = "t") -> int:
    async def work() -> int:
        return len(partition_of(broker, topic).log.segment_starts())

    return broker.run(work())


@pytest.fixture
def broker(start_broker: StartBroker) -> Broker:
    return start_broker(OFTEN)


def last_values(client: WireClient, topic: str = "t") -> dict[bytes, bytes]:
    records = committed_records(client, topic)
    return {key: value for key, value in records if key is not None}


class TestCompaction:
    def test_keeps_the_last_committed_value_of_every_key(self, broker: Broker) -> None:
        broker.create_topic("t", config=COMPACTED)
        with WireClient(broker.bootstrap_servers) as client:
            producer, slow = TransactionalProducer(client), TransactionalProducer(client)
            for number in range(ROUNDS):
                for key in KEYS:
                    assert producer.add("t") == [0]
                    assert producer.produce("t", b"%d" % number, key=key) == 0
                    producer.commit()
                    assert producer.add("t") == [0]
                    assert producer.produce("t", b"aborted", key=key) == 0
                    producer.abort()
                roll(broker)
            expected = dict.fromkeys(KEYS, b"%d" % (ROUNDS - 1))
            assert last_values(client) == expected
            # From here on a transaction is open, above which nothing may be cleaned.
            assert slow.add("t") == [0]
            assert slow.produce("t", b"open", key=KEYS[0]) == 0
            roll(broker)
            until(lambda: len(committed_records(client, "t")) == len(KEYS))
            assert last_values(client) == expected
            slow.commit()
            assert last_values(client) == {**expected, KEYS[0]: b"open"}

    def test_an_open_transaction_that_is_aborted_later_leaves_the_old_value(self, broker: Broker) -> None:
        broker.create_topic("t", config=COMPACTED)
        with WireClient(broker.bootstrap_servers) as client:
            producer, slow = TransactionalProducer(client), TransactionalProducer(client)
            assert producer.add("t") == [0]
            assert producer.produce("t", b"kept", key=b"a") == 0
            producer.commit()
            assert slow.add("t") == [0]
            assert slow.produce("t", b"gone", key=b"a") == 0
            for number in range(ROUNDS):
                assert producer.add("t") == [0]
                assert producer.produce("t", b"%d" % number, key=b"b") == 0
                producer.commit()
            roll(broker)
            slow.abort()
            roll(broker)
            until(lambda: len(committed_records(client, "t")) == 2)
            assert last_values(client) == {b"a": b"kept", b"b": b"%d" % (ROUNDS - 1)}


class TestCompactionAtRandom:
    """The same transactions into a compacted topic and into one that is left alone."""

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(3))
    def test_readers_of_committed_data_find_the_same_values_in_both(
        self, start_broker: StartBroker, seed: int
    ) -> None:
        chance = random.Random(seed)
        broker = start_broker(OFTEN)
        broker.create_topic("t", config=COMPACTED)
        broker.create_topic("whole")
        with WireClient(broker.bootstrap_servers) as client:
            producers = [Writer(client, version) for version in (V1, V1, V2, V2)]
            for number in range(60):
                chance.choice(producers).write(chance.choice(KEYS), b"%d" % number)
                if chance.random() < 0.6:
                    chance.choice(producers).end(commit=chance.random() < 0.6)
                if chance.random() < 0.15:
                    roll(broker)
                if number % 10 == 0:
                    assert last_values(client) == last_values(client, "whole")
            for producer in producers:
                assert last_values(client) == last_values(client, "whole")
                producer.end(commit=chance.random() < 0.5)
            expected = last_values(client, "whole")
            for _ in range(2):
                roll(broker)
            until(lambda: len(committed_records(client, "t")) == len(expected))
            assert last_values(client) == expected
        broker.stop()
        broker.start()
        with WireClient(broker.bootstrap_servers) as client:
            assert last_values(client) == last_values(client, "whole") == expected


class Writer:
    """A producer that writes every record to both topics, by the rules of one transaction.version."""

    def __init__(self, client: WireClient, version: int) -> None:
        self._producer = TransactionalProducer(client)
        self._version = version
        self._is_open = False

    def write(self, key: bytes, value: bytes) -> None:
        for topic in ("t", "whole"):
            if self._version == V1:
                assert self._producer.add(topic) == [0]
            produce_version = 9 if self._version == V1 else 12
            assert self._producer.produce(topic, value, key=key, version=produce_version) == 0
        self._is_open = True

    def end(self, *, commit: bool) -> None:
        if self._is_open:
            self._is_open = False
            assert self._producer.end(commit=commit, version=3 if self._version == V1 else 5) == 0
            if self._version == V2:
                self._producer.begin_epoch(self._producer.epoch + 1)


class TestRetention:
    def test_an_aborted_transaction_stays_aborted_when_its_beginning_is_gone(self, broker: Broker) -> None:
        broker.create_topic("t")
        with WireClient(broker.bootstrap_servers) as client:
            producer, slow = TransactionalProducer(client), TransactionalProducer(client)
            slow.send("t", b"gone 1")
            producer.send("t", b"old")
            producer.commit()
            roll(broker)
            assert slow.produce("t", b"gone 2") == 0
            producer.send("t", b"new")
            producer.commit()
            roll(broker)
            slow.abort()
            producer.send("t", b"newest")
            producer.commit()
            assert committed_values(client, "t") == [b"old", b"new", b"newest"]

            async def cut() -> None:
                partition = partition_of(broker, "t")
                partition.delete_records_before(partition.log.segment_starts()[1])

            broker.run(cut())
            until(lambda: segment_count(broker) == 2)
            assert committed_values(client, "t") == [b"new", b"newest"]

    def test_what_an_open_transaction_wrote_before_the_log_start_does_not_hold_readers_back(
        self, broker: Broker
    ) -> None:
        broker.create_topic("t")
        with WireClient(broker.bootstrap_servers) as client:
            slow, producer = TransactionalProducer(client), TransactionalProducer(client)
            slow.send("t", b"deleted")
            roll(broker)
            producer.send("t", b"new")
            producer.commit()

            async def cut() -> None:
                partition = partition_of(broker, "t")
                partition.delete_records_before(partition.log.segment_starts()[1])

            broker.run(cut())
            slow.abort()
            assert committed_values(client, "t") == [b"new"]
            bound = list_offset(client, "t", LATEST, isolation=READ_COMMITTED).offset
            assert bound == list_offset(client, "t", LATEST).offset
