"""The sink under Spark while drivers, executors, Python workers and brokers die: each row is there once."""

import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pytest

from barnabas.protocol.api import ApiKey
from tests.client._faulty import faulty_broker
from tests.conformance._servers import BarnabasServer
from tests.spark._kit import Topics
from tests.spark._sink_process import SinkProcess, eventually, kill_one, sink_process, wait_until
from tests.spark._slow_sink import SlowSource, batches_of
from tests.spark._standalone import standalone_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[2,8]"
SMALL_CLUSTER = "local-cluster[2,1,512]"
"""A standalone cluster whose master and two workers live in the driver; executors are processes."""
CLUSTER_SETTINGS = ("spark.driver.host=127.0.0.1", "spark.executor.cores=2")
STEP_ROWS = 600  # two batches of three tasks
PAUSE_MAX_S = 0.6
SPECULATION = (
    "spark.speculation=true",
    "spark.speculation.interval=100ms",
    "spark.speculation.quantile=0.5",
    "spark.speculation.multiplier=1.2",
    "spark.speculation.minTaskRuntime=100ms",
)
PARTITIONS = 3


class Victim(Enum):
    """What is killed, by kill -9 but for the last."""

    DRIVER = "the driver with its JVM"
    EXECUTOR = "an executor's JVM"
    PYTHON_WORKER = "a Python worker of an executor"
    BROKER = "the broker"
    BROKER_IN_PEACE = "the broker, which ends cleanly"


class Copying:
    """A topic that grows and a query that copies it, through every kill; also a context manager."""

    def __init__(self, folder: Path, seed: int, master: str = LOCAL, *more: str) -> None:
        self._folder = folder
        self._log = folder / "driver.log"
        self._chance = random.Random(seed)
        self._settings = [master, *more]
        self._server = BarnabasServer({"offsets.topic.num.partitions": "4"})
        self._driver: SinkProcess | None = None
        self._stack = ExitStack()
        self.total = 0

    def __enter__(self) -> Self:
        self._stack.callback(self._server.close)
        self._server.start()
        self.topics = self._stack.enter_context(Topics(self._server.bootstrap_servers))
        self.topics.create("source", PARTITIONS)
        self.topics.create("target", PARTITIONS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._log.exists():
            print(self._log.read_text(errors="replace")[-6000:])
        self._stack.close()

    def kill_in_a_transaction(self, victim: Victim) -> None:
        """Lets the query catch up, then the source grow, and kills when a task has its transaction open."""
        driver = self._running()
        wait_until(lambda: len(self.rows()) >= self.total, driver)
        self.grow()
        wait_until(self.has_open_transactions, driver)
        self._kill(victim, driver)

    def kill_at_random(self, victim: Victim) -> None:
        """Lets the source grow, and kills when a random part of it has arrived, after a random while."""
        driver = self._running()
        goal = self._written() + self._chance.randrange(STEP_ROWS)
        self.grow()
        wait_until(lambda: self._written() > goal, driver)
        time.sleep(self._chance.uniform(0, PAUSE_MAX_S))
        self._kill(victim, driver)

    def _kill(self, victim: Victim, driver: SinkProcess) -> None:
        choice = self._chance.randrange(8)
        match victim:
            case Victim.DRIVER:
                driver.kill()
                self._driver = None
            case Victim.EXECUTOR:
                kill_one(driver.executors, choice)
            case Victim.PYTHON_WORKER:
                kill_one(driver.python_workers, choice)
            case Victim.BROKER:
                self._server.kill()
                self._server.start()
            case Victim.BROKER_IN_PEACE:
                self._server.stop()
                self._server.start()

    def grow(self, count: int = STEP_ROWS) -> None:
        self.topics.fill("source", count, first=self.total)
        self.total += count

    def finish(self) -> None:
        """Lets the query copy the rest and end; every row must be there once."""
        driver = self._running()
        wait_until(lambda: len(self.rows()) >= self.total, driver)
        (self._folder / "stop").touch()
        assert driver.wait() == 0
        assert sorted(self.rows()) == sorted(b"v%d" % number for number in range(self.total))

    def rows(self) -> list[bytes]:
        found = self.topics.values("target", isolation="read_committed")
        return [value.rstrip(b".") for value in found]

    def has_open_transactions(self) -> bool:
        return bool(self.topics.admin.list_transactions(states=["Ongoing"]))

    def aborted(self) -> int:
        """How many rows were written in transactions that did not come to their end."""
        return len(self.topics.values("target")) - self.total

    def _written(self) -> int:
        return sum(self.topics.end_offsets("target"))

    def _running(self) -> SinkProcess:
        if self._driver is None:
            log = self._stack.enter_context(self._log.open("a"))
            arguments = [self._server.bootstrap_servers, "source", "target", str(self._folder)]
            self._driver = self._stack.enter_context(sink_process([*arguments, *self._settings], log))
        return self._driver


def kill_at_random(copying: Copying, victims: Sequence[Victim], kills: int, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(kills):
        began = time.monotonic()
        victim = chance.choice(victims)
        copying.kill_at_random(victim)
        print(f"  kill {number}: {victim.value}, after {time.monotonic() - began:.1f} s", flush=True)
    copying.finish()
    print(f"seed {seed}: {copying.total} rows once, {copying.aborted()} aborted", flush=True)


@pytest.mark.slow
@pytest.mark.parametrize(("losses", "attempts", "there"), [(1, 1, 0), (2**31, 2, 1)], ids=["one", "all"])
def test_a_commit_without_an_answer_is_repeated_or_found_by_the_next_attempt(
    spark: "SparkSession", tmp_path: Path, losses: int, attempts: int, there: int
) -> None:
    spark.dataSource.register(SlowSource)
    with faulty_broker() as broker, Topics(broker.direct) as topics:
        topics.create("source")
        topics.create("target", PARTITIONS)
        topics.fill("source", 100)
        broker.proxy.lose_answers(ApiKey.END_TXN, losses)
        common = {"kafka.bootstrap.servers": broker.bootstrap_servers, "kafka.max.block.ms": "3000"}
        rows = spark.readStream.format("barnabas").options(**common, subscribe="source")
        query = (
            rows.option("startingOffsets", "earliest")
            .load()
            .writeStream.format("slow-barnabas")
            .options(**common, topic="target", folder=str(tmp_path))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert broker.proxy.lost_answers >= 1
        found = topics.values("target", isolation="read_committed")
    assert sorted(found) == sorted(b"v%d" % number for number in range(100))
    assert batches_of(tmp_path) == [{"batch": 0, "tasks": 1, "rows": 100, "there": there}]
    assert len(list(tmp_path.glob("attempt-*"))) == attempts - 1


@pytest.mark.slow
def test_a_query_that_is_stopped_leaves_no_transaction_open(
    spark: "SparkSession", topics: Topics, name: Callable[[str], str], tmp_path: Path
) -> None:
    spark.dataSource.register(SlowSource)
    source, target = name("source"), name("target")
    topics.create(source)
    topics.create(target)
    topics.fill(source, 5000)
    common = {"kafka.bootstrap.servers": topics.bootstrap}
    rows = spark.readStream.format("barnabas").options(**common, subscribe=source, startingOffsets="earliest")
    query = (
        rows.load()
        .writeStream.format("slow-barnabas")
        .options(**common, topic=target, folder=str(tmp_path), pauseMs="200")
        .option("kafka.batch.size", "1024")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )

    def is_open() -> bool:
        found = topics.admin.list_transactions(states=["Ongoing"])
        return any(query.id in each.transactional_id for each in found)

    eventually(is_open, "no transaction began")
    query.stop()
    assert not is_open()
    assert topics.values(target, isolation="read_committed") == []


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_each_row_is_there_once_when_everything_is_killed_in_turn(tmp_path: Path) -> None:
    with Copying(tmp_path, 2, SMALL_CLUSTER, "pauseMs=30") as copying:
        for victim in (Victim.EXECUTOR, Victim.PYTHON_WORKER, Victim.BROKER, Victim.DRIVER):
            copying.kill_in_a_transaction(victim)
        # The driver's Python workers give up what they were at, though nobody is left to tell them.
        eventually(lambda: not copying.has_open_transactions(), "a transaction stays open")
        copying.finish()
        assert copying.aborted() > 0, "no kill met an open transaction"
        assert list(tmp_path.glob("attempt-*")), "no task was repeated"


@pytest.mark.soak
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seed", range(12))
def test_drivers_workers_and_brokers_that_die_lose_and_double_nothing(seed: int, tmp_path: Path) -> None:
    victims = [each for each in Victim if each is not Victim.EXECUTOR]
    with Copying(tmp_path, seed) as copying:
        kill_at_random(copying, victims, 8, seed)


@pytest.mark.soak
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seed", range(4))
def test_executors_of_a_standalone_cluster_that_die_lose_and_double_nothing(
    seed: int, tmp_path: Path
) -> None:
    with (
        standalone_cluster(tmp_path) as master,
        Copying(tmp_path, seed, master, *CLUSTER_SETTINGS) as copying,
    ):
        kill_at_random(copying, [*Victim, Victim.EXECUTOR, Victim.EXECUTOR], 8, seed)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("twin_pause_ms", [0, 400], ids=["quick twins", "slower twins"])
def test_speculation_on_a_cluster_writes_each_row_once(tmp_path: Path, twin_pause_ms: int) -> None:
    pauses = "pauseMs=300", "evenOnly=true", f"againPauseMs={twin_pause_ms}"
    with (
        standalone_cluster(tmp_path) as master,
        Copying(tmp_path, 0, master, *CLUSTER_SETTINGS, *SPECULATION, *pauses) as copying,
    ):
        copying.grow(900)
        copying.finish()
        twins = len(list(tmp_path.glob("attempt-*")))
        print(f"{twins} twins, {copying.aborted()} rows aborted, {batches_of(tmp_path)}", flush=True)
    assert twins, "the cluster did not speculate"
