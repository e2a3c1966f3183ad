"""Bulk reads when brokers answer with errors, move, redirect, lose offsets, or send what is wrong."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from barnabas.client.cluster import Cluster
from barnabas.client.config import CONSUMER, parse
from barnabas.client.errors import ClientClosed, TopicAuthorization
from barnabas.client.range_reads import FetchedChunk, Habits, Lost, RangeReads
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.fetch import AbortedTransaction
from barnabas.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from barnabas.protocol.schema import Message
from barnabas.protocol.versions import Versions
from barnabas.records.batch import split_batches
from barnabas.records.errors import CorruptBatch
from tests.client._kit import settings_for
from tests.client._log_broker import TOPIC, TOPIC_ID, LogBroker, Script, two_brokers
from tests.client._records import batch
from tests.net._kit import until


def script_of(*batches: list[bytes]) -> Script:
    script = Script()
    for values in batches:
        script.batches[script.end] = batch(list(values), base_offset=script.end)
        script.end += len(values)
    return script


@asynccontextmanager
async def reading(
    broker: LogBroker, start: int, end: int, *, committed: bool = False, **more: object
) -> AsyncIterator[RangeReads]:
    settings = parse(CONSUMER, settings_for(broker.address, fetch_max_wait_ms=10, **more))
    cluster = Cluster(settings)
    await cluster.start()
    ranges = [(TOPIC, 0, start, end)]
    reads = RangeReads(cluster, settings, ranges, read_committed=committed, habits=Habits())
    reads.start()
    try:
        yield reads
    finally:
        await reads.stop()
        await cluster.close()


async def take(reads: RangeReads) -> FetchedChunk | None:
    await until(lambda: not reads.queue.empty())
    item = reads.queue.get_nowait()
    if isinstance(item, BaseException):
        raise item
    if item is not None and reads.used(len(item.records)):
        reads.wake()
    return item


async def take_all(reads: RangeReads) -> list[FetchedChunk]:
    chunks: list[FetchedChunk] = []
    while (chunk := await take(reads)) is not None:
        chunks.append(chunk)
    return chunks


def offsets_of(chunks: list[FetchedChunk]) -> list[int]:
    return [
        record.offset
        for chunk in chunks
        for one in split_batches(chunk.records)
        for record in one.records(limit=1 << 20)
    ]


class TestRanges:
    def test_a_range_is_covered_in_order_to_its_end(self) -> None:
        async def main() -> None:
            script = script_of([b"a", b"b"], [b"c"], [b"d", b"e"], [b"beyond"])
            async with LogBroker(script) as broker, reading(broker, 1, 4) as reads:
                chunks = await take_all(reads)
                assert offsets_of(chunks) == [0, 1, 2, 3, 4], "whole batches"
                assert [chunk.next_offset for chunk in chunks] == [2, 3, 4]
                assert {(chunk.range_index, chunk.topic, chunk.partition) for chunk in chunks} == {
                    (0, TOPIC, 0)
                }
                assert chunks[-1].high_watermark == 6
                assert chunks[-1].aborted is None

        asyncio.run(main())

    def test_batches_behind_the_end_are_cut_off(self) -> None:
        async def main() -> None:
            script = Script(end=3)
            script.batches[0] = b"".join(batch([b"x"], base_offset=base) for base in range(3))
            async with LogBroker(script) as broker, reading(broker, 0, 2) as reads:
                assert offsets_of(await take_all(reads)) == [0, 1]

        asyncio.run(main())

    def test_a_gap_at_the_end_ends_the_range(self) -> None:
        async def main() -> None:
            # Offsets 1 to 6 are gone; what the broker sends for them lies behind the range.
            script = Script(end=8)
            script.batches = {0: batch([b"a"]), 1: batch([b"later"], base_offset=7)}
            async with LogBroker(script) as broker, reading(broker, 0, 5) as reads:
                chunks = await take_all(reads)
                assert offsets_of(chunks) == [0]
                assert [chunk.next_offset for chunk in chunks] == [1, 5]

        asyncio.run(main())

    def test_aborted_transactions_are_told_to_those_who_ask_for_committed_records(self) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            script.aborted = [AbortedTransaction(producer_id=7, first_offset=0)]
            async with LogBroker(script) as broker, reading(broker, 0, 1, committed=True) as reads:
                (chunk,) = await take_all(reads)
                assert chunk.aborted == [(7, 0)]
                assert broker.fetches()[0].isolation_level == 1

        asyncio.run(main())

    def test_older_brokers_are_asked_by_name(self) -> None:
        async def main() -> None:
            async with LogBroker(script_of([b"a"])) as broker:
                broker.offered[ApiKey.FETCH] = Versions(4, 11)
                broker.offered[ApiKey.METADATA] = Versions(0, 8)
                async with reading(broker, 0, 1) as reads:
                    assert offsets_of(await take_all(reads)) == [0]
                assert broker.fetches()[0].topics[0].topic == TOPIC

        asyncio.run(main())

    def test_newer_brokers_are_asked_by_topic_id(self) -> None:
        async def main() -> None:
            async with LogBroker(script_of([b"a"])) as broker, reading(broker, 0, 1) as reads:
                await take_all(reads)
                assert broker.fetches()[0].topics[0].topic_id == TOPIC_ID

        asyncio.run(main())

    def test_no_more_is_fetched_than_there_is_room_for(self) -> None:
        async def main() -> None:
            script = script_of(*[[b"x" * 1000] for _ in range(20)])
            async with (
                LogBroker(script) as broker,
                reading(broker, 0, 20, barnabas_prefetch_bytes=2500) as reads,
            ):
                await until(lambda: reads.queue.qsize() == 3)
                for _ in range(20):
                    await asyncio.sleep(0)
                assert len(broker.fetches()) == 3
                assert offsets_of(await take_all(reads)) == list(range(20)), "taking makes room again"

        asyncio.run(main())

    def test_small_ranges_ask_for_little(self) -> None:
        async def main() -> None:
            script = script_of([b"x"] * 10, [b"x"] * 10)
            async with LogBroker(script) as broker, reading(broker, 0, 20) as reads:
                await take_all(reads)
                first, second = (fetch.topics[0].partitions[0] for fetch in broker.fetches())
                assert first.partition_max_bytes < 128 << 10
                assert second.partition_max_bytes < first.partition_max_bytes, "it has learnt their size"

        asyncio.run(main())


class TestLoss:
    def test_offsets_that_were_deleted_are_named_and_the_rest_is_read(self) -> None:
        async def main() -> None:
            script = script_of([b"a", b"b"], [b"c", b"d"])
            script.start = 2
            async with LogBroker(script) as broker, reading(broker, 1, 4) as reads:
                lost, data = await take_all(reads)
                assert lost.lost == Lost(1, 2, "the log starts at offset 2 now")
                assert lost.next_offset == 2
                assert offsets_of([data]) == [2, 3]

        asyncio.run(main())

    def test_a_range_below_the_start_of_the_log_is_lost_as_a_whole(self) -> None:
        async def main() -> None:
            script = Script(start=100, end=100)
            async with LogBroker(script) as broker, reading(broker, 1, 4) as reads:
                (lost,) = await take_all(reads)
                assert lost.lost == Lost(1, 4, "the log starts at offset 100 now")

        asyncio.run(main())

    def test_a_range_behind_the_end_of_the_log_is_lost_too(self) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            async with LogBroker(script) as broker, reading(broker, 5, 9) as reads:
                (lost,) = await take_all(reads)
                assert lost.lost == Lost(5, 9, "the log ends at offset 1 now")

        asyncio.run(main())

    def test_a_partition_that_is_gone_is_lost(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("barnabas.client.range_reads._GONE_S", 0.01)

        async def main() -> None:
            script = script_of([b"a"])
            async with LogBroker(script) as broker:
                broker.responses[ApiKey.METADATA] = lambda _: without_topic(
                    broker, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
                async with reading(broker, 0, 1) as reads:
                    (lost,) = await take_all(reads)
                    assert lost.lost == Lost(0, 1, "the cluster does not have the partition")

        asyncio.run(main())


def without_topic(broker: LogBroker, code: ErrorCode) -> Message:
    answer: MetadataResponse = broker.metadata()
    answer.topics = [MetadataResponseTopic(name=TOPIC, error_code=code)]
    return answer


class TestErrors:
    @pytest.mark.parametrize(
        "code",
        [
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.KAFKA_STORAGE_ERROR,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.UNKNOWN_SERVER_ERROR,
            ErrorCode.OFFSET_NOT_AVAILABLE,
            ErrorCode.OFFSET_OUT_OF_RANGE,
        ],
    )
    def test_what_can_pass_is_tried_again(self, code: ErrorCode) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            script.fetch_errors = [code, code]
            async with LogBroker(script) as broker, reading(broker, 0, 1) as reads:
                assert offsets_of(await take_all(reads)) == [0]

        asyncio.run(main())

    def test_what_cannot_pass_is_raised(self) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            script.fetch_errors = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
            async with LogBroker(script) as broker, reading(broker, 0, 1) as reads:
                with pytest.raises(TopicAuthorization, match="t-0"):
                    await take_all(reads)

        asyncio.run(main())

    def test_a_topic_that_may_not_be_seen_is_raised(self) -> None:
        async def main() -> None:
            async with LogBroker(script_of([b"a"])) as broker:
                broker.responses[ApiKey.METADATA] = lambda _: without_topic(
                    broker, ErrorCode.TOPIC_AUTHORIZATION_FAILED
                )
                async with reading(broker, 0, 1) as reads:
                    with pytest.raises(TopicAuthorization, match="topic 't'"):
                        await take_all(reads)

        asyncio.run(main())

    def test_framing_that_is_wrong_is_raised(self) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            script.batches[0] = b"\xff" * 80
            async with LogBroker(script) as broker, reading(broker, 0, 1) as reads:
                with pytest.raises(CorruptBatch):
                    await take_all(reads)

        asyncio.run(main())

    def test_a_fault_of_our_own_is_raised_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(reads: RangeReads, *_: object) -> None:
            raise AssertionError("this cannot be")

        monkeypatch.setattr(RangeReads, "_add", broken)

        async def main() -> None:
            async with LogBroker(script_of([b"a"])) as broker, reading(broker, 0, 1) as reads:
                with pytest.raises(AssertionError, match="this cannot be"):
                    await take_all(reads)

        asyncio.run(main())

    def test_a_cut_batch_is_asked_for_again_with_more_room(self) -> None:
        async def main() -> None:
            script = script_of([b"a" * 100])
            whole = script.batches[0]
            script.batches[0] = whole[:80]
            async with LogBroker(script) as broker, reading(broker, 0, 1) as reads:
                await until(lambda: len(broker.fetches()) >= 2)
                assert "do not hold a whole batch" in reads.why_waiting()
                script.batches[0] = whole
                assert offsets_of(await take_all(reads)) == [0]

        asyncio.run(main())

    def test_a_connection_that_breaks_is_made_again(self) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            script.end = 2
            async with LogBroker(script) as broker, reading(broker, 0, 2) as reads:
                assert await take(reads) is not None
                broker.cut_all()
                script.batches[1] = batch([b"b"], base_offset=1)
                assert offsets_of(await take_all(reads)) == [1]

        asyncio.run(main())

    def test_an_end_in_between_is_told(self) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            async with LogBroker(script) as broker, reading(broker, 0, 9) as reads:
                assert await take(reads) is not None
                await reads.stop()
                with pytest.raises(ClientClosed):
                    await take_all(reads)

        asyncio.run(main())


class TestWaiting:
    def test_what_is_not_written_yet_is_waited_for(self) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            async with LogBroker(script) as broker, reading(broker, 0, 2) as reads:
                assert await take(reads) is not None
                await until(lambda: len(broker.fetches()) >= 3)
                assert reads.why_waiting() == ("t-0 at offset 1 of 2: the partition ends at offset 1 so far")
                script.batches[1], script.end = batch([b"b"], base_offset=1), 2
                assert offsets_of(await take_all(reads)) == [1]
                assert reads.why_waiting() == "nothing is left to read"

        asyncio.run(main())

    def test_a_partition_without_leader_is_waited_for(self) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            script.leader = -1
            async with LogBroker(script) as broker, reading(broker, 0, 1) as reads:
                await until(lambda: "it has no leader" in reads.why_waiting())
                script.leader = 1
                assert offsets_of(await take_all(reads)) == [0]

        asyncio.run(main())


class TestLeaders:
    def test_a_leader_that_moves_is_followed(self) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            async with two_brokers(script) as (first, second):
                async with reading(first, 0, 2) as reads:
                    assert await take(reads) is not None
                    script.batches[1], script.end = batch([b"b"], base_offset=1, leader_epoch=1), 2
                    script.leader, script.leader_epoch = 2, 1
                    assert offsets_of(await take_all(reads)) == [1]
                assert second.fetches()

        asyncio.run(main())

    def test_a_replica_nearby_is_read_when_the_leader_says_so(self) -> None:
        async def main() -> None:
            script = script_of([b"a"])
            script.preferred = 2
            async with two_brokers(script) as (first, second):
                async with reading(first, 0, 1, client_rack="r1") as reads:
                    assert offsets_of(await take_all(reads)) == [0]
                assert first.fetches()[0].rack_id == "r1"
                assert second.fetches()

        asyncio.run(main())

    def test_a_replica_nearby_that_lags_behind_does_not_decide_what_is_lost(self) -> None:
        async def main() -> None:
            leading, lagging = script_of([b"a"], [b"b"]), Script(preferred=2)
            leading.preferred = 2
            async with LogBroker(leading) as first, LogBroker(lagging, 2) as second:
                first.advertised[2] = ("127.0.0.1", second.port)
                second.responses[ApiKey.METADATA] = first.responses[ApiKey.METADATA]
                async with reading(first, 1, 2) as reads:
                    await until(lambda: len(second.fetches()) >= 1)
                    leading.preferred = -1
                    assert offsets_of(await take_all(reads)) == [1]

        asyncio.run(main())
