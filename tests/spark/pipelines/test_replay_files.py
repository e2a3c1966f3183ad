"""barnabas.spark.pipelines.replay_files: a landing goes back in order and once (F1-F3)."""

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barnabas.client.producer import Producer
from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.files import load
from barnabas.spark.pipelines.mirror_task import Copied
from barnabas.spark.pipelines.replay_files import FilesReplay
from barnabas.spark.pipelines.replay_pace import Extent
from barnabas.spark.pipelines.replay_plan import Rate, ReplayPlan
from barnabas.spark.pipelines.supervisor import Supervisor
from barnabas.testing import Broker
from tests.spark.pipelines._mirror import fresh, rows, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T0 = 1_700_000_000_000


def land(folder: Path, name: str, places: list[tuple[int, int]], *, topic: str = "orders") -> None:
    """A file as `land` writes it, with these (partition, offset)."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {
            "id": [offset for _, offset in places],
            "note": [None if offset % 2 else f"n{offset}" for _, offset in places],
            "_key": [f"k{offset}" for _, offset in places],
            "_topic": [topic] * len(places),
            "_partition": pa.array([partition for partition, _ in places], pa.int32()),
            "_offset": [offset for _, offset in places],
            "_timestamp": pa.array(
                [datetime.fromtimestamp(T0 / 1000 + offset, UTC) for _, offset in places],
                pa.timestamp("us", "UTC"),
            ),
        }
    )
    pq.write_table(table, folder / f"{name}.parquet")


def plan_for(target: Broker, path: Path, **more: object) -> ReplayPlan:
    there = {name: str(value) for name, value in settings(target).items()}
    return ReplayPlan(there, there, fresh("into"), fresh("r"), path=str(path), **more)  # type: ignore[arg-type]  # by name


def run(plan: ReplayPlan) -> int:
    copied: list[Copied] = []
    FilesReplay(plan).run(None, copied.extend)
    return sum(each.records for each in copied)


class TestOrder:
    def test_rows_go_back_by_partition_and_offset_whatever_file_they_are_in(
        self, target: Broker, tmp_path: Path
    ) -> None:
        land(tmp_path / "day=2", "a", [(0, 30), (1, 7), (0, 31)])
        land(tmp_path / "day=1", "b", [(0, 11), (0, 10), (1, 5)])
        land(tmp_path / "day=1", "c", [(0, 12), (1, 6)])
        plan = plan_for(target, tmp_path)
        assert run(plan) == 8
        found = rows(target, plan.into)
        assert [json.loads(row.value or b"")["id"] for row in found] == [10, 11, 12, 30, 31]
        assert [row.key for row in found] == [b"k10", b"k11", b"k12", b"k30", b"k31"]
        assert [row.timestamp for row in found] == [T0 + 1_000 * n for n in (10, 11, 12, 30, 31)]
        assert [json.loads(row.value or b"")["id"] for row in rows(target, plan.into, 1)] == [5, 6, 7]

    def test_values_are_the_columns_that_were_in_the_record(self, target: Broker, tmp_path: Path) -> None:
        land(tmp_path / "t", "a", [(0, 2), (0, 3)])
        plan = plan_for(target, tmp_path / "t")
        run(plan)
        assert [json.loads(row.value or b"") for row in rows(target, plan.into)] == [
            {"id": 2, "note": "n2"},
            {"id": 3},
        ]

    def test_folders_named_after_the_time_are_no_part_of_the_record(
        self, target: Broker, tmp_path: Path
    ) -> None:
        land(tmp_path / "t" / "date=2023-11-14" / "country=DE", "a", [(0, 2)])
        plan = plan_for(target, tmp_path / "t")
        run(plan)
        (row,) = rows(target, plan.into)
        assert json.loads(row.value or b"") == {"id": 2, "note": "n2", "country": "DE"}

    def test_raw_records_go_back_as_they_were(self, target: Broker, tmp_path: Path) -> None:
        table = pa.table(
            {
                "key": pa.array([b"\x00k", None], pa.binary()),
                "value": pa.array([b"\xff\xfe", None], pa.binary()),
                "headers": pa.array([[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None]),
                "topic": ["t", "t"],
                "partition": pa.array([0, 0], pa.int32()),
                "offset": [4, 9],
                "timestamp": pa.array(
                    [datetime.fromtimestamp(T0 / 1000, UTC)] * 2, pa.timestamp("us", "UTC")
                ),
            }
        )
        pq.write_table(table, tmp_path / "x.parquet")
        plan = plan_for(target, tmp_path)
        assert run(plan) == 2
        assert [(row.key, row.value, row.headers) for row in rows(target, plan.into)] == [
            (b"\x00k", b"\xff\xfe", (("h", b"1"), ("h", None))),
            (None, None, ()),
        ]

    def test_a_row_that_two_files_have_goes_once(self, target: Broker, tmp_path: Path) -> None:
        land(tmp_path, "a", [(0, 1), (0, 2)])
        land(tmp_path, "b", [(0, 2), (0, 3)])
        plan = plan_for(target, tmp_path)
        assert run(plan) == 3


class TestOnce:
    def test_the_same_id_does_it_once(self, target: Broker, tmp_path: Path) -> None:
        land(tmp_path, "a", [(0, n) for n in range(100)])
        plan = plan_for(target, tmp_path)
        assert run(plan) == 100
        assert run(plan) == 0
        assert len(rows(target, plan.into)) == 100

    def test_one_that_was_stopped_goes_on_also_with_other_files(self, target: Broker, tmp_path: Path) -> None:
        land(tmp_path, "a", [(n % 2, n) for n in range(40)])
        plan = plan_for(target, tmp_path, rate=Rate("records", 40))
        stop = threading.Event()
        first: list[Copied] = []

        def stop_soon(copied: list[Copied]) -> None:
            first.extend(copied)
            stop.set()

        FilesReplay(plan).run(stop, stop_soon)
        count = sum(each.records for each in first)
        assert 0 < count < 40
        (tmp_path / "a.parquet").unlink()
        land(tmp_path, "m1", [(n % 2, n) for n in range(25)])
        land(tmp_path, "m2", [(n % 2, n) for n in range(25, 40)])
        assert run(replace(plan, rate=Rate())) == 40 - count
        for partition in (0, 1):
            ids = [json.loads(row.value or b"")["id"] for row in rows(target, plan.into, partition)]
            assert ids == [n for n in range(40) if n % 2 == partition]

    def test_as_recorded(self, target: Broker, tmp_path: Path) -> None:
        land(tmp_path, "a", [(0, 0), (0, 1), (0, 2)])
        assert run(plan_for(target, tmp_path, rate=Rate("speed", 10))) == 3


@pytest.mark.slow
@pytest.mark.timeout(300)  # with the start of a session on a machine that is busy
def test_what_land_wrote_goes_back_as_it_was(
    spark: "SparkSession", source: Broker, target: Broker, tmp_path: Path
) -> None:
    topic = fresh("landed")
    source.create_topic(topic, 2)
    with Producer(settings(source)) as producer:
        for number in range(60):
            value = json.dumps({"id": number, "name": f"n{number}", "tags": ["a", "b"]}).encode()
            producer.send(topic, value, key=b"k%d" % number, partition=number % 2, timestamp_ms=T0 + number)
    file = tmp_path / "land.yaml"
    file.write_text(
        f"name: {topic}\nkind: land\nbootstrap: {source.bootstrap_servers}\n"
        f"source: {{topic: {topic}, schema: 'id BIGINT, name STRING, tags ARRAY<STRING>'}}\n"
        f"sink: {{parquet: {tmp_path}/lake, partition_by: [date]}}\n"
    )
    landing = Supervisor(load(file), checkpoint=str(tmp_path / "checkpoint"), once=True, spark=spark)
    (outcome,) = landing.run(threading.Event(), lambda progress: None)
    assert (outcome.state, outcome.error) == ("done", None)
    plan = plan_for(target, tmp_path / "lake")
    assert run(plan) == 60
    for partition in (0, 1):
        before, after = rows(source, topic, partition), rows(target, plan.into, partition)
        assert [row[1:3] for row in after] == [row[1:3] for row in before]
        assert [json.loads(row.value or b"") for row in after] == [
            json.loads(row.value or b"") for row in before
        ]


class TestDryRun:
    def test_rows_are_counted(self, target: Broker, tmp_path: Path) -> None:
        land(tmp_path, "a", [(0, 1), (0, 5), (2, 9)])
        found = FilesReplay(plan_for(target, tmp_path, rate=Rate("speed", 2))).estimate()
        assert found.partitions == {0: Extent(1, 6), 2: Extent(9, 10)}
        assert (found.records, found.is_exact, found.seconds) == (3, True, 4.0)
        assert 3 * 10 < found.size_bytes < 3 * 100


class TestRefused:
    def test_several_topics_unless_one_is_chosen(self, target: Broker, tmp_path: Path) -> None:
        land(tmp_path, "a", [(0, 1)])
        land(tmp_path, "b", [(0, 1), (0, 2)], topic="other")
        with pytest.raises(PipelineError, match=r"holds several topics \(orders, other\): say which one"):
            FilesReplay(plan_for(target, tmp_path))
        assert run(plan_for(target, tmp_path, topic="other")) == 2

    def test_files_that_do_not_say_where_rows_came_from(self, target: Broker, tmp_path: Path) -> None:
        pq.write_table(pa.table({"id": [1]}), tmp_path / "x.parquet")
        with pytest.raises(PipelineError, match="has no column _topic: only a landing that keeps"):
            FilesReplay(plan_for(target, tmp_path))

    def test_a_folder_that_is_not_there(self, target: Broker, tmp_path: Path) -> None:
        with pytest.raises(PipelineError, match="nowhere is not there"):
            FilesReplay(plan_for(target, tmp_path / "nowhere"))

    def test_a_target_with_too_few_partitions(self, target: Broker, tmp_path: Path) -> None:
        land(tmp_path, "a", [(3, 1)])
        plan = plan_for(target, tmp_path)
        target.create_topic(plan.into, 2)
        with pytest.raises(PipelineError, match="has 2 partitions and the landing has rows of 4"):
            run(plan)
