"""barnabas.spark.pipelines.replay: the kind in a file, and its job."""

import pytest

from barnabas.spark.pipelines.errors import PipelineError, SpecError
from barnabas.spark.pipelines.fields import Fields
from barnabas.spark.pipelines.replay import ReplayJob, check, described, estimate, parse
from barnabas.spark.pipelines.replay_plan import Edge, Rate, ReplayPlan
from barnabas.spark.pipelines.spec import Cluster, Pipeline
from barnabas.testing import Broker
from tests.spark.pipelines._mirror import fill, fresh, rows, settings

CLUSTER = Cluster("here:9092", {"client.id": "x"})


def read(**document: object) -> ReplayPlan:
    return parse(Fields({"name": "again", **document}, "f.yaml"), CLUSTER)


class TestParsing:
    def test_a_topic(self) -> None:
        plan = read(
            source={"topic": "orders", "from": 5, "to": "latest", "partitions": [0, 2]},
            target={"topic": "orders2", "bootstrap": "there:9092"},
            rate="x2",
        )
        assert plan.source == {"client.id": "x", "bootstrap.servers": "here:9092"}
        assert plan.target["bootstrap.servers"] == "there:9092"
        assert (plan.topic, plan.into, plan.id) == ("orders", "orders2", "again")
        assert (plan.begin, plan.end) == (Edge("offset", 5), Edge("latest"))
        assert (plan.partitions, plan.rate) == ((0, 2), Rate("speed", 2))

    def test_a_landing(self) -> None:
        plan = read(source={"parquet": "lake/orders"}, target={"topic": "t"}, id="r7")
        assert (plan.path, plan.topic, plan.id) == ("lake/orders", "", "r7")

    @pytest.mark.parametrize(
        ("document", "said"),
        [
            ({}, "wants the key 'source'"),
            ({"source": {"topic": "a"}}, "wants the key 'target'"),
            ({"source": {}, "target": {"topic": "b"}}, "wants the key 'topic'"),
            ({"source": {"topic": "a", "from": "soon"}, "target": {"topic": "b"}}, "'soon' is no place"),
            ({"source": {"topic": "a"}, "target": {"topic": "b"}, "rate": "fast"}, "'fast' is no rate"),
            (
                {"source": {"topic": "a", "partitions": "x"}, "target": {"topic": "b"}},
                "must be numbers, not x",
            ),
            ({"source": {"topic": "a", "form": 1}, "target": {"topic": "b"}}, "form is not known"),
            (
                {"source": {"topic": "a", "client": {"no.such": "1"}}, "target": {"topic": "b"}},
                "'no.such', which no client has",
            ),
        ],
    )
    def test_what_is_wrong_is_said(self, document: dict[str, object], said: str) -> None:
        with pytest.raises(SpecError, match=said):
            read(**document)


class TestJob:
    @pytest.fixture
    def plan(self, source: Broker, target: Broker) -> ReplayPlan:
        topic = fresh()
        source.create_topic(topic)
        fill(source, topic, 40)
        one, other = ({k: str(v) for k, v in settings(each).items()} for each in (source, target))
        return ReplayPlan(one, other, fresh("into"), fresh("r"), topic=topic)

    def test_it_runs_to_its_end_and_reports(self, target: Broker, plan: ReplayPlan) -> None:
        job = ReplayJob("again", plan)
        job._thread.join()
        assert not job.is_active()
        assert job.failure() is None
        reports = job.reports()
        assert sum(report.rows_in for report in reports) == 40
        assert reports[-1].done == {(plan.topic, 0): 40}
        assert job.reports() == []
        assert len(rows(target, plan.into)) == 40
        job.stop()

    def test_a_failure_is_kept_for_the_supervisor(self, target: Broker, plan: ReplayPlan) -> None:
        job = ReplayJob("again", ReplayPlan(plan.source, plan.target, "x", "y", path="/nowhere"))
        job._thread.join()
        assert isinstance(job.failure(), PipelineError)

    def test_it_is_checked_before_it_starts(self, plan: ReplayPlan) -> None:
        check(Pipeline("again", "replay", plan))
        found = described(plan, estimate(plan))
        assert (found["records"], found["target"], found["seconds"]) == (40, plan.into, None)
