"""A disk without room: produce is refused with KAFKA_STORAGE_ERROR, reading goes on, and room heals it.

Two ways to have no room: a small file system of our own (needs root), and a limit on file sizes that is set
on the running broker and lifted again.
"""

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public by its docs

from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.records.builder import build_batch
from tests.broker._wire import WireClient
from tests.conformance._client import eventually
from tests.conformance._scenarios import now_ms
from tests.conformance._servers import SETTINGS, BarnabasServer

KAFKA_STORAGE_ERROR = 56
TOPIC = "filling"
# The group topic takes room too; two partitions are enough here.
SMALL = {**SETTINGS, "offsets.topic.num.partitions": "2"}


def number_batch(number: int) -> bytes:
    return bytes(build_batch([(now_ms(), None, b"%08d" % number + bytes(50_000), ())]))


def produce(client: WireClient, number: int) -> int:
    """The error code of writing one numbered record."""
    data = TopicProduceData(
        name=TOPIC, partition_data=[PartitionProduceData(index=0, records=number_batch(number))]
    )
    answer = client.call(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), 9, ProduceResponse)
    return answer.responses[0].partition_responses[0].error_code


def read_numbers(server: BarnabasServer) -> list[int]:
    consumer = Consumer(
        {"bootstrap.servers": server.bootstrap_servers, "group.id": "r", "enable.auto.commit": False}
    )
    try:
        _first, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), 20)
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        found: list[int] = []

        def more() -> bool:
            for message in consumer.consume(100, 0.2):
                assert message.error() is None, message.error()
                found.append(int((message.value() or b"")[:8]))
            return len(found) >= end

        eventually(more, what=f"{end} records")
        return found
    finally:
        consumer.close()


def create_topic(server: BarnabasServer) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(20)


def fill(client: WireClient, most: int) -> int:
    """Write until it is refused for want of room; how many were taken."""
    for number in range(most):
        code = produce(client, number)
        if code:
            assert code == KAFKA_STORAGE_ERROR
            return number
    raise AssertionError(f"{most} records were taken")


def check_heals(server: BarnabasServer, client: WireClient, taken: int) -> None:
    """Room is there again: writing goes on where it stopped, and nothing is lost, doubled or torn."""
    eventually(lambda: produce(client, taken) == 0, timeout_s=20, what="a write that is taken again")
    assert produce(client, taken + 1) == 0
    assert read_numbers(server) == list(range(taken + 2))
    server.stop()
    server.start()
    assert read_numbers(server) == list(range(taken + 2))
    with WireClient(server.bootstrap_servers) as again:
        assert produce(again, taken + 2) == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 40 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("a file system of our own needs root")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"no file system of our own: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_refuses_writes_and_serves_reads_until_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(20_000_000))
    server = BarnabasServer(SMALL, data_dir=small_disk / "data")
    try:
        server.start()
        create_topic(server)
        with WireClient(server.bootstrap_servers) as client:
            taken = fill(client, 1000)
            assert taken > 10
            assert read_numbers(server) == list(range(taken))
            assert produce(client, taken) == KAFKA_STORAGE_ERROR
            ballast.unlink()
            check_heals(server, client, taken)
    finally:
        server.close()


def test_a_file_that_may_not_grow_refuses_writes_and_serves_reads_until_it_may() -> None:
    server = BarnabasServer(SMALL)
    try:
        server.start()
        create_topic(server)
        _soft, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        with WireClient(server.bootstrap_servers) as client:
            for number in range(5):
                assert produce(client, number) == 0
            # Less than the next record needs: it ends in the middle of a write.
            segment = server.data_dir / f"{TOPIC}-0" / "00000000000000000000.log"
            room = segment.stat().st_size + 20_000
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (room, hard))
            assert produce(client, 5) == KAFKA_STORAGE_ERROR
            assert read_numbers(server) == [0, 1, 2, 3, 4]
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (hard, hard))
            check_heals(server, client, 5)
    finally:
        server.close()


def test_other_partitions_live_on_while_one_file_may_not_grow() -> None:
    server = BarnabasServer(SMALL)
    try:
        server.start()
        create_topic(server)
        _soft, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        with WireClient(server.bootstrap_servers) as client:
            for number in range(20):
                assert produce(client, number) == 0
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1_000_000, hard))
            assert produce(client, 20) == KAFKA_STORAGE_ERROR
            producer = Producer({"bootstrap.servers": server.bootstrap_servers, "message.timeout.ms": 10_000})
            failed: list[object] = []
            producer.produce(
                "other", b"v", on_delivery=lambda error, _m: failed.append(error) if error else None
            )
            assert producer.flush(15) == 0
            assert not failed
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (hard, hard))
            check_heals(server, client, 20)
    finally:
        server.close()
