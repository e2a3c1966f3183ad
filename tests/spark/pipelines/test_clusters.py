"""What the driver asks a cluster before a pipeline starts, of a real broker."""

import json
from collections.abc import Callable

import pytest

from barnabas.base.errors import BarnabasError
from barnabas.client.producer import Producer
from barnabas.spark.pipelines import clusters
from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.spec import Cluster, Flow, Source, TopicSink
from barnabas.testing.broker import Broker
from tests.spark._kit import Topics

pytestmark = pytest.mark.slow
NOBODY = Cluster("127.0.0.1:1")


@pytest.fixture
def cluster(broker: Broker) -> Cluster:
    return Cluster(broker.bootstrap_servers)


def test_partitions_of_topics_by_name_and_by_pattern(
    cluster: Cluster, topics: Topics, name: Callable[[str], str]
) -> None:
    stem = name("clusters")
    topics.create(f"{stem}-a", 2)
    topics.create(f"{stem}-b", 3)
    assert clusters.source_topics(Source("v", cluster, (f"{stem}-a",))) == {f"{stem}-a": 2}
    by_pattern = clusters.source_topics(Source("v", cluster, (), f"{stem}-.*"))
    assert by_pattern == {f"{stem}-a": 2, f"{stem}-b": 3}
    # As the source that reads them takes it: Java's syntax, found anywhere in a name.
    assert clusters.source_topics(Source("v", cluster, (), f"\\Q{stem[4:]}\\E-[a-z&&[^a]]")) == {
        f"{stem}-b": 3
    }


def test_what_is_not_there_is_named(cluster: Cluster, topic: str) -> None:
    with pytest.raises(PipelineError, match=rf"^there is no topic {topic} at 127.0.0.1:\d+; create it"):
        clusters.source_topics(Source("v", cluster, (topic,)))
    with pytest.raises(PipelineError, match=rf"^no topic at .* is like '{topic}\.x'$"):
        clusters.source_topics(Source("v", cluster, (), f"{topic}.x"))
    with pytest.raises(PipelineError, match=r"^pattern '\(' is not a regular expression: "):
        clusters.source_topics(Source("v", cluster, (), "("))


def test_a_cluster_that_does_not_answer_is_named(cluster: Cluster, topics: Topics, topic: str) -> None:
    topics.create(topic)
    flow = Flow((Source("v", NOBODY, (topic,)),), ())
    with pytest.raises(BarnabasError, match=r"127.0.0.1:1"):
        clusters.check_flow(flow)
    sink = Flow((Source("v", cluster, (topic,)),), (TopicSink("out", NOBODY),))
    with pytest.raises(BarnabasError, match=r"127.0.0.1:1"):
        clusters.check_flow(sink)


def test_missing_topics_are_made_and_others_left(cluster: Cluster, topics: Topics, topic: str) -> None:
    clusters.make_topics(cluster, [topic], 3)
    clusters.make_topics(cluster, [topic], 5)
    assert len(topics.end_offsets(topic)) == 3
    with pytest.raises(PipelineError, match=r"^topic a b at "):
        clusters.make_topics(cluster, ["a b"], 1)


def test_the_end_is_told_as_the_source_takes_it(cluster: Cluster, topics: Topics, topic: str) -> None:
    topics.create(topic, 2)
    topics.fill(topic, 5)
    assert json.loads(clusters.end_offsets(Source("v", cluster, (topic,)))) == {topic: {"0": 3, "1": 2}}


def test_what_is_not_committed_is_not_there_unless_it_is_wanted(
    cluster: Cluster, topics: Topics, topic: str
) -> None:
    topics.create(topic)
    everything = {"kafka.isolation.level": "read_uncommitted"}
    with Producer({"bootstrap.servers": cluster.bootstrap}, transactional_id=topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"open")
        producer.flush()
        for options, end in (({}, 0), (everything, 1)):
            source = Source("v", cluster, (topic,), options=options)
            assert json.loads(clusters.end_offsets(source)) == {topic: {"0": end}}
        producer.abort_transaction()
    assert clusters.sample(Source("v", cluster, (topic,))) == []
    assert clusters.sample(Source("v", cluster, (topic,), options=everything)) == [b"open"]


def test_a_sample_is_the_first_values(cluster: Cluster, topics: Topics, topic: str) -> None:
    topics.create(topic)
    assert clusters.sample(Source("v", cluster, (topic,))) == []
    topics.fill(topic, 20)
    assert clusters.sample(Source("v", cluster, (topic,)), 3) == [b"v0", b"v1", b"v2"]
