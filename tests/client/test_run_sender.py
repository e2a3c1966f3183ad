"""barnabas.client.run_sender: runs arrive in order and once; a failure stops what is behind it (R1, R2)."""

import asyncio
from collections.abc import Iterator

import pytest

from barnabas.client.admin import Admin
from barnabas.client.errors import BadAnswer, KafkaError
from barnabas.client.run_sender import RunSender
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.records.builder import build_batch
from barnabas.testing import Broker
from tests.client._faulty import FaultyBroker, faulty_broker
from tests.client._log_broker import TOPIC, LogBroker, Script

FAST = {
    "reconnect.backoff.ms": 10,
    "retry.backoff.ms": 10,
    "delivery.timeout.ms": 8_000,
    "request.timeout.ms": 4_000,
}


def at(offset: int, count: int = 3, size: int = 20) -> memoryview:
    return memoryview(build_batch([(1, b"k", bytes(size), ())] * count, base_offset=offset))


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    name = f"kept-{abs(hash(request.node.nodeid))}"
    broker.create_topic(name, 2, config={"barnabas.offsets.kept": "true"})
    return name


@pytest.fixture
def sender(broker: Broker) -> Iterator[RunSender]:
    with RunSender({"bootstrap.servers": broker.bootstrap_servers}) as made:
        yield made


class TestSending:
    def test_runs_keep_their_offsets(self, sender: RunSender, topic: str) -> None:
        assert sender.log_end(topic, 0) == 0
        sender.append(topic, 0, [at(5), at(8)], log_end=0)
        sender.append(topic, 0, [at(20)], log_end=11)
        sender.append(topic, 1, [at(0)], log_end=0)
        sender.flush()
        assert (sender.log_end(topic, 0), sender.log_end(topic, 1)) == (23, 3)

    def test_many_are_under_way_at_once(self, broker: Broker, topic: str) -> None:
        with RunSender({"bootstrap.servers": broker.bootstrap_servers}, bytes_under_way=50_000) as sender:
            for number in range(200):
                sender.append(topic, 0, [at(3 * number, size=1_000)], log_end=3 * number)
            sender.flush()
            assert sender.log_end(topic, 0) == 600

    def test_one_larger_than_the_limit_goes_alone(self, broker: Broker, topic: str) -> None:
        with RunSender({"bootstrap.servers": broker.bootstrap_servers}, bytes_under_way=10) as sender:
            sender.append(topic, 0, [at(0)], log_end=0)
            sender.append(topic, 0, [at(3)], log_end=3)
            sender.flush()

    def test_nothing_to_flush_is_flushed(self, sender: RunSender) -> None:
        sender.flush()


class TestFailing:
    def test_a_hole_is_refused_and_the_log_end_tells(self, sender: RunSender, topic: str) -> None:
        sender.append(topic, 0, [at(0)], log_end=0)
        sender.append(topic, 0, [at(9)], log_end=9)
        with pytest.raises(KafkaError, match="the run follows offset 9, the log ends at 3") as raised:
            sender.flush()
        assert raised.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        with pytest.raises(KafkaError):
            sender.append(topic, 0, [at(3)], log_end=3)
        assert sender.recover() is raised.value
        assert sender.recover() is None
        sender.append(topic, 0, [at(3)], log_end=3)
        sender.flush()
        assert sender.log_end(topic, 0) == 6

    def test_a_topic_that_is_not_there_is_named(self, sender: RunSender) -> None:
        sender.append("nowhere", 0, [at(0)], log_end=0)
        with pytest.raises(KafkaError, match="nowhere"):
            sender.flush()

    def test_an_ordinary_topic_takes_no_runs(self, broker: Broker, sender: RunSender) -> None:
        broker.create_topic("ordinary")
        sender.append("ordinary", 0, [at(0)], log_end=0)
        with pytest.raises(KafkaError, match="more than one batch"):
            sender.flush()


@pytest.mark.slow
def test_a_connection_that_breaks_loses_and_doubles_nothing() -> None:
    with faulty_broker() as faulty:
        _through(faulty)


def _through(faulty: FaultyBroker) -> None:
    settings = {"bootstrap.servers": faulty.bootstrap_servers, **FAST}
    with Admin({"bootstrap.servers": faulty.direct}) as admin:
        admin.create_topic("kept", 1, 1, configs={"barnabas.offsets.kept": "true"})
    with RunSender(settings) as sender:
        faulty.proxy.cut_after(60_000)
        breaks = 0
        for _ in range(100):
            try:
                end = sender.log_end("kept", 0)
                if end == 300:
                    break
                for first in range(end, 300, 3):
                    sender.append("kept", 0, [at(first, size=1_000)], log_end=first)
                sender.flush()
            except KafkaError:
                breaks += 1
                sender.recover()
        faulty.proxy.heal()
        assert sender.log_end("kept", 0) == 300
        assert breaks


def test_an_answer_that_says_nothing_is_a_failure_at_once() -> None:
    async def main() -> None:
        async with LogBroker(Script()) as broker:
            broker.responses[ApiKey.PRODUCE] = lambda _: ProduceResponse()

            def send() -> None:
                with RunSender({"bootstrap.servers": broker.address}) as sender:
                    sender.append(TOPIC, 0, [at(0)], log_end=0)
                    with pytest.raises(BadAnswer, match="t-0: the broker's answer leaves it out"):
                        sender.flush()

            await asyncio.to_thread(send)

    asyncio.run(main())
