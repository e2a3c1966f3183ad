"""barnabas.broker.maintenance: what a broker does by the clock (M1, M2)."""

import logging
from pathlib import Path

import pytest

from barnabas.broker.maintenance import Maintenance
from barnabas.log.files import OsFiles
from barnabas.log.layout import HIGH_WATERMARKS, RECOVERY_POINTS
from barnabas.log.partition_log import PartitionLog
from barnabas.testing import Broker
from tests.broker._calls import batch, fetch, list_offset, now_ms, partition_of, produce, values
from tests.broker._wire import WireClient, until
from tests.broker.conftest import MakeTopic, StartBroker

EARLIEST, LATEST = -2, -1
DAY_MS = 86_400_000


def maintenance_of(broker: Broker) -> Maintenance:
    assert broker.node is not None
    assert broker.node.services is not None
    return Maintenance(broker.node.services, broker.node.services.directories, OsFiles())


def checkpoint(broker: Broker, name: str) -> list[str]:
    return (Path(broker.data_dir) / name).read_text().splitlines()


class TestRounds:
    """One round of each task, asked for by hand."""

    def test_high_watermarks_are_written_down(self, broker: Broker, client: WireClient, topic: str) -> None:
        produce(client, topic, batch(b"a", b"b"))
        broker.run(maintenance_of(broker).checkpoint_high_watermarks())
        assert f"{topic} 0 2" in checkpoint(broker, HIGH_WATERMARKS)

    def test_recovery_points_are_written_down(self, broker: Broker, client: WireClient, topic: str) -> None:
        produce(client, topic, batch(b"a", b"b"))
        assert broker.node is not None
        assert broker.node.services is not None
        broker.run(broker.node.services.flusher.flush(partition_of(broker, topic).log))
        broker.run(maintenance_of(broker).checkpoint_logs())
        assert f"{topic} 0 2" in checkpoint(broker, RECOVERY_POINTS)

    def test_records_past_their_time_go_and_readers_are_told_the_new_start(
        self, broker: Broker, client: WireClient, make_topic: MakeTopic
    ) -> None:
        topic = make_topic(retention_ms=str(DAY_MS), segment_bytes="1048576")
        produce(client, topic, batch(b"old", timestamp=now_ms() - 2 * DAY_MS))
        partition = partition_of(broker, topic)

        async def roll() -> None:
            partition.log.roll(now_ms())

        broker.run(roll())
        produce(client, topic, batch(b"young"))
        broker.run(maintenance_of(broker).retain())
        assert list_offset(client, topic, EARLIEST).offset == 1
        assert fetch(client, topic, 0).error_code == 1
        assert values(fetch(client, topic, 1)) == [b"young"]

    def test_so_do_those_above_the_size(
        self, broker: Broker, client: WireClient, make_topic: MakeTopic
    ) -> None:
        topic = make_topic(retention_bytes="1500")
        partition = partition_of(broker, topic)
        for _ in range(4):
            produce(client, topic, batch(bytes(1_000)))

            async def roll() -> None:
                partition.log.roll(now_ms())

            broker.run(roll())
        broker.run(maintenance_of(broker).retain())
        assert list_offset(client, topic, EARLIEST).offset == 2

    def test_a_compacted_topic_keeps_the_last_of_each_key(
        self, broker: Broker, client: WireClient, make_topic: MakeTopic
    ) -> None:
        topic = make_topic(cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
        partition = partition_of(broker, topic)
        for number in range(20):
            produce(client, topic, batch(b"%d" % number, key=b"k%d" % (number % 2)))

        async def roll() -> None:
            partition.log.roll(now_ms())

        broker.run(roll())
        produce(client, topic, batch(b"active", key=b"k9"))
        broker.run(maintenance_of(broker).compact())
        assert values(fetch(client, topic)) == [b"18", b"19"], "an answer ends with its segment"
        assert values(fetch(client, topic, 20)) == [b"active"]
        assert list_offset(client, topic, LATEST).offset == 21

    def test_what_flush_ms_says_is_due_is_synced(
        self, broker: Broker, client: WireClient, make_topic: MakeTopic
    ) -> None:
        topic = make_topic(flush_ms="0")
        produce(client, topic, batch(b"x"))
        log = partition_of(broker, topic).log

        def flushed() -> bool:
            broker.run(maintenance_of(broker).flush())
            return log.recovery_point == 1

        until(flushed)

    def test_idle_producers_are_forgotten(self, broker: Broker, client: WireClient, topic: str) -> None:
        stamp = now_ms() - 3 * DAY_MS
        produce(client, topic, batch(b"x", producer_id=4, epoch=0, sequence=0, timestamp=stamp))
        log = partition_of(broker, topic).log
        assert list(log.producers.producers) == [4]
        broker.run(maintenance_of(broker).expire_producers())
        assert list(log.producers.producers) == []

    def test_files_of_deleted_topics_are_removed_when_their_time_has_come(
        self, broker: Broker, make_topic: MakeTopic
    ) -> None:
        topic = make_topic(file_delete_delay_ms="0")
        assert broker.node is not None
        assert broker.node.services is not None
        broker.run(broker.node.services.topics.delete(topic))
        broker.run(maintenance_of(broker).retain())
        assert [each for each in Path(broker.data_dir).iterdir() if each.name.startswith(f"{topic}-")] == []


def test_rounds_come_by_themselves(start_broker: StartBroker) -> None:
    broker = start_broker(
        {
            "replica.high.watermark.checkpoint.interval.ms": "10",
            "log.retention.check.interval.ms": "10",
            "log.flush.offset.checkpoint.interval.ms": "10",
        }
    )
    broker.create_topic("t", config={"retention.ms": "1"})
    with WireClient(broker.bootstrap_servers) as client:
        produce(client, "t", batch(b"x", timestamp=1_000))
        until(lambda: list_offset(client, "t", EARLIEST).offset == 1)
    until(lambda: "t 0 1" in checkpoint(broker, HIGH_WATERMARKS))
    until((Path(broker.data_dir) / RECOVERY_POINTS).exists)


def test_a_failing_round_is_logged_and_the_next_one_is_tried(
    start_broker: StartBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[object] = []

    def fail(log: PartitionLog, *_: object) -> int:
        tries.append(log)
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(PartitionLog, "expire_producers", fail)
    with caplog.at_level(logging.ERROR, logger="barnabas.broker.maintenance"):
        broker = start_broker({"producer.id.expiration.check.interval.ms": "5"})
        broker.create_topic("t")
        until(lambda: len(tries) > 1)
    assert {record.getMessage() for record in caplog.records} == {"expire_producers failed"}
