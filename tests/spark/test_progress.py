"""How the planner of a stream learns the name of its query, and what the group is told."""

from collections.abc import Iterator

import pytest
from pyspark import TaskContext

from barnabas.base.types import TopicPartition
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.spark.lookup import Lookup
from barnabas.spark.options import parse_source
from barnabas.spark.planning import OffsetRange
from barnabas.spark.progress import Progress, leave_name, query_of_task
from tests.spark._kit import Topics

QUERY_ID = "2a44765e-f1c2-4d93-9370-efebcef2dbe4"


@pytest.fixture
def lookup(topics: Topics, topic: str) -> Iterator[Lookup]:
    topics.create(topic)
    made = Lookup(parse_source({"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic}))
    yield made
    made.close()


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> TaskContext:
    """A task of a query as Spark's workers make it: from the properties that came with the job."""
    context: TaskContext = object.__new__(TaskContext)  # its own __new__ would outlive the test
    monkeypatch.setattr(TaskContext, "_taskContext", context)
    monkeypatch.setattr(
        context,
        "_localProperties",
        {
            "sql.streaming.queryId": QUERY_ID,
            "spark.job.description": f"my orders\nid = {QUERY_ID}\nrunId = x\nbatch = 0",
        },
        raising=False,
    )
    return context


def committed(topics: Topics, group: str, topic: str) -> OffsetAndMetadata | None:
    where = TopicPartition(topic, 0)
    return topics.admin.list_group_offsets(group, [where]).succeeded.get(where)


class TestQueryOfTask:
    def test_its_name(self, task: TaskContext) -> None:
        assert query_of_task() == "my orders"

    def test_its_id_when_it_has_no_name(self, task: TaskContext) -> None:
        properties: dict[str, str] = getattr(task, "_localProperties")  # noqa: B009 -- PySpark declares none
        properties["spark.job.description"] = f"id = {QUERY_ID}\nrunId = x"
        assert query_of_task() == QUERY_ID
        del properties["spark.job.description"]
        assert query_of_task() == QUERY_ID

    def test_outside_a_task_there_is_none(self) -> None:
        assert query_of_task() is None


class TestProgress:
    def test_a_named_group_is_told_at_once(self, lookup: Lookup, topics: Topics, topic: str) -> None:
        progress = Progress(lookup, f"g-{topic}")
        assert progress.token_for_batch() is None
        progress.tell({TopicPartition(topic, 0): 5}, 2)
        assert committed(topics, f"g-{topic}", topic) == OffsetAndMetadata(5, '{"batch": 2}')

    @pytest.mark.usefixtures("task")
    def test_a_name_left_by_a_task_is_picked_up_and_removed(
        self, lookup: Lookup, topics: Topics, topic: str
    ) -> None:
        progress = Progress(lookup, None)
        progress.tell({TopicPartition(topic, 0): 0}, -1)
        token = progress.token_for_batch()
        assert token is not None
        leave_name(token, (OffsetRange(topic, 0, 0, 3),), {"bootstrap.servers": topics.bootstrap})
        progress.tell({TopicPartition(topic, 0): 3}, 0)
        assert committed(topics, "spark:my orders", topic) == OffsetAndMetadata(3, '{"batch": 0}')
        assert progress.token_for_batch() is None
        assert [each.id for each in topics.admin.list_groups() if token in each.id] == []

    def test_a_name_that_never_comes_is_not_waited_for(self, lookup: Lookup, topic: str) -> None:
        progress = Progress(lookup, None)
        assert progress.token_for_batch() is not None
        for place in range(30):
            progress.tell({TopicPartition(topic, 0): place}, place)
        assert progress.token_for_batch() is None

    def test_nothing_is_told_when_it_is_not_wanted(self, lookup: Lookup, topics: Topics, topic: str) -> None:
        progress = Progress(lookup, f"g-{topic}", wanted=False)
        progress.tell({TopicPartition(topic, 0): 5}, 2)
        assert progress.token_for_batch() is None
        assert committed(topics, f"g-{topic}", topic) is None

    def test_a_cluster_that_refuses_does_not_end_the_query(
        self, lookup: Lookup, caplog: pytest.LogCaptureFixture
    ) -> None:
        progress = Progress(lookup, "g-refused")
        progress.tell({TopicPartition("no-such-topic", 0): 5}, 2)
        assert "the progress of the stream was not committed" in caplog.text

    def test_after_a_failure_it_rests_so_that_batches_do_not_wait_for_it(
        self, lookup: Lookup, topics: Topics, topic: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        now = [0.0]
        progress = Progress(lookup, f"g-{topic}", monotonic_s=lambda: now[0])
        progress.tell({TopicPartition("no-such-topic", 0): 5}, 2)
        caplog.clear()
        for offset in range(6, 9):
            progress.tell({TopicPartition("no-such-topic", 0): offset}, offset)
        assert caplog.text == ""
        now[0] = 31.0
        progress.tell({TopicPartition(topic, 0): 9}, 9)
        assert committed(topics, f"g-{topic}", topic) == OffsetAndMetadata(9, '{"batch": 9}')

    def test_a_task_without_a_query_leaves_nothing(self, topics: Topics, topic: str) -> None:
        settings = {"bootstrap.servers": topics.bootstrap}
        leave_name("token-x", (OffsetRange(topic, 0, 0, 1),), settings)
        assert [each.id for each in topics.admin.list_groups() if "token-x" in each.id] == []
