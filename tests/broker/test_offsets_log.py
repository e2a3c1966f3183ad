"""barnabas.broker.offsets_log: the coordinator's records appended and read back."""

import asyncio
from pathlib import Path

import pytest

from barnabas.base.types import TopicPartition
from barnabas.broker.coordinator_appends import CoordinatorAppends
from barnabas.broker.delayed import Purgatory
from barnabas.broker.flushing import Flusher
from barnabas.broker.loop_timers import LoopTimers
from barnabas.broker.offload import Offload
from barnabas.broker.offsets_log import OffsetsTopicLog, replay_groups
from barnabas.coordinator.group_records import offset_record
from barnabas.coordinator.groups import OwnedPartition
from barnabas.coordinator.loading import PartitionLoad
from barnabas.coordinator.offsets import CommittedOffset
from barnabas.coordinator.outbox import Outbox
from barnabas.coordinator.ports import KeyValue, Producer
from barnabas.log.producers import Origin
from barnabas.protocol.codes import ErrorCode
from barnabas.records.batch import iter_batches
from barnabas.records.builder import end_txn_marker
from barnabas.records.codecs import Codec
from barnabas.testing import Broker
from tests.broker._calls import partition_of
from tests.broker._groups import commit, find_coordinator
from tests.broker._parts import LogParts, open_log_parts, run
from tests.broker._wire import WireClient

OFFSETS = "__consumer_offsets"
SETTINGS = {"offsets.topic.num.partitions": "2", "offsets.commit.timeout.ms": "30"}


def make(parts: LogParts, purgatory: Purgatory | None = None) -> OffsetsTopicLog:
    purgatory = purgatory or Purgatory(LoopTimers(asyncio.get_running_loop()))
    appends = CoordinatorAppends(purgatory, parts.clock, Flusher(Offload(), parts.clock))
    return OffsetsTopicLog(parts.partitions, appends, lambda: parts.configs.settings)


def record(group: str, offset: int) -> KeyValue:
    return offset_record(group, TopicPartition("t", 0), CommittedOffset(offset, -1, "", 1, -1, 0))


class TestAppending:
    def test_what_is_durable_is_told_at_once(self, folder: Path) -> None:
        async def main() -> None:
            async with open_log_parts(folder, SETTINGS) as parts:
                await parts.topics.ensure(OFFSETS)
                told: list[ErrorCode] = []
                make(parts).append(1, [record("g", 1), record("g", 2)], told.append)
                assert told == [ErrorCode.NONE]
                led = parts.partitions.get(OFFSETS, 1)
                assert led is not None
                assert led.high_watermark == 2

        run(main())

    def test_a_partition_that_is_not_here_is_told(self, folder: Path) -> None:
        async def main() -> None:
            async with open_log_parts(folder, SETTINGS) as parts:
                told: list[ErrorCode] = []
                make(parts).append(0, [record("g", 1)], told.append)
                assert told == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

        run(main())

    def test_too_few_replicas_in_sync_are_told(self, folder: Path) -> None:
        async def main() -> None:
            async with open_log_parts(folder, {**SETTINGS, "min.insync.replicas": "2"}) as parts:
                await parts.topics.ensure(OFFSETS)
                told: list[ErrorCode] = []
                make(parts).append(0, [record("g", 1)], told.append)
                assert told == [ErrorCode.NOT_ENOUGH_REPLICAS]

        run(main())

    @pytest.mark.parametrize("ending", ["replicated", "too late", "led elsewhere"])
    def test_with_followers_it_waits_for_them(self, folder: Path, ending: str) -> None:
        async def main() -> None:
            async with open_log_parts(folder, SETTINGS) as parts:
                await parts.topics.ensure(OFFSETS)
                led = parts.partitions.get(OFFSETS, 0)
                assert led is not None
                led.lead(epoch=5, replicas=[1, 2], in_sync=[1, 2], high_watermark=0)
                purgatory = Purgatory(LoopTimers(asyncio.get_running_loop()))
                log = make(parts, purgatory)
                told: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
                log.append(0, [record("g", 1)], told.set_result)
                assert not told.done()
                if ending == "replicated":
                    led.leading.follower_fetched(2, 1, 0)
                    purgatory.moved(led.topic_partition)
                elif ending == "led elsewhere":
                    led.resign()
                    purgatory.moved(led.topic_partition)
                async with asyncio.timeout(20):
                    code = await told
                assert (
                    code
                    is {
                        "replicated": ErrorCode.NONE,
                        "too late": ErrorCode.REQUEST_TIMED_OUT,
                        "led elsewhere": ErrorCode.NOT_LEADER_OR_FOLLOWER,
                    }[ending]
                )
                assert len(purgatory) == 0

        run(main())

    def test_the_codec_is_a_setting(self, folder: Path) -> None:
        async def main() -> None:
            settings = {**SETTINGS, "offsets.topic.compression.codec": "1"}
            async with open_log_parts(folder, settings) as parts:
                await parts.topics.ensure(OFFSETS)
                make(parts).append(0, [record("group" * 20, n) for n in range(20)], lambda _: None)
                led = parts.partitions.get(OFFSETS, 0)
                assert led is not None
                read = led.log.read(0, max_bytes=1 << 20)
                assert read.slice is not None
                (batch,) = iter_batches(memoryview(read.slice.read()))
                assert batch.codec is Codec.GZIP

        run(main())


@pytest.mark.parametrize("messages", ["1", "1000"])
def test_a_commit_is_on_disk_when_flush_messages_wants_that(folder: Path, messages: str) -> None:
    settings = {"log.flush.interval.messages": messages}
    with Broker(settings, data_dir=str(folder)) as broker, WireClient(broker.bootstrap_servers) as client:
        broker.create_topic("t")
        find_coordinator(client)
        assert commit(client, "g", "t", 5) == 0
        assert broker.node is not None
        assert broker.node.services is not None
        log = partition_of(broker, OFFSETS, broker.node.services.groups.partition_for("g")).log
        assert log.log_end_offset == 1
        assert (log.recovery_point == log.log_end_offset) == (messages == "1")


class TestReadingBack:
    def test_all_records_come_in_order_and_transactions_count_when_they_commit(self, folder: Path) -> None:
        async def main() -> None:
            async with open_log_parts(folder, SETTINGS) as parts:
                await parts.topics.ensure(OFFSETS)
                log = make(parts)
                log.append(0, [record("plain", 1)], lambda _: None)
                log.append(0, [record("plain", 2)], lambda _: None)
                led = parts.partitions.get(OFFSETS, 0)
                assert led is not None
                for group, producer_id, committed in (("kept", 7, True), ("lost", 8, False)):
                    log.append(0, [record(group, 3)], lambda _: None, Producer(producer_id, 0))
                    marker = end_txn_marker(
                        committed=committed,
                        coordinator_epoch=0,
                        timestamp=1,
                        producer_id=producer_id,
                        producer_epoch=0,
                    )
                    led.append(memoryview(marker), acks_all=True, now_ms=1, origin=Origin.COORDINATOR)
                for chunk_bytes in (1, 1 << 20):
                    offload = Offload()
                    load = PartitionLoad(0, OwnedPartition())
                    await replay_groups(
                        led.log,
                        load,
                        end_offset=led.log.log_end_offset,
                        chunk_bytes=chunk_bytes,
                        offload=offload,
                    )
                    offload.close()
                    groups = {group.group_id: group for group in load.groups(Outbox(), 0)}
                    found = {
                        name: at.offset
                        for name, group in groups.items()
                        if (at := group.offsets.get(TopicPartition("t", 0))) is not None
                    }
                    assert found == {"plain": 2, "kept": 3}

        run(main())
