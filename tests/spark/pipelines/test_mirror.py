"""barnabas.spark.pipelines.mirror: the kind in a file, and the run without Spark."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from barnabas.client.errors import NoBrokersAvailable
from barnabas.spark.pipelines.errors import SpecError
from barnabas.spark.pipelines.fields import Fields
from barnabas.spark.pipelines.mirror import check, parse, resolved, run_here
from barnabas.spark.pipelines.mirror_settings import MirrorPlan, Names
from barnabas.spark.pipelines.mirror_task import Copied
from barnabas.spark.pipelines.spec import Cluster, Pipeline
from barnabas.testing import Broker
from tests.spark.pipelines._mirror import end_of, fill, fresh, plan, rows

CLUSTER = Cluster("here:9092", {})
THERE = {"bootstrap": "there:9092"}


def read(**document: object) -> MirrorPlan:
    fields = Fields({"name": "m", **document}, "f.yaml")
    found = parse(fields, CLUSTER)
    fields.text("name")
    fields.finish()
    return found


class TestParsing:
    def test_the_least(self) -> None:
        found = read(target=THERE, topics="orders.*,payments")
        assert found.source == {"bootstrap.servers": "here:9092"}
        assert found.target == {"bootstrap.servers": "there:9092"}
        assert found.topics == Names(("orders.*", "payments"))
        assert (found.group, found.offsets, found.start, found.tasks) == ("", "auto", "earliest", 0)

    def test_everything(self) -> None:
        found = read(
            source={"bootstrap": "a:1", "client": {"client.id": "mm"}},
            target={"bootstrap": "b:1", "client": {"compression.type": "zstd"}},
            topics=["a", "b"],
            exclude="x",
            groups=["g.*"],
            exclude_groups=["g1"],
            group="mirror:me",
            prefix="east.",
            offsets="translated",
            start="latest",
            sync_configs=False,
            sync_groups=False,
            replication_factor=3,
            tasks=4,
            skip_lost=True,
            sync_interval="30s",
        )
        assert found.source == {"bootstrap.servers": "a:1", "client.id": "mm"}
        assert found.target["compression.type"] == "zstd"
        assert (found.topics, found.groups) == (Names(("a", "b"), ("x",)), Names(("g.*",), ("g1",)))
        assert (found.group, found.prefix, found.sync_interval_ms) == ("mirror:me", "east.", 30_000)
        assert (found.replication_factor, found.tasks, found.skip_lost) == (3, 4, True)

    @pytest.mark.parametrize(
        ("document", "said"),
        [
            ({"topics": "a"}, "wants the key 'target'"),
            ({"topics": "a", "target": {}}, "wants the key 'bootstrap'"),
            ({"target": THERE}, "wants the key 'topics'"),
            ({"target": THERE, "topics": "(a"}, "no regular expression"),
            ({"target": THERE, "topics": "a", "offsets": "same"}, "must be auto, kept or translated"),
            ({"target": {"bootstrap": "here:9092"}, "topics": "a"}, "is the same cluster as the source"),
            ({"target": {**THERE, "topics": 1}, "topics": "a"}, "target.topics is not known"),
            ({"target": {**THERE, "client": {"x.y": "1"}}, "topics": "a"}, "'x.y', which no client has"),
        ],
    )
    def test_what_is_wrong_is_said(self, document: dict[str, object], said: str) -> None:
        with pytest.raises(SpecError, match=said):
            read(**document)


class TestRunning:
    def test_it_goes_on_until_it_is_stopped_and_finds_new_topics(
        self, source: Broker, target: Broker
    ) -> None:
        stem = fresh("run")
        source.create_topic(f"{stem}-a")
        fill(source, f"{stem}-a", 10)
        made = plan(source, target, f"{stem}-.*", sync_interval_ms=50, tasks=2)
        stop, seen = threading.Event(), threading.Condition()
        total: dict[str, int] = {}

        def tell(copied: list[Copied]) -> None:
            with seen:
                for each in copied:
                    total[each.topic] = total.get(each.topic, 0) + each.records
                seen.notify_all()

        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(run_here, made, once=False, stop=stop, on_copied=tell)
            try:
                with seen:
                    assert seen.wait_for(lambda: total.get(f"{stem}-a") == 10, 20)
                source.create_topic(f"{stem}-b", 2)
                fill(source, f"{stem}-b", 5, partition=1)
                fill(source, f"{stem}-a", 5, first=10)
                with seen:
                    assert seen.wait_for(lambda: total == {f"{stem}-a": 15, f"{stem}-b": 5}, 20)
            finally:
                stop.set()
                running.result()
        assert rows(target, f"{stem}-b", 1) == rows(source, f"{stem}-b", 1)
        assert end_of(target, f"{stem}-a") == 15

    def test_a_group_is_named_after_the_source_cluster(self, source: Broker, target: Broker) -> None:
        made = plan(source, target, "x", group="")
        assert resolved(made).group == resolved(made).group
        assert resolved(made).group.startswith("mirror:")
        assert resolved(plan(source, target, "x", group="mirror:mine")).group == "mirror:mine"

    def test_it_is_checked_before_it_starts(self, source: Broker, target: Broker) -> None:
        check(Pipeline("m", "mirror", plan(source, target, "nothing-like-this")))
        away = plan(source, "127.0.0.1:1", "x")
        at_once = replace(away, target={**away.target, "bootstrap.timeout.ms": "0"})
        with pytest.raises(NoBrokersAvailable):
            check(Pipeline("m", "mirror", at_once))
