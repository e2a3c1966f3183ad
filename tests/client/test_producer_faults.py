"""A producer under faults loses nothing, doubles nothing and keeps the order of every partition."""

import random
import tempfile
import threading
from pathlib import Path

import pytest

from barnabas.client.producer import Producer
from tests.client._faulty import FaultyBroker, faulty_broker, read_all
from tests.client._kit import settings_for
from tests.conformance._servers import BarnabasServer

PARTITIONS = 4


class Faults:
    """Does one harm after the other to a broker's connections, from a seed, until it is told to stop."""

    def __init__(self, broker: FaultyBroker, seed: int, *, restarts: bool) -> None:
        self._broker = broker
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._restarts = restarts
        self._thread = threading.Thread(target=self._run)
        self._error: BaseException | None = None
        self.count = 0

    def __enter__(self) -> "Faults":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._broker.proxy.heal()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._random.uniform(0, 0.02)):
                self._harm()
                self.count += 1
                self._stop.wait(self._random.uniform(0, 0.05))
                self._broker.proxy.heal()
        except BaseException as error:
            self._error = error

    def _harm(self) -> None:
        proxy, chance = self._broker.proxy, self._random
        match chance.choice(["cut", "reset", "stall", "split", "delay", "bytes", "refuse", "restart"]):
            case "cut":
                proxy.cut()
            case "reset":
                proxy.reset()
            case "stall":
                proxy.stall()
                self._stop.wait(chance.choice([0.02, 0.1, 0.4]))
            case "split":
                proxy.split(chance.choice([50, 500, 5_000]))
            case "delay":
                proxy.delay(chance.choice([1, 4]))
            case "bytes":
                proxy.cut_after(chance.randrange(1, 60_000), reset=chance.random() < 0.5)
            case "refuse":
                proxy.refuse()
                proxy.cut()
            case "restart" if self._restarts and chance.random() < 0.3:
                self._broker.restart()


def value(number: int) -> bytes:
    return b"%09d" % number + b"x" * 40


def run(count: int, seed: int, *, restarts: bool = True, codec: str = "none") -> int:
    """Sends `count` records under faults, looks for each of them; how many harms were done."""
    with faulty_broker() as broker:
        broker.broker.create_topic("t", PARTITIONS)
        settings = settings_for(
            broker.bootstrap_servers,
            **{
                "request.timeout.ms": 300,
                "linger.ms": 1,
                "batch.size": 4_000,
                "buffer.memory": 100_000,  # a small one, so that sending keeps the pace of the faults
                "compression.type": codec,
                "bootstrap.timeout.ms": 10_000,
            },
        )
        with Producer(settings) as producer:
            with Faults(broker, seed, restarts=restarts) as faults:
                futures = [
                    producer.send("t", value(number), partition=number % PARTITIONS)
                    for number in range(count)
                ]
                producer.flush(100)
            offsets = [future.result(0).offset for future in futures]
        for partition in range(PARTITIONS):
            # After a restart a broker may remember that it has a batch and not where: -1.
            for place, offset in enumerate(offsets[partition::PARTITIONS]):
                assert offset in (place, -1)
        found = read_all(broker.direct, "t", PARTITIONS, count, timeout_s=60)
        for partition in range(PARTITIONS):
            assert found[partition] == [value(number) for number in range(partition, count, PARTITIONS)]
        return faults.count


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "codec"), [(1, "none"), (2, "lz4")])
def test_tens_of_thousands_of_records_through_every_fault(seed: int, codec: str) -> None:
    assert run(100_000, seed, codec=codec) > 5


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_million_records_through_every_fault() -> None:
    assert run(1_000_000, 5) > 50


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(100, 120))
def test_other_seeds(seed: int) -> None:
    run(60_000, seed, codec=random.Random(seed).choice(["none", "gzip", "snappy", "lz4", "zstd"]))


@pytest.mark.slow
def test_a_broker_that_restarts_in_the_middle_is_waited_for() -> None:
    with faulty_broker() as broker:
        broker.broker.create_topic("t", 2)
        with Producer(settings_for(broker.bootstrap_servers, **{"bootstrap.timeout.ms": 5_000})) as producer:
            futures = [producer.send("t", value(number), partition=number % 2) for number in range(1_000)]
            broker.restart()
            futures += [
                producer.send("t", value(number), partition=number % 2) for number in range(1_000, 2_000)
            ]
            assert [future.result(20).offset for future in futures] == [
                number // 2 for number in range(2_000)
            ]
        assert read_all(broker.direct, "t", 2, 2_000)[0] == [value(number) for number in range(0, 2_000, 2)]


@pytest.mark.slow
def test_a_broker_that_is_killed_in_the_middle_loses_nothing_that_was_acknowledged() -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = BarnabasServer({"num.partitions": "1"}, data_dir=Path(folder))
        server.start()
        try:
            settings = settings_for(server.bootstrap_servers, **{"request.timeout.ms": 2_000})
            with Producer(settings) as producer:
                producer.send("t", value(0)).result(20)
                futures = [producer.send("t", value(number)) for number in range(1, 5_000)]
                server.kill()
                server.start()
                futures += [producer.send("t", value(number)) for number in range(5_000, 6_000)]
                producer.flush(60)
                assert [future.result().offset for future in futures] == list(range(1, 6_000))
            assert read_all(server.bootstrap_servers, "t", 1, 6_000)[0] == [
                value(number) for number in range(6_000)
            ]
        finally:
            server.close()
