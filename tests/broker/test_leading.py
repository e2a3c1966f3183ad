"""What a broker answers for partitions with followers, and for those it no longer leads.

A single broker has neither, so the partition itself is told what a cluster would tell it.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from barnabas.testing import Broker
from tests.broker._calls import (
    batch,
    fetch,
    fetch_request,
    list_offset,
    partition_of,
    produce,
    produce_request,
    topic_id_of,
    values,
)
from tests.broker._wire import WireClient, until
from tests.broker.conftest import MakeClient
from tests.broker.handlers.test_delete_records import delete
from tests.broker.handlers.test_offset_for_leader_epoch import ask as ask_epoch

FOREVER_MS = 60_000


def tell(broker: Broker, work: Callable[[], object]) -> None:
    """Does something on the broker's own thread."""

    async def do() -> None:
        work()

    broker.run(do())


class TestWithAFollower:
    @pytest.fixture
    def followed(self, broker: Broker, topic: str) -> str:
        """Led here in epoch 1, with broker 2 in sync."""
        partition = partition_of(broker, topic)
        tell(
            broker,
            lambda: partition.lead(epoch=1, replicas=[1, 2], in_sync=[1, 2], high_watermark=0),
        )
        return topic

    def fetched(self, broker: Broker, topic: str, offset: int) -> None:
        """Broker 2 has everything before the offset."""
        partition = partition_of(broker, topic)

        def follow() -> None:
            if partition.leading.follower_fetched(2, offset, 0):
                assert broker.node is not None
                assert broker.node.services is not None
                broker.node.services.purgatory.moved(partition.topic_partition)

        tell(broker, follow)

    def answer(self, client: WireClient) -> PartitionProduceResponse:
        return client.receive(ProduceResponse).responses[0].partition_responses[0]

    def until_appended(self, broker: Broker, topic: str, end: int) -> None:
        until(lambda: partition_of(broker, topic).log.log_end_offset == end)

    def test_acks_all_is_answered_once_the_follower_has_it(
        self, broker: Broker, client: WireClient, followed: str
    ) -> None:
        client.send(produce_request(followed, batch(b"x"), timeout_ms=FOREVER_MS), 9)
        self.until_appended(broker, followed, 1)
        assert not client.has_answer()
        self.fetched(broker, followed, 1)
        found = self.answer(client)
        assert (found.error_code, found.base_offset) == (0, 0)

    def test_acks_1_is_answered_at_once_and_readers_wait(
        self, broker: Broker, client: WireClient, followed: str
    ) -> None:
        assert produce(client, followed, batch(b"x"), acks=1).error_code == 0
        assert values(fetch(client, followed)) == []
        self.fetched(broker, followed, 1)
        assert values(fetch(client, followed)) == [b"x"]

    def test_it_is_told_when_the_time_ran_out(self, client: WireClient, followed: str) -> None:
        client.send(produce_request(followed, batch(b"x"), timeout_ms=20), 9)
        assert self.answer(client).error_code == ErrorCode.REQUEST_TIMED_OUT

    def test_a_time_below_zero_has_run_out_already(self, client: WireClient, followed: str) -> None:
        client.send(produce_request(followed, batch(b"x"), timeout_ms=-1), 9)
        assert self.answer(client).error_code == ErrorCode.REQUEST_TIMED_OUT

    def test_it_is_told_when_somebody_else_leads_meanwhile(
        self, broker: Broker, client: WireClient, followed: str
    ) -> None:
        client.send(produce_request(followed, batch(b"x"), timeout_ms=FOREVER_MS), 9)
        self.until_appended(broker, followed, 1)
        tell(broker, partition_of(broker, followed).resign)
        assert self.answer(client).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    def test_too_few_in_sync_after_the_append(
        self, broker: Broker, client: WireClient, followed: str
    ) -> None:
        partition = partition_of(broker, followed)
        client.send(produce_request(followed, batch(b"x"), timeout_ms=FOREVER_MS), 9)
        self.until_appended(broker, followed, 1)

        def shrink() -> None:
            partition.log.config = replace(partition.log.config, min_insync_replicas=2)
            assert partition.leading.in_sync_changed([1])
            assert broker.node is not None
            assert broker.node.services is not None
            broker.node.services.purgatory.moved(partition.topic_partition)

        tell(broker, shrink)
        assert self.answer(client).error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def test_produces_behind_a_waiting_one_are_appended_and_answered_in_order(
        self, broker: Broker, client: WireClient, followed: str
    ) -> None:
        for number in range(3):
            client.send(produce_request(followed, batch(b"%d" % number), timeout_ms=FOREVER_MS), 9)
        self.until_appended(broker, followed, 3)
        self.fetched(broker, followed, 3)
        assert [self.answer(client).base_offset for _ in range(3)] == [0, 1, 2]


class TestLedElsewhere:
    @pytest.fixture
    def lost(self, broker: Broker, client: WireClient, topic: str) -> str:
        produce(client, topic, batch(b"x"))
        tell(broker, partition_of(broker, topic).resign)
        return topic

    @pytest.mark.parametrize("version", [3, 9, 10, 12, 13])
    def test_produce_says_so_and_who_leads(
        self, broker: Broker, client: WireClient, lost: str, version: int
    ) -> None:
        found = produce(client, lost, batch(b"y"), version=version, topic_id=topic_id_of(broker, lost))
        assert (found.error_code, found.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        if version >= 10:
            assert found.current_leader is not None
            assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (1, 0)

    @pytest.mark.parametrize("version", [0, 4, 12, 15, 16, 18])
    def test_so_does_fetch_at_once(self, broker: Broker, client: WireClient, lost: str, version: int) -> None:
        request = fetch_request(
            lost, 0, topic_id=topic_id_of(broker, lost), max_wait_ms=FOREVER_MS, min_bytes=1
        )
        response = client.call(request, version, FetchResponse)
        (part,) = response.responses[0].partitions
        assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert [node.node_id for node in response.node_endpoints] == ([1] if version >= 16 else [])

    def test_so_do_the_others(self, client: WireClient, lost: str) -> None:
        gone = ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert list_offset(client, lost, -1).error_code == gone
        assert ask_epoch(client, lost, 0).error_code == gone
        assert delete(client, lost, 0).error_code == gone

    def test_a_waiting_fetch_is_told(self, broker: Broker, connect: MakeClient, topic: str) -> None:
        reader = connect()
        reader.send(fetch_request(topic, 0, max_wait_ms=FOREVER_MS, min_bytes=1), 12)
        assert broker.node is not None
        services = broker.node.services
        assert services is not None
        until(lambda: len(services.purgatory) > 0)
        tell(broker, partition_of(broker, topic).resign)
        (part,) = reader.receive(FetchResponse).responses[0].partitions
        assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
