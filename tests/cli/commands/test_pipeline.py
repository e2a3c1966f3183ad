"""`barnabas pipeline` by the real executable: good and bad input, JSON, signals, kill -9."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from barnabas.testing import Broker
from tests._kafka import free_ports
from tests.cli._command import EXECUTABLE, barnabas
from tests.cli.conftest import Tool
from tests.spark._standalone import standalone_cluster

RECORDS = 600
NOTHING_LISTENS = "127.0.0.1:1"


def write(folder: Path, text: str, name: str = "f.yaml") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def land(bootstrap: str, topic: str, folder: Path, more: str = "") -> str:
    return f"""\
name: lake
kind: land
bootstrap: {bootstrap}
source: {{topic: {topic}, schema: id BIGINT, options: {{maxOffsetsPerTrigger: 50}}}}
sink: {{parquet: {folder}/lake}}
trigger: 0s
{more}"""


class TestFiles:
    def test_a_starter_is_written_and_is_valid(self, tool: Tool, tmp_path: Path) -> None:
        path = str(tmp_path / "lake.yaml")
        assert tool("pipeline", "new", "land", path).ok().out.startswith(f"wrote {path}")
        again = tool("pipeline", "new", "land", path)
        assert (again.code, again.err) == (1, f"barnabas: {path} is there already; --force replaces it\n")
        shown = tool("pipeline", "validate", "--offline", "--json", path).ok().json
        assert [(each["name"], each["kind"]) for each in shown] == [("orders-lake", "land")]

    def test_a_starter_goes_to_stdout(self, tool: Tool) -> None:
        assert "kind: transform" in tool("pipeline", "new", "transform").ok().out

    def test_validate_asks_the_brokers(self, tool: Tool, tmp_path: Path, bootstrap: str, topic: str) -> None:
        path = write(tmp_path, land(bootstrap, topic, tmp_path))
        lines = tool("pipeline", "validate", path).ok().lines
        assert lines[0].split() == ["PIPELINE", "KIND", "READS", "WRITES"]
        assert lines[1].split() == ["lake", "land", topic, f"{tmp_path}/lake"]

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            (("kind: land", "kind: lend"), "f.yaml:2: kind must be land, transform, mirror or replay"),
            (("trigger: 0s", "triger: 0s"), "f.yaml:6: triger is not known; did you mean trigger?"),
            (("sink: ", "sink "), "f.yaml:"),
        ],
    )
    def test_a_wrong_file_is_one_sentence(
        self, tool: Tool, tmp_path: Path, bootstrap: str, topic: str, change: tuple[str, str], text: str
    ) -> None:
        path = write(tmp_path, land(bootstrap, topic, tmp_path).replace(*change))
        for command in ("validate", "run", "status"):
            done = tool("pipeline", command, path)
            assert (done.code, done.out) == (1, "")
            assert done.err.startswith(f"barnabas: {tmp_path}/{text}")
            assert done.err.count("\n") == 1

    def test_a_topic_that_is_not_there_is_named(self, tool: Tool, tmp_path: Path, bootstrap: str) -> None:
        path = write(tmp_path, land(bootstrap, "nosuch", tmp_path))
        for command in ("validate", "run"):
            done = tool("pipeline", command, path)
            assert done.code == 1
            assert done.err == (
                f"barnabas: there is no topic nosuch at {bootstrap}; create it, or mend the name\n"
            )

    def test_status_of_one_that_never_ran(
        self, tool: Tool, tmp_path: Path, bootstrap: str, topic: str
    ) -> None:
        path = write(tmp_path, land(bootstrap, topic, tmp_path))
        (row,) = tool("pipeline", "status", "--json", path).ok().json
        assert (row["part"], row["state"]) == ("lake", "never ran")
        assert "never ran" in tool("pipeline", "status", path).ok().out

    def test_a_checkpoint_in_use_is_said(
        self, tool: Tool, tmp_path: Path, bootstrap: str, topic: str
    ) -> None:
        import fcntl

        path = write(tmp_path, land(bootstrap, topic, tmp_path))
        folder = tmp_path / ".barnabas" / "f" / "lake"
        folder.mkdir(parents=True)
        with (folder / ".barnabas.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = tool("pipeline", "run", path)
        assert (done.code, done.err.count("\n")) == (1, 1)
        assert "is in use by another process; stop it first" in done.err


@pytest.mark.slow
class TestBadSurroundings:
    def test_a_broker_that_is_away_is_one_sentence(self, tmp_path: Path) -> None:
        path = write(tmp_path, land(NOTHING_LISTENS, "orders", tmp_path))
        done = barnabas("pipeline", "run", path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            "barnabas: no broker could be reached:\n  127.0.0.1:1: connect: Connection refused\n"
        )

    def test_a_checkpoint_that_cannot_be_written_is_one_sentence(
        self, tmp_path: Path, bootstrap: str, topic: str
    ) -> None:
        path = write(tmp_path, land(bootstrap, topic, tmp_path))
        (tmp_path / "file").touch()
        done = barnabas("pipeline", "run", path, "--checkpoint", str(tmp_path / "file"))
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert done.stderr.startswith(
            f"barnabas: the checkpoint {tmp_path / 'file'}/lake cannot be written: "
        )

    def test_no_java_is_one_sentence(self, tmp_path: Path, bootstrap: str, topic: str) -> None:
        path = write(tmp_path, land(bootstrap, topic, tmp_path))
        done = barnabas("pipeline", "run", path, env={"JAVA_HOME": str(tmp_path)})
        assert done.returncode == 1
        assert done.stderr.startswith(f"barnabas: JAVA_HOME is {tmp_path}, where no bin/java is")
        assert done.stderr.count("\n") == 1


def fill(bootstrap: str, topic: str, numbers: range) -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number in numbers:
            producer.send(topic, json.dumps({"id": number}).encode(), key=b"k%d" % number)


def committed(bootstrap: str, topic: str) -> list[Any]:
    """The committed documents of a topic."""
    settings = {"bootstrap.servers": bootstrap, "isolation.level": "read_committed"}
    with Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False}) as consumer:
        partitions = [TopicPartition(topic, each) for each in range(len(consumer.partitions_for(topic)))]
        consumer.assign(partitions)
        ends = consumer.end_offsets(*partitions)
        found: list[Any] = []
        while any(consumer.position(each) < ends[each] for each in partitions):
            found += [json.loads(record.value or b"null") for record in consumer.poll(0.2)]
    return found


def landed(folder: Path) -> list[int]:
    table = pyarrow.dataset.dataset(folder / "lake", format="parquet", partitioning="hive").to_table()
    found: list[int] = table["id"].to_pylist()
    return sorted(found)


class Running:
    """A run of the executable whose documents are read as they come."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [EXECUTABLE, "pipeline", "run", "--json", "--conf", "spark.driver.memory=600m", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = self._process.pid

    def documents(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield json.loads(line)

    def wait_for(self, *wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Reads on until each condition was met by a document."""
        left = list(wanted)
        for document in self.documents():
            left = [each for each in left if not each(document)]
            if not left:
                return
        raise AssertionError(f"it ended: {self._process.communicate()[1]}")

    def children(self) -> list[int]:
        """The processes of its session, but itself."""
        found = subprocess.run(["ps", "-o", "pid=", "-s", str(self.pid)], capture_output=True, text=True)
        return [int(word) for word in found.stdout.split() if int(word) != self.pid]

    def leaves_nothing(self) -> bool:
        """Whether its processes end with it; those of Python notice a moment later that their JVM is gone."""
        until = time.monotonic() + 60
        while self.children():
            if time.monotonic() > until:
                return False
            time.sleep(0.1)
        return True

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self._process.wait()

    def end(self, number: int, *, group: bool = False) -> tuple[int, str]:
        (os.killpg if group else os.kill)(self.pid, number)
        _, err = self._process.communicate(timeout=120)
        return self._process.returncode, err

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.communicate()


def reached(part: str, batch: int) -> Callable[[dict[str, Any]], bool]:
    return lambda each: each.get("part") == part and (each.get("batch_id") or -1) >= batch


def caught_up(part: str) -> Callable[[dict[str, Any]], bool]:
    return lambda each: each.get("part") == part and each.get("lag_messages") == 0


def both(bootstrap: str, topic: str, folder: Path) -> str:
    """A landing and a copy through SQL, in one file."""
    return f"""\
bootstrap: {bootstrap}
pipelines:
- name: lake
  kind: land
  source: {{topic: {topic}, schema: id BIGINT, options: {{maxOffsetsPerTrigger: 50}}}}
  sink: {{parquet: {folder}/lake, file_size: 1mb}}
  trigger: 0s
- name: double
  kind: transform
  source: {{topic: {topic}, view: numbers, schema: id BIGINT, options: {{maxOffsetsPerTrigger: 50}}}}
  sql: SELECT id * 2 AS id FROM numbers
  sink: {{topic: {topic}-double}}
"""


def check_kills(folder: Path, bootstrap: str, topic: str, rounds: int) -> None:
    """Kills the driver between its batches, lets it catch up and stops it: every row is there once."""
    path = write(folder, both(bootstrap, topic, folder))
    fill(bootstrap, topic, range(RECORDS))
    for number in range(rounds):
        with Running(path) as running:
            running.wait_for(reached("lake", 2 * number + 1), reached("double", 2 * number + 1))
            running.kill()
    with Running(path) as last:
        last.wait_for(caught_up("lake"), caught_up("double"))
        assert last.children()
        # Ctrl-C reaches every process of the terminal.
        assert last.end(signal.SIGINT, group=True) == (130, "")
        assert last.leaves_nothing()
    assert landed(folder) == list(range(RECORDS))
    found = sorted(each["id"] for each in committed(bootstrap, f"{topic}-double"))
    assert found == [2 * each for each in range(RECORDS)]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_rows_are_exact_after_kill_9_and_ctrl_c_leaves_no_process(
    tmp_path: Path, bootstrap: str, topic: str
) -> None:
    check_kills(tmp_path, bootstrap, topic, rounds=1)
    # What is left says where it stands.
    done = barnabas("pipeline", "status", "--json", str(tmp_path / "f.yaml"))
    rows = {row["part"]: row for row in json.loads(done.stdout)}
    assert {part: row["state"] for part, row in rows.items()} == {"lake": "stopped", "double": "stopped"}
    assert rows["lake"]["lag_messages"] == 0


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_rows_are_exact_on_a_standalone_cluster_whose_broker_restarts(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    settings = {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    bootstrap, data = f"127.0.0.1:{port}", str(tmp_path / "data")
    path = write(tmp_path, both(bootstrap, "orders", tmp_path))
    on_this_machine = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=600m"]
    with standalone_cluster(tmp_path) as master, Broker(settings, data_dir=data) as broker:
        broker.create_topic("orders", 2)
        fill(bootstrap, "orders", range(RECORDS))
        running = Running(path, "--master", master, *on_this_machine)
        with running:
            running.wait_for(reached("lake", 1), reached("double", 1))
            broker.stop()
            running.wait_for(lambda each: each.get("state") == "waiting")
            broker.start()
            running.wait_for(caught_up("lake"), caught_up("double"))
            assert running.end(signal.SIGTERM) == (0, "")
            assert running.leaves_nothing()
        assert landed(tmp_path) == list(range(RECORDS))
        found = sorted(each["id"] for each in committed(bootstrap, "orders-double"))
        assert found == [2 * each for each in range(RECORDS)]


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_rows_are_exact_after_many_kills(tmp_path: Path, bootstrap: str, topic: str) -> None:
    check_kills(tmp_path, bootstrap, topic, rounds=5)
