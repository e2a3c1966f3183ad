"""The mirror with Apache Kafka at either end: settings, partitions, records, groups."""

import random
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.admin_types import ConfigResource
from barnabas.client.errors import KafkaError
from barnabas.spark.pipelines.mirror import run_here
from barnabas.spark.pipelines.mirror_upkeep import MirrorUpkeep
from barnabas.testing import Broker
from tests._kafka import KafkaServer, run_tool, why_missing
from tests.spark.pipelines._mirror import contents, end_of, fill, fresh, plan, rows, settings, transact

pytestmark = pytest.mark.slow

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture(scope="module")
def server() -> Iterator[KafkaServer]:
    if (reason := why_missing()) is not None:
        pytest.skip(reason)
    with KafkaServer({"group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


@pytest.fixture
def kafka(server: KafkaServer) -> str:
    return server.bootstrap_servers


def told_by_kafkas_tool(bootstrap_servers: str, group: str, topic: str) -> dict[int, tuple[int, int]]:
    """Offset and lag of each partition, as `kafka-consumer-groups --describe` prints them."""
    at = ("--bootstrap-server", bootstrap_servers)
    done = run_tool(GROUPS, *at, "--describe", "--group", group)
    assert done.returncode == 0, done.stderr
    found = re.findall(rf"{group}\s+{topic}\s+(\d+)\s+(\d+)\s+\d+\s+(\d+)", done.stdout)
    return {int(partition): (int(offset), int(lag)) for partition, offset, lag in found}


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
        assert told_by_kafkas_tool(target.bootstrap_servers, group, topic)[0][0] == 123
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
    # Behind the 20 that are left is the marker of their transaction.
    assert told_by_kafkas_tool(kafka, group, topic) == {0: (moved.offset, 21)}


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("to_kafka", [True, False], ids=["to", "from"])
def test_kafka_is_killed_meanwhile(
    server: KafkaServer, source: Broker, target: Broker, to_kafka: bool, seed: int
) -> None:
    chance, topic = random.Random(seed), fresh("killed")
    begin, end = (source.bootstrap_servers, server.bootstrap_servers)
    if not to_kafka:
        begin, end = server.bootstrap_servers, target.bootstrap_servers
    with Admin(settings(begin)) as admin:
        admin.create_topic(topic, 2, 1)
    stop = threading.Event()
    made = plan(begin, end, topic, sync_interval_ms=500, transaction_bytes=20_000, timeout_ms=60_000)

    def mirror() -> None:
        """As the command does: what passes is tried again."""
        while not stop.is_set():
            try:
                run_here(made, once=False, stop=stop)
            except KafkaError as error:
                if not error.retriable:
                    raise

    total = 0
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(mirror)
        try:
            for _ in range(4):
                fill(begin, topic, 3_000, first=total, partition=chance.randrange(2), batch_size=2_000)
                total += 3_000
                threading.Event().wait(chance.uniform(0, 1.5))
                server.kill()
                server.start()
        finally:
            stop.set()
            running.result(120)
    run_here(made, once=True)
    for number in (0, 1):
        assert contents(rows(end, topic, number)) == contents(rows(begin, topic, number))
    assert sum(len(rows(end, topic, number)) for number in (0, 1)) == total
