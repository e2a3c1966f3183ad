"""The mirror with Apache Kafka at either end: settings, partitions, records, groups."""

from collections.abc import Iterator

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.admin_types import ConfigResource
from barnabas.spark.pipelines.mirror import run_here
from barnabas.spark.pipelines.mirror_upkeep import MirrorUpkeep
from barnabas.testing import Broker
from tests._kafka import KafkaServer, why_missing
from tests.spark.pipelines._mirror import contents, end_of, fill, fresh, plan, rows, settings, transact

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kafka() -> Iterator[str]:
    if (reason := why_missing()) is not None:
        pytest.skip(reason)
    one_broker = {
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "offsets.topic.replication.factor": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    with KafkaServer(one_broker) as server:
        yield server.bootstrap_servers


def grown(address: str, topic: str) -> None:
    with Admin(settings(address)) as admin:
        admin.create_topic(topic, 2, 1, configs={"retention.ms": "86400000", "segment.bytes": "1048576"})
    fill(address, topic, 300, batch_size=2_000)
    transact(address, topic, [b"no"] * 3, commit=False)
    transact(address, topic, [b"yes"] * 3, commit=True)
    fill(address, topic, 50, partition=1, compression_type="lz4")


def test_from_kafka_offsets_are_kept(kafka: str, target: Broker) -> None:
    topic, group = fresh("from-kafka"), fresh("group")
    tp = TopicPartition(topic, 0)
    grown(kafka, topic)
    with Admin(settings(kafka)) as admin:
        admin.alter_group_offsets(group, {tp: 123}).check()
    run_here(plan(kafka, target, topic), once=True)
    for number in (0, 1):
        assert rows(target, topic, number) == rows(kafka, topic, number)
    with Admin(settings(target)) as admin:
        moved = admin.list_group_offsets(group, [tp])[tp]
        assert moved is not None
        assert moved.offset == 123
        resource = ConfigResource.topic(topic)
        found = admin.describe_configs([resource])[resource]
        assert (found["retention.ms"].value, found["segment.bytes"].value) == ("86400000", "1048576")
        assert found["barnabas.offsets.kept"].value == "true"


def test_to_kafka_offsets_are_translated(source: Broker, kafka: str) -> None:
    topic, group = fresh("to-kafka"), fresh("group")
    tp = TopicPartition(topic, 0)
    grown(source.bootstrap_servers, topic)
    made = plan(source, kafka, topic)
    run_here(made, once=True)
    fill(source, topic, 40, first=300)
    with Admin(settings(source)) as admin:
        admin.create_partitions({topic: 3}).check()
        admin.alter_group_offsets(group, {tp: end_of(source, topic) - 20}).check()
    fill(source, topic, 7, partition=2)
    run_here(made, once=True)
    for number in range(3):
        assert contents(rows(kafka, topic, number)) == contents(rows(source, topic, number))
    with MirrorUpkeep(made) as upkeep:
        upkeep.look()
        assert [topic.way.value for topic in upkeep.topics.values()] == ["translated"]
    with Admin(settings(kafka)) as admin:
        moved = admin.list_group_offsets(group, [tp])[tp]
    assert moved is not None
    left = [row.value for row in rows(kafka, topic) if row.offset >= moved.offset]
    assert left == [row.value for row in rows(source, topic)][-20:]
