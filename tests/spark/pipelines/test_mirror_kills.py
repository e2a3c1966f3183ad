"""The mirror without Spark under kill -9 at random, of itself and of either broker: every record once."""

import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from barnabas.client.admin import Admin
from barnabas.spark.pipelines.mirror import run_here
from barnabas.spark.pipelines.mirror_settings import MirrorPlan, names_of
from tests.cli._command import EXECUTABLE
from tests.conformance._servers import BarnabasServer
from tests.spark.pipelines._mirror import contents, fill, fresh, rows, transact

PARTITIONS = 3
WAYS = ("auto", "translated")


@pytest.fixture
def servers() -> Iterator[tuple[BarnabasServer, BarnabasServer]]:
    """A source and a target as processes that can be killed."""
    with ExitStack() as stack:
        made = BarnabasServer(), BarnabasServer()
        for server in made:
            stack.callback(server.close)
            server.start()
        yield made


class Run:
    """A topic that grows, a mirror that is killed, and the count at the end."""

    def __init__(
        self, servers: tuple[BarnabasServer, BarnabasServer], offsets: str, folder: Path, seed: int
    ) -> None:
        self.source, self.target = servers
        self.offsets = offsets
        self.folder = folder
        self.topic = fresh("kills")
        self.chance = random.Random(seed)
        self.total = 0
        with Admin({"bootstrap.servers": self.source.bootstrap_servers}) as admin:
            admin.create_topic(self.topic, PARTITIONS, 1)

    def grow(self) -> None:
        address = self.source.bootstrap_servers
        for partition in range(PARTITIONS):
            fill(address, self.topic, 2_000, partition=partition, first=self.total, batch_size=4_000)
            for commit in (True, False):
                values = [b"t%d" % (self.total + n) for n in range(20)]
                transact(address, self.topic, values, commit=commit, partition=partition)
        self.total += 2_000

    def command(self, *more: str) -> list[str]:
        return [
            EXECUTABLE, "pipeline", "mirror", "--from", self.source.bootstrap_servers,
            "--to", self.target.bootstrap_servers, "--topics", self.topic, "--offsets", self.offsets,
            "--num.streams", "2", "--sync-interval", "0.2", *more,
        ]  # fmt: skip

    def killed(
        self, least_s: float, most_s: float, *more: str, during: Callable[[], None] | None = None
    ) -> None:
        """Runs the mirror for a random time, then ends it and all it started with kill -9."""
        with subprocess.Popen(
            self.command(*more), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        ) as running:
            try:
                if during is not None:
                    during()
                running.wait(self.chance.uniform(least_s, most_s))
            except subprocess.TimeoutExpired:
                pass
            finally:
                if running.poll() is None:
                    os.killpg(running.pid, signal.SIGKILL)

    def check(self) -> None:
        """Copies the rest and compares every record."""
        made = MirrorPlan(
            {"bootstrap.servers": self.source.bootstrap_servers},
            {"bootstrap.servers": self.target.bootstrap_servers},
            names_of([self.topic]),
            group="",
            offsets="translated" if self.offsets == "translated" else "auto",
        )
        run_here(made, once=True)
        for partition in range(PARTITIONS):
            original = rows(self.source.bootstrap_servers, self.topic, partition)
            copied = rows(self.target.bootstrap_servers, self.topic, partition)
            assert len(copied) == len(original) == self.total + 20 * (self.total // 2_000)
            assert contents(copied) == contents(original)
            if self.offsets == "auto":
                assert copied == original


@pytest.mark.slow
@pytest.mark.parametrize("offsets", WAYS)
def test_two_kills_of_the_mirror(
    servers: tuple[BarnabasServer, BarnabasServer], tmp_path: Path, offsets: str
) -> None:
    run = Run(servers, offsets, tmp_path, seed=1)
    for _ in range(2):
        run.grow()
        run.killed(1.0, 2.2, "--here")
    run.check()


@pytest.mark.soak
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("offsets", WAYS)
def test_many_kills_of_the_mirror_and_of_brokers(
    servers: tuple[BarnabasServer, BarnabasServer], tmp_path: Path, offsets: str, seed: int
) -> None:
    run = Run(servers, offsets, tmp_path, seed)
    for _ in range(12):
        run.grow()
        victim = run.chance.choice([None, *servers])

        def kill_a_broker(victim: BarnabasServer | None = victim) -> None:
            if victim is not None:
                victim.kill()
                victim.start()

        run.killed(0.5, 2.5, "--here", during=kill_a_broker)
    run.check()
