"""Apache Kafka for tests and benchmarks: its jars, its server, its command-line tools.

The jars come from Maven Central by `mvn` into a cache folder that outlives the run ($BARNABAS_TEST_CACHE,
else ~/.cache/barnabas-tests).  `why_missing()` is the reason to skip, None when there is none.
Every wait has a deadline, and every process started here is ended by `close`.
"""

import contextlib
import ctypes
import fcntl
import functools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

VERSION = "4.3.1"

# Tools and small servers live for seconds: a second compiler and parallel collectors do not pay.
QUICK_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx512m")
# What Kafka's own start script gives a server.
SERVER_JVM = (
    "-Xms1G",
    "-Xmx1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
PR_SET_PDEATHSIG = 1
CLUSTER_ID = "barnabas-tests-cluster"[:22]

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>barnabas</groupId><artifactId>jars</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>
"""
ARTIFACTS = (
    ("org.apache.kafka", "kafka_2.13", VERSION),
    ("org.apache.kafka", "kafka-tools", VERSION),
    ("org.slf4j", "slf4j-simple", "1.7.36"),
)
STREAMS_ARTIFACTS = (
    ("org.apache.kafka", "kafka-streams", VERSION),
    ("org.slf4j", "slf4j-simple", "1.7.36"),
)


class KafkaMissing(Exception):
    """Apache Kafka cannot be had on this machine; the text is the reason."""


def cache_folder() -> Path:
    folder = Path(os.environ.get("BARNABAS_TEST_CACHE") or Path.home() / ".cache" / "barnabas-tests")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def only_one(name: str) -> Iterator[None]:
    """Hold a lock of the cache folder, so that test workers prepare a thing once and in turn."""
    with (cache_folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@functools.cache
def jars() -> Path:
    """The folder with Kafka's jars; fetched at first use."""
    return fetched("kafka", ARTIFACTS)


@functools.cache
def streams_jars() -> Path:
    """The folder with the jars of Kafka Streams and all they need; fetched at first use."""
    return fetched("kafka-streams", STREAMS_ARTIFACTS)


def fetched(name: str, artifacts: Sequence[tuple[str, str, str]]) -> Path:
    """The folder with these artifacts and what they need at run time, from Maven Central."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise KafkaMissing(f"Apache Kafka needs {program}, which is not installed")
    folder = cache_folder() / f"{name}-{VERSION}"
    with only_one(name):
        if (folder / "complete").exists():
            return folder / "jars"
        folder.mkdir(exist_ok=True)
        (folder / "pom.xml").write_text(
            POM.format(
                dependencies="".join(
                    f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
                    f"<version>{version}</version></dependency>"
                    for group, artifact, version in artifacts
                )
            )
        )
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]
        try:
            done = subprocess.run(
                [*command, "-DoutputDirectory=jars"],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=300,
            )
        except subprocess.TimeoutExpired as slow:
            raise KafkaMissing(f"Maven Central did not give {name} {VERSION} in {slow.timeout} s") from slow
        if done.returncode != 0:
            raise KafkaMissing(f"Maven Central did not give {name} {VERSION}: {done.stdout[-300:].strip()}")
        (folder / "complete").touch()
    return folder / "jars"


@functools.cache
def why_missing() -> str | None:
    """Why Kafka cannot be used here, or None."""
    try:
        jars()
    except KafkaMissing as missing:
        return str(missing)
    return None


def classpath() -> str:
    return f"{jars()}/*"


def java(*arguments: str, jvm: Sequence[str] = QUICK_JVM) -> list[str]:
    """The command line that runs a main class (or a .java file) with Kafka's jars."""
    # Tools write what is asked of them to stdout; their log must not stand in between.
    logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return ["java", *jvm, logging, "-cp", classpath(), *arguments]


def run_tool(
    main_class: str, *arguments: str, stdin: str = "", timeout_s: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command-line tools to its end, e.g. `org.apache.kafka.tools.TopicCommand`."""
    return subprocess.run(
        java(main_class, *arguments), input=stdin, capture_output=True, text=True, timeout=timeout_s
    )


def die_with_parent() -> None:
    """Runs in a child before its program: a test run that is killed leaves no server behind (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now; somebody may by the time they are used."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path, timeout_s: float) -> None:
    """Return once the port accepts; raise with the end of the log when the process ends or time is up."""
    deadline = time.monotonic() + timeout_s
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        ended = process.poll()
        if ended is not None or time.monotonic() > deadline:
            what = "did not listen in time" if ended is None else f"ended with {ended}"
            raise RuntimeError(f"the server {what}: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.02)


class KafkaServer:
    """One Kafka node (KRaft, broker and controller in one) on a free port of localhost.

    `stop` and `kill` leave the data, so that `start` goes on with it on the same port; `close` removes it.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        jvm: Sequence[str] = QUICK_JVM,
        folder: Path | None = None,
    ) -> None:
        self._jvm = tuple(jvm)
        self._own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="kafka-"))
        self.port, self._controller_port = free_ports(2)
        self.bootstrap_servers = f"127.0.0.1:{self.port}"
        self.data_dir = self.folder / "data"
        self.log = self.folder / "server.log"
        self._properties = self.folder / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        self._write_properties(settings or {})
        self._format()

    def _write_properties(self, settings: Mapping[str, str]) -> None:
        values = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller_port}",
            "log.dirs": str(self.data_dir),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "5",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "5",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **settings,
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in values.items()))

    def _format(self) -> None:
        done = run_tool("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._properties))
        if done.returncode != 0:
            raise RuntimeError(f"the storage was not formatted: {done.stdout}{done.stderr}")

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server was started"
        return self._process.pid

    def start(self, timeout_s: float = 60) -> None:
        assert self._process is None, "one process at a time"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                java("kafka.Kafka", str(self._properties), jvm=self._jvm),
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )
        try:
            wait_for_port(self.port, self._process, self.log, timeout_s)
        except BaseException:
            self.kill()
            raise

    def stop(self, timeout_s: float = 30) -> None:
        """End it as SIGTERM does; by force when that takes too long."""
        self._end(signal.SIGTERM, timeout_s)

    def kill(self) -> None:
        self._end(signal.SIGKILL, 10)

    def _end(self, number: signal.Signals, timeout_s: float) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._process = None

    def close(self) -> None:
        self.kill()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
