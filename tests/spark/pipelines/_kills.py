"""A landing and a transform in one driver that is killed again and again, and what must be there then."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.cli._command import EXECUTABLE
from tests.spark._kit import Topics

LIMIT_S = 240.0
SCHEMA = "id BIGINT, amount DOUBLE"

PIPELINES = """
bootstrap: {bootstrap}
pipelines:
  - name: {topic}-lake
    kind: land
    source: {{topic: {topic}, schema: "{schema}", options: {{maxOffsetsPerTrigger: 150}}}}
    sink: {{parquet: "{place}/lake", partition_by: [day], file_size: 64kb}}
    sql: SELECT *, id % 3 AS day FROM {view}
    trigger: 100ms
  - name: {topic}-twice
    kind: transform
    source: {{topic: {topic}, schema: "{schema}", options: {{maxOffsetsPerTrigger: 150}}}}
    sql: SELECT id, amount * 2 AS amount FROM {view}
    sink: {{topic: {topic}-out, key: id}}
    trigger: 100ms
"""


class Killed:
    """Two pipelines over one topic that grows; their driver dies at random."""

    def __init__(self, topics: Topics, topic: str, place: str, folder: Path, seed: int, *more: str) -> None:
        """`place` is the folder or address of the table, `folder` a local one; `more` are options of run."""
        self.topics = topics
        self.topic = topic
        self.place = place
        self.chance = random.Random(seed)
        self.total = 0
        self._orphaned: set[int] = set()
        self._log = folder / "output"
        self._file = folder / "pipelines.yaml"
        self._more = [*more, "--log-file", str(folder / "spark.log"), "--json"]
        view = topic.replace("-", "_")
        self._file.write_text(
            PIPELINES.format(bootstrap=topics.bootstrap, topic=topic, view=view, place=place, schema=SCHEMA)
        )
        topics.create(topic, 3)

    def grow(self, count: int = 600) -> None:
        for number in range(self.total, self.total + count):
            value = json.dumps({"id": number, "amount": number / 2}).encode()
            self.topics.producer.send(self.topic, value, key=b"k%d" % (number % 5))
        self.topics.producer.flush()
        self.total += count

    @contextlib.contextmanager
    def running(self, *more: str) -> Iterator["subprocess.Popen[bytes]"]:
        """The pipelines, in a process group that is gone in the end."""
        command = [EXECUTABLE, "pipeline", "run", str(self._file), *self._more, *more]
        with (
            self._log.open("ab") as log,
            subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True) as process,
        ):
            try:
                yield process
            finally:
                if process.pid not in self._orphaned:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)

    def told(self) -> list[dict[str, object]]:
        """Everything that the runs told."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def wait_for(self, what: Callable[[dict[str, object]], bool], seen: int) -> bool:
        """Until something is told after the first `seen` documents; whether it was."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            if any(what(each) for each in self.told()[seen:]):
                return True
            time.sleep(0.1)
        return False

    def kill_once(self) -> str:
        """Runs until a batch is done, and a random time longer; then kills the driver, or one half of it."""
        seen = len(self.told())
        victim = self.chance.choice(["all", "python", "jvm"])
        with self.running() as process:
            moved = self.wait_for(lambda each: bool(each.get("rows_in")), seen)
            assert moved, f"no batch in {LIMIT_S} s: {self._log.read_text()[-2000:]}"
            time.sleep(self.chance.uniform(0.0, 6.0))
            if victim == "all":
                os.killpg(process.pid, signal.SIGKILL)
            elif victim == "python":
                # The JVM finds out, and ends by itself; the next driver may start before.
                self._orphaned.add(process.pid)
                process.kill()
            else:
                for child in children(process.pid):
                    os.kill(child, signal.SIGKILL)
                assert process.wait(60) == 1, "it says that the JVM is gone"
            process.wait(60)
        return victim

    def finish(self) -> None:
        """Takes the rest; by then nothing is left of drivers that lost their Python."""
        with self.running("--once") as process:
            code = process.wait(LIMIT_S)
        assert code == 0, self._log.read_text()[-3000:]
        left = [pid for pid in self._orphaned if is_left(pid)]
        for pid in left:
            os.killpg(pid, signal.SIGKILL)
        assert not left, "a JVM outlives its driver"

    def check(self, landed: list[int]) -> None:
        """Every row once, in the files and in the topic."""
        assert sorted(landed) == list(range(self.total))
        values = self.topics.values(f"{self.topic}-out", isolation="read_committed")
        made = sorted((each["id"], each["amount"]) for each in map(json.loads, values))
        assert made == [(number, float(number)) for number in range(self.total)]


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_left(group: int) -> bool:
    """Whether a process of a group is there."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
