"""Kafka Streams with processing.guarantee=exactly_once_v2: words counted exactly, whatever is killed."""

import collections
import itertools
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests._kafka import QUICK_JVM, KafkaMissing, cache_folder, die_with_parent, only_one, streams_jars
from tests.conformance._servers import Server, make_server
from tests.conformance._setup import ClientMissing, _run
from tests.conformance._transactions import DRIVERS, SETTINGS, Scene

pytestmark = pytest.mark.timeout(900)
SOURCE = DRIVERS / "WordCount.java"
WORDS = [f"word{number}" for number in range(20)]
LINES = 300
WORDS_PER_LINE = 3
PARTITIONS = 2
PATIENCE_S = 120


def command() -> list[str]:
    """How the word count is run, compiled once a version of it.  Raises ClientMissing."""
    if shutil.which("javac") is None:
        raise ClientMissing("Kafka Streams needs javac, which is not installed")
    try:
        classpath = f"{streams_jars()}/*"
    except KafkaMissing as missing:
        raise ClientMissing(str(missing)) from missing
    with only_one("word-count"):
        folder = cache_folder() / "word-count"
        folder.mkdir(exist_ok=True)
        mark = folder / SOURCE.name
        if not mark.exists() or mark.read_text() != SOURCE.read_text():
            _run(["javac", "-cp", classpath, "-d", str(folder), str(SOURCE)], folder, "the word count")
            mark.write_text(SOURCE.read_text())
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return ["java", *QUICK_JVM, quiet, "-cp", f"{folder}:{classpath}", "WordCount"]


class App:
    """An instance of the word count, which can be killed and goes on with its folder."""

    def __init__(self, start: list[str], folder: Path) -> None:
        self._command = [*start, str(folder)]
        self._log = folder.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=log, stderr=log, preexec_fn=die_with_parent
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process = None

    @property
    def text(self) -> str:
        return self._log.read_text(errors="replace")[-3000:] if self._log.exists() else ""


class Counts:
    """What a reader of committed records has seen so far of the target: the counts of each word, in order."""

    def __init__(self, server: Server, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": server.bootstrap_servers,
                "group.id": "auditor",
                "isolation.level": "read_committed",
                "log_level": 0,
                "reconnect.backoff.max.ms": 200,
            }
        )
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        self.of: dict[str, list[int]] = collections.defaultdict(list)

    @property
    def total(self) -> int:
        return sum(map(len, self.of.values()))

    def read_until(self, total: int, apps: list[App]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while self.total < total:
            said = "\n".join(app.text for app in apps)
            assert time.monotonic() < deadline, f"{self.total} of {total} words were counted: {said}"
            self.poll(0.2)

    def poll(self, timeout_s: float) -> None:
        for message in self._consumer.consume(500, timeout_s):
            if (error := message.error()) is not None:
                if not error.retriable():
                    raise KafkaException(error)
                continue
            self.of[(message.key() or b"").decode()].append(int(message.value() or b"0"))

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def server(kind: str) -> Iterator[Server]:
    made = make_server(kind, SETTINGS)
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def start(server: Server) -> list[str]:
    try:
        return [*command(), server.bootstrap_servers]
    except ClientMissing as missing:
        pytest.skip(str(missing))


def lines(count: int, chance: random.Random) -> list[str]:
    return [" ".join(chance.choices(WORDS, k=WORDS_PER_LINE)) for _ in range(count)]


def write(server: Server, topic: str, texts: list[str]) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, "log_level": 0})
    for text, partition in zip(texts, itertools.cycle(range(PARTITIONS)), strict=False):
        producer.produce(topic, text, partition=partition)
    assert producer.flush(30) == 0


def run(server: Server, start: list[str], folder: Path, *, kills: int, apps: int, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    scene = Scene(server, None)  # type: ignore[arg-type]  # no client is needed for a topic
    source, target = scene.topic(PARTITIONS), scene.topic(PARTITIONS)
    running = [App([*start, f"app-{source}", source, target], folder / f"app{n}") for n in range(apps)]
    counts, written = Counts(server, target), collections.Counter[str]()
    try:
        for app in running:
            app.start()
        for _ in range(kills + 1):
            texts = lines(LINES, chance)
            written.update(word for text in texts for word in text.split())
            write(server, source, texts)
            counts.read_until(written.total() - LINES * WORDS_PER_LINE * 2 // 3, running)
            victim = chance.choice([*running, None]) if kills > 1 else running[0]
            if victim is not None:
                victim.kill()
                victim.start()
            else:
                server.kill()
                server.start()
        counts.read_until(written.total(), running)
        counts.poll(1)
        wanted = {word: list(range(1, count + 1)) for word, count in written.items()}
        assert dict(counts.of) == wanted, "every word was counted once, in order"
    finally:
        counts.close()
        for app in running:
            app.kill()


def test_words_are_counted_exactly_over_a_kill(server: Server, start: list[str], tmp_path: Path) -> None:
    run(server, start, tmp_path, kills=0, apps=1, seed=random.randrange(2**32))


@pytest.mark.soak
def test_words_are_counted_exactly_over_many_kills(server: Server, start: list[str], tmp_path: Path) -> None:
    run(server, start, tmp_path, kills=12, apps=2, seed=random.randrange(2**32))
