"""The same things done with every release of PySpark that is supported: found, read, written, exactly once.

Each release runs in a process and a Python of its own; the broker is in this one.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.types import TopicPartition
from tests._docs import ADDRESS, blocks
from tests.conformance._setup import ClientMissing
from tests.spark._kit import Topics
from tests.spark._versions import ROOT, SESSIONS, Failed, VersionDriver, environment, interpreter

SHIP_DRIVER = Path(__file__).with_name("_ship_driver.py")

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", params=SESSIONS)
def kind(request: pytest.FixtureRequest) -> list[str]:
    """The release, and what else is said of the session."""
    chosen: str = request.param
    return chosen.split()


@pytest.fixture(scope="module")
def release(kind: list[str]) -> str:
    return kind[0]


@pytest.fixture(scope="module")
def has_limits(release: str) -> bool:
    return tuple(map(int, release.split(".")[:2])) >= (4, 2)


@pytest.fixture(scope="module")
def python(kind: list[str]) -> Path:
    try:
        return interpreter(*kind)
    except ClientMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def driver(
    python: Path, kind: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[VersionDriver]:
    log_file = tmp_path_factory.mktemp("driver") / "log"
    with log_file.open("w") as log, VersionDriver(python, kind[1:], log) as running:
        yield running


@pytest.fixture
def classic(kind: list[str]) -> None:
    """For what has nothing to do with Spark Connect."""
    if len(kind) > 1:
        pytest.skip("it is the same without Spark Connect")


class Copies:
    """A topic copied to another by queries on one checkpoint."""

    def __init__(self, driver: VersionDriver, topics: Topics, stem: str, folder: Path) -> None:
        self.driver, self.topics = driver, topics
        self.source, self.target = f"{stem}-in", f"{stem}-out"
        self.checkpoint = folder / "checkpoint"
        topics.create(self.source, 2)
        topics.create(self.target, 1)

    def run(self, trigger: str = "availableNow", /, **options: str) -> Any:
        """One run of the query; the rows of each batch."""
        return self.driver("copy", **self._request(trigger, options))

    def begin(self, driver: VersionDriver) -> None:
        """A run in another process, without end."""
        driver.begin("copy", **self._request("for ever", {}))

    def _request(self, trigger: str, options: dict[str, str]) -> dict[str, Any]:
        common = {"kafka.bootstrap.servers": self.topics.bootstrap}
        name, delivery = options.pop("name", None), options.pop("delivery", "exactly-once")
        return {
            "source": {**common, "subscribe": self.source, "startingOffsets": "earliest", **options},
            "sink": {**common, "topic": self.target, "delivery": delivery},
            "checkpoint": str(self.checkpoint),
            "trigger": trigger,
            "name": name,
        }

    def values(self) -> list[str]:
        return sorted(value.decode() for value in self.topics.values(self.target, isolation="read_committed"))

    def last(self, log: str) -> Path:
        """The newest entry of a log of the checkpoint."""
        return max((self.checkpoint / log).glob("[0-9]*"), key=lambda each: int(each.name))

    def forget_last_commit(self) -> None:
        """As if the driver had been killed when all tasks were done."""
        done = self.last("commits")
        done.with_name(f".{done.name}.crc").unlink(missing_ok=True)
        done.unlink()


@pytest.fixture
def copies(driver: VersionDriver, topics: Topics, topic: str, tmp_path: Path) -> Copies:
    return Copies(driver, topics, topic, tmp_path)


def numbered(*counts: int) -> list[str]:
    """v0, v1, …: so many, each once."""
    return sorted(f"v{number}" for number in range(sum(counts)))


def options_of(topics: Topics, topic: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic, **more}


class TestBatch:
    def test_this_is_the_release(self, driver: VersionDriver, release: str) -> None:
        assert driver("version") == release

    def test_every_column_and_headers_are_read(
        self, driver: VersionDriver, topics: Topics, topic: str
    ) -> None:
        topics.create(topic, 2, config={"retention.ms": "-1"})
        topics.fill(topic, 3, timestamp_ms=1_500, headers=[("h", b"1")])
        select = [
            "partition",
            "offset",
            "cast(key as string)",
            "cast(value as string)",
            "topic",
            "timestampType",
            "unix_millis(timestamp)",
            "headers[0].key",
            "cast(headers[0].value as string)",
        ]
        rows = driver("read", options=options_of(topics, topic, includeHeaders="true"), select=select)
        assert rows == [
            [0, 0, "k0", "v0", topic, 0, 1500, "h", "1"],
            [0, 1, "k2", "v2", topic, 0, 1500, "h", "1"],
            [1, 0, "k1", "v1", topic, 0, 1500, "h", "1"],
        ]

    def test_some_columns_of_a_range(self, driver: VersionDriver, topics: Topics, topic: str) -> None:
        topics.create(topic)
        topics.fill(topic, 9)
        options = options_of(topics, topic, columns="offset", endingOffsets=json.dumps({topic: {"0": 4}}))
        assert driver("read", options=options, select=["offset"]) == [[0], [1], [2], [3]]
        with pytest.raises(Failed):
            driver("read", options=options, select=["value"])

    def test_a_topic_without_records(self, driver: VersionDriver, topics: Topics, topic: str) -> None:
        topics.create(topic, 2)
        assert driver("read", options=options_of(topics, topic), select=["offset"]) == []

    def test_the_name_kafka(self, driver: VersionDriver, topics: Topics, topic: str) -> None:
        topics.create(topic)
        topics.fill(topic, 2)
        rows = driver("read", options=options_of(topics, topic), select=["offset"], format="kafka")
        assert rows == [[0], [1]]

    def test_rows_are_written(self, driver: VersionDriver, topics: Topics, topic: str) -> None:
        topics.create(topic)
        driver(
            "write",
            rows=[["a", "1", topic, 0], [None, "2", topic, 0]],
            schema="key string, value string, topic string, partition int",
            options={"kafka.bootstrap.servers": topics.bootstrap},
        )
        select = ["cast(value as string)", "cast(key as string)"]
        options = options_of(topics, topic, **{"kafka.isolation.level": "read_committed"})
        assert driver("read", options=options, select=select) == [["1", "a"], ["2", None]]

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"subscribe": "nowhere"}, "option subscribe: topic 'nowhere' does not exist"),
            (
                {"subscribe": "t", "subscibe": "t"},
                "option subscibe: there is no such option; did you mean subscribe?",
            ),
        ],
    )
    def test_what_is_wrong_is_one_sentence(
        self, driver: VersionDriver, topics: Topics, options: dict[str, str], sentence: str
    ) -> None:
        with pytest.raises(Failed) as failed:
            driver(
                "read",
                options={"kafka.bootstrap.servers": topics.bootstrap, **options},
                select=["offset"],
            )
        assert str(failed.value) == sentence


class TestStreams:
    def test_every_row_once_over_restarts_and_a_lost_commit(self, copies: Copies) -> None:
        copies.topics.fill(copies.source, 50)
        assert sum(copies.run()) == 50
        copies.topics.fill(copies.source, 30, first=50)
        assert sum(copies.run()) == 30
        copies.forget_last_commit()
        copies.run()
        assert copies.values() == numbered(50, 30)
        copies.topics.fill(copies.source, 20, first=80)
        assert sum(copies.run()) == 20
        assert copies.values() == numbered(50, 30, 20)

    def test_a_first_batch_that_was_not_committed(self, copies: Copies) -> None:
        copies.topics.fill(copies.source, 10)
        copies.run()
        copies.forget_last_commit()
        copies.topics.fill(copies.source, 5, first=10)
        copies.run("continuously")
        assert copies.values() == numbered(10, 5)

    def test_batches_as_records_come(self, copies: Copies) -> None:
        for count, first in ((20, 0), (10, 20)):
            copies.topics.fill(copies.source, count, first=first)
            copies.run("continuously")
        copies.forget_last_commit()
        copies.topics.fill(copies.source, 5, first=30)
        copies.run("continuously")
        assert copies.values() == numbered(20, 10, 5)

    def test_from_the_end_nothing_is_missed_after_the_start(self, copies: Copies) -> None:
        copies.topics.fill(copies.source, 10, first=1000)
        assert copies.run(startingOffsets="latest") == []
        copies.topics.fill(copies.source, 7)
        copies.run(startingOffsets="latest")
        copies.topics.fill(copies.source, 3, first=7)
        copies.run("continuously", startingOffsets="latest")
        assert copies.values() == numbered(7, 3)

    def test_the_first_batch_keeps_its_start_when_it_is_repeated(self, copies: Copies) -> None:
        copies.topics.fill(copies.source, 10, first=1000)
        copies.run(startingOffsets="latest")
        copies.forget_last_commit()
        copies.topics.fill(copies.source, 6)
        copies.run("continuously", startingOffsets="latest")
        assert copies.values() == numbered(6)

    def test_kill_minus_nine_of_everything(
        self, copies: Copies, kind: list[str], python: Path, tmp_path: Path
    ) -> None:
        sent = 0
        for wanted in (30, 90):
            with (tmp_path / "log").open("a") as log, VersionDriver(python, kind[1:], log) as victim:
                copies.begin(victim)
                while len(copies.values()) < wanted:
                    copies.topics.fill(copies.source, 7, first=sent)
                    sent += 7
                    time.sleep(0.05)
                victim.kill()
        copies.topics.fill(copies.source, 5, first=sent)
        copies.run("continuously")
        assert copies.values() == numbered(sent, 5)

    def test_partitions_that_come_later(self, copies: Copies) -> None:
        copies.topics.fill(copies.source, 4)
        copies.run()
        copies.topics.admin.create_partitions({copies.source: 3}).check()
        copies.topics.fill(copies.source, 6, first=4, partition=2)
        copies.run()
        assert copies.values() == numbered(4, 6)

    def test_headers_and_at_least_once(self, copies: Copies) -> None:
        copies.topics.fill(copies.source, 3, headers=[("h", b"1")])
        copies.run("once", delivery="at-least-once", includeHeaders="true")
        options = options_of(copies.topics, copies.target, includeHeaders="true")
        rows = copies.driver("read", options=options, select=["headers[0].key"])
        assert rows == [["h"]] * 3

    def test_limits_or_how_to_have_them(self, copies: Copies, has_limits: bool) -> None:
        copies.topics.fill(copies.source, 50)
        if has_limits:
            assert copies.run(maxOffsetsPerTrigger="20") == [20, 20, 10]
            assert copies.values() == numbered(50)
            return
        for option in ("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger"):
            with pytest.raises(Failed, match=f"^option {option}: .* or use PySpark 4.2 or newer$"):
                copies.run(**{option: "20"})
        assert copies.values() == []

    def test_limits_with_a_trigger_that_goes_on(self, copies: Copies) -> None:
        limits = {"trigger": "processingTime", "maxOffsetsPerTrigger": "20"}
        copies.topics.fill(copies.source, 50)
        assert copies.run("continuously", **limits) == [20, 20, 10]
        copies.forget_last_commit()
        copies.topics.fill(copies.source, 30, first=50)
        assert copies.run("continuously", **limits) == [10, 20, 10]
        assert copies.values() == numbered(50, 30)

    def test_spark_s_own_wrapper_of_available_now(self, copies: Copies, has_limits: bool) -> None:
        """A setting by which older releases ask before they say where the query stands."""
        copies.driver("conf", name="spark.sql.streaming.triggerAvailableNowWrapper.enabled", value="true")
        try:
            copies.topics.fill(copies.source, 10)
            copies.run()
            copies.topics.fill(copies.source, 5, first=10)
            if has_limits:
                copies.run()
            else:
                with pytest.raises(Failed, match="triggerAvailableNowWrapper"):
                    copies.run()
        finally:
            copies.driver("conf", name="spark.sql.streaming.triggerAvailableNowWrapper.enabled", value=None)
        copies.run()
        assert copies.values() == numbered(10, 5)

    def test_the_progress_group(self, copies: Copies, name: Callable[[str], str], has_limits: bool) -> None:
        copies.topics.fill(copies.source, 10)
        query = name("query")
        copies.run(name=query)
        copies.topics.fill(copies.source, 10, first=10)
        copies.run(name=query, queryName=query)
        told = copies.topics.admin.list_group_offsets(f"spark:{query}").succeeded
        # Older releases ask nothing after the only batch of a run, so it is told by the next one.
        expected = 10 if has_limits else 5
        assert {where: at.offset for where, at in told.items() if at} == {
            TopicPartition(copies.source, 0): expected,
            TopicPartition(copies.source, 1): expected,
        }

    def test_lost_offsets_are_named(self, copies: Copies) -> None:
        copies.topics.fill(copies.source, 10)
        copies.run()
        copies.topics.fill(copies.source, 10, first=10)
        where = TopicPartition(copies.source, 0)
        copies.topics.admin.delete_records({where: 8}).check()
        with pytest.raises(Failed, match=f"^offsets 5 to 7 of {copies.source}-0 are lost: "):
            copies.run()
        copies.run(failOnDataLoss="false")
        assert set(copies.values()) == {f"v{n}" for n in range(20)} - {"v10", "v12", "v14"}


@pytest.mark.usefixtures("classic")
class TestOurSession:
    """Last of all: it ends the plain session."""

    def test_streams_in_the_session_that_we_make(self, copies: Copies, tmp_path: Path) -> None:
        copies.driver("own_session", checkpoint=str(tmp_path / "checkpoint"))
        copies.topics.fill(copies.source, 20)
        copies.run()
        copies.forget_last_commit()
        copies.topics.fill(copies.source, 5, first=20)
        copies.run("continuously")
        assert copies.values() == numbered(20, 5)


@pytest.mark.usefixtures("classic")
def test_the_code_goes_to_workers_without_the_package(
    python: Path, topics: Topics, topic: str, tmp_path: Path
) -> None:
    target = f"{topic}-copy"
    topics.create(topic, 2)
    topics.create(target, 2)
    topics.fill(topic, 40)
    done = subprocess.run(
        [str(python), str(SHIP_DRIVER), topics.bootstrap, topic, target, str(tmp_path)],
        env=environment(python),
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == ["read 40", "unpacked 1"], done.stderr[-3000:]
    assert len(topics.values(target, isolation="read_committed")) == 43


def test_pipelines_say_which_release_they_need(
    python: Path, release: str, has_limits: bool, topics: Topics, topic: str, tmp_path: Path
) -> None:
    if has_limits:
        pytest.skip("what pipelines do is tested with the release that is installed")
    topics.create(topic)
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        f"{{name: p, kind: transform, bootstrap: '{topics.bootstrap}', "
        f"source: {{topic: {topic}, format: string}}, sink: {{console: true}}}}"
    )
    done = subprocess.run(
        [str(python), "-m", "barnabas", "pipeline", "run", str(file), "--once"],
        env=environment(python),
        capture_output=True,
        text=True,
    )
    sentence = f"pipelines need PySpark 4.2 or newer, and this is {release}: pip install 'pyspark>=4.2'"
    assert (done.returncode, sentence in done.stderr) == (1, True), done.stderr


def test_declarative_pipelines_as_the_guide_shows_them(
    kind: list[str], python: Path, topics: Topics, tmp_path: Path
) -> None:
    if kind[1:] != ["connect"]:
        pytest.skip("they go through Spark Connect")
    storage = tmp_path / "storage"
    for block in blocks((ROOT / "docs" / "spark.md").read_text()):
        if block.file is not None:
            file = tmp_path / block.file
            file.parent.mkdir(exist_ok=True)
            text = block.text.replace(ADDRESS, topics.bootstrap).replace("/tmp/orders-storage", str(storage))
            file.write_text(text)
    for topic in ("orders", "large-orders"):
        topics.create(topic)
    for first in (0, 100):
        for number in range(first, first + 100):
            topics.producer.send("orders", b'{"amount": %d}' % (number * 10))
        topics.producer.flush()
        done = subprocess.run(
            [str(python.with_name("spark-pipelines")), "run"],
            cwd=tmp_path,
            env={**environment(python), "PYSPARK_PYTHON": str(python)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    found = topics.values("large-orders", isolation="read_committed")
    assert sorted(found) == sorted(b'{"amount": %d}' % (number * 10) for number in range(51, 200))
