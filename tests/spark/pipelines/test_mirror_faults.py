"""The mirror under Spark while its drivers, Python workers and brokers die: every record once."""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

import pytest

from barnabas.client.admin import Admin
from barnabas.spark.pipelines.progress import Progress
from barnabas.spark.pipelines.spec import Pipeline
from barnabas.spark.pipelines.supervisor import Backoff, Supervisor
from barnabas.testing import Broker
from tests._kafka import die_with_parent
from tests.cli._command import EXECUTABLE
from tests.conformance._servers import BarnabasServer
from tests.spark._sink_process import SinkProcess, eventually, kill_one, python_workers_of, wait_until
from tests.spark.pipelines._mirror import contents, end_of, fill, fresh, plan, rows, settings, transact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2,4]"
PARTITIONS = 3
PAUSE_MAX_S = 4.0
WAYS = ("auto", "translated")


class Victim(Enum):
    """What dies by kill -9."""

    DRIVER = "the driver with its JVM"
    PYTHON_WORKER = "a Python worker"
    SOURCE = "the source"
    TARGET = "the target"


class MirrorProcess(SinkProcess):
    """`barnabas pipeline run` of a mirror, with everything that it starts."""

    def __init__(self, command: Sequence[str], log: IO[str]) -> None:
        self._process = subprocess.Popen(
            command,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )


def copied_records(target: Broker | str, topic: str, partition: int = 0) -> int:
    """How many committed records there are; none before the mirror has made the topic."""
    with Admin(settings(target)) as admin:
        if topic not in [listed.name for listed in admin.list_topics()]:
            return 0
    return len(rows(target, topic, partition)) if end_of(target, topic, partition) else 0


class Mirroring:
    """A topic that grows, a mirror that is started again whenever it was killed; also a context manager."""

    def __init__(self, folder: Path, offsets: str, seed: int) -> None:
        self._folder, self._offsets = folder, offsets
        self._chance = random.Random(seed)
        self._stack = ExitStack()
        self._servers = {Victim.SOURCE: BarnabasServer(), Victim.TARGET: BarnabasServer()}
        self._driver: MirrorProcess | None = None
        self.topic = fresh("faults")
        self.total = 0

    def __enter__(self) -> Self:
        for server in self._servers.values():
            self._stack.callback(server.close)
            server.start()
        with Admin(settings(self.source)) as admin:
            admin.create_topic(self.topic, PARTITIONS, 1)
        self.grow()  # so that a mirror that has caught up is one that runs
        (self._folder / "mirror.yaml").write_text(
            f"""
name: faults
kind: mirror
source: {{bootstrap: "{self.source}"}}
target: {{bootstrap: "{self.target}"}}
topics: ["{self.topic}"]
offsets: {self._offsets}
sync_interval: 1s
"""
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        log = self._folder / "mirror.log"
        if error is not None and log.exists():
            print(log.read_text(errors="replace")[-6_000:])
        self._stack.close()

    @property
    def source(self) -> str:
        return self._servers[Victim.SOURCE].bootstrap_servers

    @property
    def target(self) -> str:
        return self._servers[Victim.TARGET].bootstrap_servers

    def kill(self, victim: Victim) -> None:
        """Lets the mirror catch up, then the source grow, and kills after a random while of that."""
        driver = self._running()
        wait_until(self._has_caught_up, driver)
        with ThreadPoolExecutor(1) as pool:
            growing = pool.submit(self.grow)
            time.sleep(self._chance.uniform(0, PAUSE_MAX_S))
            match victim:
                case Victim.DRIVER:
                    driver.kill()
                    self._driver = None
                case Victim.PYTHON_WORKER:
                    kill_one(driver.python_workers, self._chance.randrange(8))
                case Victim.SOURCE | Victim.TARGET:
                    self._servers[victim].kill()
                    self._servers[victim].start()
            growing.result()

    def grow(self) -> None:
        for _ in range(4):
            for partition in range(PARTITIONS):
                count = self._chance.randrange(1, 800)
                fill(self.source, self.topic, count, partition=partition, first=self.total, batch_size=3_000)
                self.total += count

    def abort_and_commit(self) -> None:
        """A gap and a transaction between the records."""
        for commit in (False, True):
            values = [b"t%d" % (self.total + number) for number in range(20)]
            transact(self.source, self.topic, values, commit=commit, partition=self.total % PARTITIONS)
        self.total += 20

    def finish(self) -> int:
        """Lets the mirror copy the rest; every record must be there once.  How many there are."""
        wait_until(self._has_caught_up, self._running())
        for partition in range(PARTITIONS):
            original, copied = (
                rows(self.source, self.topic, partition),
                rows(self.target, self.topic, partition),
            )
            assert contents(copied) == contents(original)
            if self._offsets == "auto":
                assert copied == original
        return self.total

    def _has_caught_up(self) -> bool:
        time.sleep(0.5)  # it reads everything
        return (
            sum(copied_records(self.target, self.topic, number) for number in range(PARTITIONS)) >= self.total
        )

    def _running(self) -> MirrorProcess:
        if self._driver is None:
            log = self._stack.enter_context((self._folder / "mirror.log").open("a"))
            command = [EXECUTABLE, "pipeline", "run", str(self._folder / "mirror.yaml"), "--json"]
            command += ["--master", MASTER, "--checkpoint", str(self._folder / "checkpoint")]
            self._driver = MirrorProcess(command, log)
            self._stack.callback(self._driver.kill)
        return self._driver


def die_at_random(folder: Path, offsets: str, seed: int, victims: Sequence[Victim], kills: int) -> None:
    chance = random.Random(seed)
    with Mirroring(folder, offsets, seed) as mirroring:
        for number in range(kills):
            began = time.monotonic()
            victim = chance.choice(victims)
            mirroring.kill(victim)
            mirroring.abort_and_commit()
            print(f"  kill {number}: {victim.value}, after {time.monotonic() - began:.1f} s", flush=True)
        print(f"{offsets}, seed {seed}: {mirroring.finish()} records once", flush=True)


@pytest.mark.soak
@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("offsets", WAYS)
def test_drivers_workers_and_brokers_die(tmp_path: Path, offsets: str, seed: int) -> None:
    victims = [Victim.DRIVER, Victim.PYTHON_WORKER, Victim.PYTHON_WORKER, Victim.SOURCE, Victim.TARGET]
    die_at_random(tmp_path, offsets, seed, victims, kills=7)


@pytest.mark.slow
@pytest.mark.timeout(300)  # with the start of a session on a machine that is busy
@pytest.mark.parametrize("offsets", WAYS)
def test_python_workers_die_under_a_running_mirror(
    spark: "SparkSession", source: Broker, target: Broker, tmp_path: Path, offsets: str
) -> None:
    """Those that copy are replaced by Spark; with the one that plans the query ends, and starts again."""
    topic, chance = fresh("workers"), random.Random(4)
    source.create_topic(topic)
    made = plan(source, target, topic, offsets=offsets, sync_interval_ms=200)
    pipeline = Pipeline(topic, "mirror", made, trigger_ms=100)
    supervisor = Supervisor([pipeline], checkpoint=str(tmp_path), spark=spark, backoff=Backoff(first_ms=100))
    stop, told = threading.Event(), list[Progress]()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(supervisor.run, stop, told.append)
        try:
            total = 0
            for _ in range(3):
                fill(source, topic, 300, first=total, batch_size=1_000)
                total += 300
                time.sleep(chance.uniform(0, 0.3))
                kill_one(lambda: python_workers_of(os.getpid()), chance.randrange(8))
            eventually(lambda: copied_records(target, topic) >= total, "the mirror does not get on")
        finally:
            stop.set()
            running.result(60)
    assert contents(rows(target, topic)) == contents(rows(source, topic))
