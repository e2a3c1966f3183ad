"""Landing on a real HDFS, progress there, too: exact, refused in a sentence, back after its servers died."""

import getpass
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.spark.pipelines.landing import Landing
from barnabas.spark.pipelines.landing_files import HadoopFiles, files_for
from barnabas.spark.pipelines.landing_spark import SparkTables
from barnabas.spark.pipelines.replay import run_replay
from barnabas.spark.pipelines.replay_plan import ReplayPlan
from tests import _hdfs
from tests._hdfs import Hdfs
from tests.cli._command import barnabas
from tests.spark._kit import Topics
from tests.spark.pipelines._flows import SCHEMA, ended, run_once, send_orders
from tests.spark.pipelines._fragile import Crash, FragileFiles
from tests.spark.pipelines._kills import Killed
from tests.spark.pipelines.test_landing_files import check_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
"""What a session takes for a checkpoint that is not local; the shared one is made for local ones."""


@pytest.fixture(scope="module")
def hdfs() -> Iterator[Hdfs]:
    if (reason := _hdfs.why_missing()) is not None:
        pytest.skip(reason)
    with Hdfs() as running:
        yield running


@pytest.fixture
def home(hdfs: Hdfs, name: Callable[[str], str]) -> str:
    """The address of a folder that is ours."""
    return hdfs.make_folder(f"/user/{name('home')}", owner=getpass.getuser())


def land(topics: Topics, topic: str, home: str) -> dict[str, Any]:
    return {
        "name": "lake",
        "kind": "land",
        "bootstrap": topics.bootstrap,
        "source": {"topic": topic, "schema": SCHEMA, "options": {"maxOffsetsPerTrigger": 60}},
        "sink": {"parquet": f"{home}/lake", "partition_by": ["date"], "file_size": "1mb"},
        "spark": {"spark.sql.streaming.checkpointFileManagerClass": MANAGER},
    }


def files_of(hdfs: Hdfs, address: str) -> list[str]:
    return [each for each in hdfs.walk(address.removeprefix(hdfs.address)) if each.endswith(".parquet")]


def ids_at(spark: "SparkSession", address: str) -> list[int]:
    return sorted(row["id"] for row in spark.read.parquet(f"{address}/lake").select("id").collect())


def test_its_files_do_what_a_landing_needs(spark: "SparkSession", home: str) -> None:
    files = files_for(spark, home)
    assert isinstance(files, HadoopFiles)
    check_files(files, home)


def test_rows_land_once_in_a_file_that_grows_and_are_replayed_from_there(
    spark: "SparkSession", hdfs: Hdfs, home: str, topics: Topics, topic: str
) -> None:
    topics.create(topic, 2)
    for first in (0, 100):
        send_orders(topics, topic, range(first, first + 100))
        outcomes, _, _ = run_once(spark, f"{home}/progress", land(topics, topic, home))
        assert ended(outcomes) == [("done", None)]
    assert ids_at(spark, home) == list(range(200))
    assert len(files_of(hdfs, f"{home}/lake")) == 1, "the file grew"

    target = ("-b", topics.bootstrap, "--into", f"{topic}-again")
    planned = barnabas("pipeline", "replay", "--parquet", f"{home}/lake", *target, "--dry-run", timeout=120)
    assert (planned.returncode, planned.stderr) == (0, "")
    assert "would write 200 records" in planned.stdout
    cluster = {"bootstrap.servers": topics.bootstrap}
    plan = ReplayPlan(cluster, cluster, into=f"{topic}-again", id=topic, path=f"{home}/lake")
    run_replay(plan)
    again = topics.values(f"{topic}-again", isolation="read_committed")
    assert sorted(json.loads(value)["id"] for value in again) == list(range(200))


@pytest.mark.parametrize("change", [2, 4])
def test_a_crash_between_the_writing_and_the_publishing_of_a_batch(
    spark: "SparkSession", hdfs: Hdfs, home: str, change: int
) -> None:
    def landing(last: int) -> Landing:
        files = FragileFiles(files_for(spark, home), last, done=False)
        tables = SparkTables(spark, ["amount"], one_file=True)
        return Landing(files, tables, f"{home}/lake", writer="lake", query="q", file_size=1 << 20)

    def batch(number: int) -> Any:
        rows = [{"id": 10 * number + each, "amount": each % 2} for each in range(4)]
        return spark.createDataFrame(rows, "id BIGINT, amount INT")

    landing(1_000).take(batch(0), 0)
    with pytest.raises(Crash):
        # Two removals, the decision (2), a move for each of two partitions (3, 4), the mark.
        landing(change).take(batch(1), 1)
    assert ids_at(spark, home)[:4] == [0, 1, 2, 3]
    landing(1_000).take(batch(1), 1)
    assert ids_at(spark, home) == [0, 1, 2, 3, 10, 11, 12, 13]
    assert len(files_of(hdfs, f"{home}/lake")) == 2


@pytest.mark.parametrize("denied", ["table", "progress"])
def test_a_folder_of_somebody_else_is_refused_at_once(
    spark: "SparkSession", hdfs: Hdfs, home: str, topics: Topics, topic: str, tmp_path: Path, denied: str
) -> None:
    topics.create(topic)
    send_orders(topics, topic, range(3))
    theirs = hdfs.make_folder("/theirs")
    document = land(topics, topic, theirs if denied == "table" else home)
    progress = f"{theirs}/progress" if denied == "progress" else str(tmp_path)
    outcomes, told, _ = run_once(spark, progress, document)
    assert ended(outcomes) == [
        (
            "failed",
            f"/theirs is denied to the user {getpass.getuser()} (WRITE); "
            "change its permissions, or name another",
        )
    ]
    assert told[-1].restarts == 0


def test_a_delta_table_gets_its_rows(
    spark: "SparkSession", hdfs: Hdfs, home: str, topics: Topics, topic: str, tmp_path: Path
) -> None:
    deltalake = pytest.importorskip("deltalake")
    topics.create(topic)
    send_orders(topics, topic, range(20))
    document = land(topics, topic, home) | {"sink": {"delta": f"{home}/delta"}}
    assert ended(run_once(spark, tmp_path, document)[0]) == [("done", None)]
    table = deltalake.DeltaTable(f"{home}/delta").to_pyarrow_table()
    assert sorted(table["id"].to_pylist()) == list(range(20))


@pytest.mark.soak
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(2))
def test_kills_of_the_driver_and_of_both_servers(
    spark: "SparkSession", hdfs: Hdfs, home: str, topics: Topics, topic: str, tmp_path: Path, seed: int
) -> None:
    more = ("--master", "local[2,4]", "--checkpoint", f"{home}/progress")
    run = Killed(topics, topic, home, tmp_path, seed, *more)
    for _ in range(2):
        run.grow()
        run.kill_once()
    for kill, start in (
        (hdfs.kill_name_node, hdfs.start_name_node),
        (hdfs.kill_data_node, hdfs.start_data_node),
    ):
        run.grow()
        seen = len(run.told())
        with run.running() as process:
            assert run.wait_for(lambda each: bool(each.get("rows_in")), seen)
            seen = len(run.told())
            kill()
            run.grow()
            assert run.wait_for(lambda each: each["state"] == "waiting", seen), "it says what is wrong"
            sentences = {each["last_error"] for each in run.told()[seen:] if each["state"] == "waiting"}
            assert all(isinstance(each, str) and "\n" not in each for each in sentences), sentences
            start()
            hdfs.wait_until_usable()
            seen = len(run.told())
            assert run.wait_for(lambda each: bool(each.get("rows_in")), seen), "it goes on by itself"
            assert process.poll() is None
    run.finish()
    run.check(ids_at(spark, home))
