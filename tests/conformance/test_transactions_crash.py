"""kill -9 of the broker and of transactional producers: every transfer is whole or not there at all."""

import itertools
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from barnabas.client.admin import Admin
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.broker._calls import batch, produce_request
from tests.broker._transactions import NOT_NOW, TransactionalProducer, committed_values
from tests.broker._wire import WireClient, until
from tests.conformance._client import ROOT
from tests.conformance._servers import BarnabasServer, make_server
from tests.conformance._transactions import SETTINGS, Scene

pytestmark = pytest.mark.timeout(900)
WORKERS = 3
ACKED_BETWEEN_KILLS = 30
HEIR = "heir"


class Worker:
    """A process that transfers, and the names it was told are committed."""

    def __init__(self, server: BarnabasServer, topic: str, number: int, name: str = "worker") -> None:
        self._command = [sys.executable, "-m", "tests.conformance.drivers.transfers"]
        self._command += [server.bootstrap_servers, topic, f"worker-{number}"]
        self._name = f"{name}-{number}"
        self._lives = itertools.count()
        self.acked: list[str] = []
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [*self._command, f"{self._name}-{next(self._lives)}"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):  # the last one may be cut by the kill
                self.acked.append(line.strip())

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)
        self._reader.join(10)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def restart(self) -> None:
        self.kill()
        self._start()


@pytest.fixture
def server() -> Iterator[BarnabasServer]:
    made = make_server("barnabas", SETTINGS)
    assert isinstance(made, BarnabasServer)
    try:
        made.start()
        yield made
    finally:
        made.close()


def committed(server: BarnabasServer, topic: str) -> list[tuple[str, str]]:
    """(side, name) of everything that a reader of committed data finds, to the end of both partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": "auditor",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    found: list[tuple[str, str]] = []
    ends: set[int] = set()
    deadline = time.monotonic() + 60
    consumer.assign([TopicPartition(topic, partition, 0) for partition in (0, 1)])
    try:
        while len(ends) < 2:
            assert time.monotonic() < deadline, "the end of the log is reached"
            for message in consumer.consume(1000, 0.2):
                if error := message.error():
                    if error.name() != "_PARTITION_EOF":
                        raise KafkaException(error)
                    ends.add(message.partition() or 0)
                else:
                    found.append(((message.key() or b"").decode(), (message.value() or b"").decode()))
    finally:
        consumer.close()
    return found


def run(server: BarnabasServer, kills: int, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    topic = Scene(server, None).topic(partitions=2)  # type: ignore[arg-type]  # no client is needed for a topic
    workers = [Worker(server, topic, number) for number in range(WORKERS)]
    try:
        for _ in range(kills):
            wanted = sum(len(worker.acked) for worker in workers) + ACKED_BETWEEN_KILLS
            deadline = time.monotonic() + 60
            while sum(len(worker.acked) for worker in workers) < wanted:
                assert time.monotonic() < deadline, "transfers go on"
                time.sleep(0.005)
            if chance.random() < 0.6:
                server.kill()
                server.start()
            else:
                chance.choice(workers).restart()
    finally:
        for worker in workers:
            worker.kill()
    # Whoever takes the ids over aborts what the dead left open.
    heirs = [Worker(server, topic, number, HEIR) for number in range(WORKERS)]
    deadline = time.monotonic() + 60
    while not all(heir.acked for heir in heirs):
        assert time.monotonic() < deadline, "the heirs transfer"
        time.sleep(0.005)
    for heir in heirs:
        heir.kill()
    server.kill()
    server.start()
    acked = [name for worker in workers for name in worker.acked]
    # The heirs were killed as well; what they left open stands behind everything of the workers.
    sides = Counter(each for each in committed(server, topic) if not each[1].startswith(HEIR))
    assert set(sides.values()) <= {1}, "nothing is doubled"
    taken = {name for side, name in sides if side == "from"}
    given = {name for side, name in sides if side == "to"}
    assert taken == given, "no transfer is half"
    assert set(acked) <= taken, "what was answered is there"


class Sent(NamedTuple):
    """A request that may go again, and where it was written."""

    request: ProduceRequest
    version: int

    def offset(self, client: WireClient) -> int:
        (topic,) = client.call(self.request, self.version, ProduceResponse).responses
        (part,) = topic.partition_responses
        assert part.error_code == 0, ErrorCode(part.error_code)
        return part.base_offset


def written(client: WireClient, producer: TransactionalProducer, topic: str, value: bytes, v2: bool) -> Sent:
    """One record of an open transaction, the first one since it began."""
    if not v2:
        assert producer.add(topic) == [0]
    sequence = 0 if v2 else int(value)
    records = batch(
        value,
        producer_id=producer.producer_id,
        epoch=producer.epoch,
        sequence=sequence,
        transactional=True,
    )
    request = produce_request(topic, records)
    request.transactional_id = producer.transactional_id
    return Sent(request, 12 if v2 else 9)


@pytest.mark.parametrize("segment_ms", ["1", "604800000"], ids=["rolling", "one segment"])
@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
def test_a_batch_that_goes_again_after_a_kill_is_where_it_was(
    server: BarnabasServer, v2: bool, segment_ms: str
) -> None:
    with Admin(bootstrap_servers=server.bootstrap_servers) as admin:
        admin.create_topic("again", 1, configs={"segment.ms": segment_ms})
    with WireClient(server.bootstrap_servers) as client:
        producer = TransactionalProducer(client, "again")
    for number in range(3):
        with WireClient(server.bootstrap_servers) as client:
            producer.client = client
            sent = written(client, producer, "again", b"%d" % number, v2)
            offset = sent.offset(client)
        server.kill()
        server.start()
        with WireClient(server.bootstrap_servers) as client:
            producer.client = client
            assert sent.offset(client) == offset
            until(lambda: producer.end(commit=True, version=5 if v2 else 3) not in NOT_NOW)
            if v2:
                producer.begin_epoch(producer.epoch + 1)
    with WireClient(server.bootstrap_servers) as client:
        assert committed_values(client, "again") == [b"0", b"1", b"2"]


def test_money_is_neither_lost_nor_made(server: BarnabasServer) -> None:
    run(server, kills=4, seed=random.randrange(2**32))


@pytest.mark.soak
def test_money_is_neither_lost_nor_made_for_long(server: BarnabasServer) -> None:
    run(server, kills=200, seed=random.randrange(2**32))
