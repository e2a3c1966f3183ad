"""The cluster as one thing: the way in, metadata, who to ask, and going on when brokers come and go."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.client.cluster import Cluster, CoordinatorKind
from barnabas.client.config import ADMIN, parse
from barnabas.client.errors import (
    ClientClosed,
    ConnectionLost,
    GroupAuthorization,
    InvalidTopic,
    KafkaError,
    NoBrokersAvailable,
    RequestTimedOut,
    UnknownTopic,
)
from barnabas.client.metadata import Metadata
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.schema import Message
from barnabas.protocol.versions import Versions
from tests.client._fake import CUT, HOLD, FakeBroker
from tests.client._kit import Client, settings_for
from tests.client._servers import ClientServer
from tests.net._kit import run, until


def cluster_at(bootstrap: str, **more: object) -> Cluster:
    return Cluster(parse(ADMIN, settings_for(bootstrap, **more)))


Work = Callable[[FakeBroker, Cluster], Coroutine[Any, Any, None]]


def with_cluster(work: Work, **more: object) -> None:
    """Runs a test with a started cluster of one fake broker; nothing may be left at the end."""

    async def main() -> None:
        async with FakeBroker() as broker:
            async with Client(broker.address, **more) as cluster:
                await work(broker, cluster)
            await cluster.close()
            assert len(asyncio.all_tasks()) == 1

    run(main())


def with_topics(broker: FakeBroker, *names: str, error: int = 0) -> Callable[[Message], MetadataResponse]:
    def respond(message: Message) -> MetadataResponse:
        assert isinstance(message, MetadataRequest)
        response = broker.metadata()
        asked = None if message.topics is None else [topic.name for topic in message.topics]
        response.topics = [
            MetadataResponseTopic(
                name=name,
                error_code=error,
                partitions=[MetadataResponsePartition(partition_index=0, leader_id=broker.node)],
            )
            for name in names
            if asked is None or name in asked
        ]
        return response

    return respond


class TestTheWayIn:
    def test_the_bootstrap_connection_is_kept_when_its_address_is_the_brokers_own(self) -> None:
        async def work(broker: FakeBroker, cluster: Cluster) -> None:
            assert cluster.metadata.cluster_id == "fake"
            assert await cluster.any_node() == 1
            assert broker.connects == 1

        with_cluster(work)

    def test_an_address_that_only_bootstraps_is_left_for_the_advertised_one(self) -> None:
        async def main() -> None:
            async with FakeBroker(7) as broker, FakeBroker(1) as front:
                front.advertised = broker.advertised
                async with Client(front.address) as cluster:
                    assert await cluster.any_node() == 7
                    assert await cluster.request(7, MetadataRequest(topics=[])) == broker.metadata()

        run(main())

    def test_advertised_addresses_that_cannot_be_reached_are_named(self) -> None:
        async def main() -> None:
            async with FakeBroker() as broker:
                broker.advertised = {1: ("nosuch.invalid", 9092), 2: ("127.0.0.1", 1)}
                with pytest.raises(NoBrokersAvailable) as caught:
                    await cluster_at(broker.address).start()
                text = str(caught.value)
                assert f"{broker.address} answers, but no address that it names for the brokers" in text
                assert "nosuch.invalid:9092 (advertised by broker 1): DNS: " in text
                assert "127.0.0.1:1 (advertised by broker 2): connect: Connection refused" in text
                assert "advertised.listeners of these brokers" in text
                assert {failure.node for failure in caught.value.failures} == {1, 2}

        run(main())

    def test_it_is_tried_again_until_the_time_is_up(self) -> None:
        async def main() -> None:
            async with FakeBroker() as broker:
                answers: list[object] = [CUT, CUT]
                broker.responses[ApiKey.METADATA] = lambda _: answers.pop() if answers else broker.metadata()
                cluster = cluster_at(broker.address, bootstrap_timeout_ms=30_000)
                await cluster.start()
                assert broker.count(ApiKey.METADATA) == 3
                await cluster.close()

        run(main())

    def test_a_closed_cluster_does_not_start(self) -> None:
        async def main() -> None:
            cluster = cluster_at("127.0.0.1:1")
            await cluster.close()
            with pytest.raises(ClientClosed):
                await cluster.start()

        run(main())


class TestRequests:
    def test_a_broker_that_nobody_named_is_an_error_that_refreshes(self) -> None:
        async def work(broker: FakeBroker, cluster: Cluster) -> None:
            with pytest.raises(ConnectionLost, match="broker 9 is not known to the cluster"):
                await cluster.request(9, MetadataRequest(topics=[]))
            await broker.wait_for(ApiKey.METADATA, 2)

        with_cluster(work)

    def test_purposes_have_connections_of_their_own(self) -> None:
        async def work(broker: FakeBroker, cluster: Cluster) -> None:
            broker.responses[ApiKey.HEARTBEAT] = lambda _: HOLD
            slow = cluster.send(1, HeartbeatRequest(), purpose="coordinator")
            await broker.wait_for(ApiKey.HEARTBEAT)
            await cluster.request(1, MetadataRequest(topics=[]))
            assert not slow.done()
            broker.release(HeartbeatResponse())
            await slow
            assert broker.connects == 2

        with_cluster(work)

    def test_versions_are_known_once_connected(self) -> None:
        async def main() -> None:
            async with FakeBroker(1) as first, FakeBroker(2) as second:
                first.advertised |= second.advertised
                second.offered[ApiKey.FETCH] = Versions(4, 11)
                del second.offered[ApiKey.PRODUCE]
                async with Client(first.address) as cluster:
                    assert cluster.version_of(2, ApiKey.FETCH) is None
                    await cluster.ready(2)
                    assert cluster.version_of(2, ApiKey.FETCH) == 11
                    assert cluster.version_of(2, ApiKey.PRODUCE) is None
                    assert cluster.feature(2, "transaction.version") == 0

        run(main())

    def test_after_close_there_is_only_closed(self) -> None:
        async def main() -> None:
            async with FakeBroker() as broker:
                async with Client(broker.address) as cluster:
                    pass
                with pytest.raises(ClientClosed):
                    await cluster.request(1, MetadataRequest(topics=[]))
                with pytest.raises(ClientClosed):
                    await cluster.any_node()
                with pytest.raises(ClientClosed):
                    await cluster.topic("t", timeout_ms=1000)

        run(main())


class TestRetry:
    def test_a_retriable_error_is_tried_again_and_a_final_one_is_not(self) -> None:
        async def work(broker: FakeBroker, cluster: Cluster) -> None:
            errors: list[KafkaError] = [ConnectionLost("1"), InvalidTopic("3"), ConnectionLost("2")]

            async def attempt() -> str:
                if errors:
                    raise errors.pop(0)
                return "done"

            with pytest.raises(InvalidTopic):
                await cluster.retry(attempt, timeout_ms=10_000)
            assert await cluster.retry(attempt, timeout_ms=10_000) == "done"

        with_cluster(work)

    def test_the_last_error_is_told_when_the_time_is_up(self) -> None:
        async def work(broker: FakeBroker, cluster: Cluster) -> None:
            async def attempt() -> None:
                raise ConnectionLost("still gone")

            with pytest.raises(ConnectionLost, match="still gone"):
                await cluster.retry(attempt, timeout_ms=30)

        with_cluster(work)

    def test_an_attempt_that_hangs_is_ended(self) -> None:
        async def work(broker: FakeBroker, cluster: Cluster) -> None:
            async def hang() -> None:
                await asyncio.Event().wait()

            with pytest.raises(RequestTimedOut, match="not done within 30 ms"):
                await cluster.retry(hang, timeout_ms=30)

            attempts = [hang]

            async def fail_then_hang() -> None:
                if attempts:
                    attempts.clear()
                    raise ConnectionLost("gone")
                await hang()

            with pytest.raises(ConnectionLost, match="gone") as caught:
                await cluster.retry(fail_then_hang, timeout_ms=60)
            assert caught.value.__notes__ == ["the next try did not end within the 60 ms of the call"]

        with_cluster(work)


class TestMetadata:
    def test_many_wishes_for_a_refresh_make_few_requests(self) -> None:
        async def work(broker: FakeBroker, cluster: Cluster) -> None:
            await broker.wait_for(ApiKey.METADATA, 2)
            for _ in range(100):
                cluster.want_refresh()
                await asyncio.sleep(0)
            await broker.wait_for(ApiKey.METADATA, 3)
            assert broker.count(ApiKey.METADATA) <= 4

        with_cluster(work)

    def test_it_is_asked_for_again_when_it_is_old(self) -> None:
        async def work(broker: FakeBroker, cluster: Cluster) -> None:
            await broker.wait_for(ApiKey.METADATA, 5)

        with_cluster(work, metadata_max_age_ms=1, retry_backoff_ms=1)

    def test_tracked_topics_stay_fresh_and_listeners_are_told(self) -> None:
        async def work(broker: FakeBroker, cluster: Cluster) -> None:
            told: list[Metadata] = []
            stop = cluster.on_change(told.append)
            broker.responses[ApiKey.METADATA] = with_topics(broker, "a", "b")
            cluster.track(["a"])
            await until(lambda: "a" in cluster.metadata.topics)
            assert told[-1] is cluster.metadata
            assert "b" not in cluster.metadata.topics
            cluster.track(None)
            await until(lambda: "b" in cluster.metadata.topics)
            cluster.untrack(None)
            cluster.untrack(["a"])
            stop()
            stop()
            count = len(told)
            await cluster.refresh(["c"])
            assert len(told) == count

        with_cluster(work)

    def test_a_topic_is_waited_for(self) -> None:
        async def work(broker: FakeBroker, cluster: Cluster) -> None:
            answers = [
                with_topics(broker, "t", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                with_topics(broker, "t", error=ErrorCode.LEADER_NOT_AVAILABLE),
            ]

            def respond(message: Message) -> MetadataResponse:
                assert isinstance(message, MetadataRequest)
                if not message.topics:
                    return broker.metadata()
                if len(answers) == 2:
                    assert message.allow_auto_topic_creation
                return answers.pop(0)(message) if answers else with_topics(broker, "t")(message)

            broker.responses[ApiKey.METADATA] = respond
            info = await cluster.topic("t", timeout_ms=10_000)
            assert [part.leader for part in info.partitions] == [1]
            assert await cluster.topic("t", timeout_ms=0) is info

        with_cluster(work)

    @pytest.mark.parametrize(
        ("code", "kind"),
        [
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UnknownTopic),
            (ErrorCode.INVALID_TOPIC_EXCEPTION, InvalidTopic),
        ],
    )
    def test_a_topic_that_cannot_be_had_is_an_error(self, code: ErrorCode, kind: type[KafkaError]) -> None:
        async def work(broker: FakeBroker, cluster: Cluster) -> None:
            broker.responses[ApiKey.METADATA] = with_topics(broker, "t", error=code)
            with pytest.raises(kind, match="topic 't': "):
                await cluster.topic("t", timeout_ms=30, create=False)

        with_cluster(work)

    def test_an_old_broker_is_not_asked_to_leave_topics_uncreated(self) -> None:
        async def main() -> None:
            async with FakeBroker() as broker:
                broker.offered[ApiKey.METADATA] = Versions(0, 1)
                async with Client(broker.address) as cluster:
                    await cluster.refresh(["t"])

        run(main())


class TestBrokersComeAndGo:
    def test_another_broker_is_asked_when_one_dies(self) -> None:
        async def main() -> None:
            async with FakeBroker(2) as second:
                async with FakeBroker(1) as first:
                    first.advertised |= second.advertised
                    second.advertised = first.advertised
                    cluster = cluster_at(first.address)
                    await cluster.start()
                await cluster.refresh()
                assert await cluster.any_node() == 2
                await cluster.close()

        run(main())

    def test_the_bootstrap_addresses_are_asked_when_nobody_known_answers(self) -> None:
        async def main() -> None:
            async with FakeBroker(1) as front:
                async with FakeBroker(2) as old:
                    front.advertised = old.advertised
                    cluster = cluster_at(front.address)
                    await cluster.start()
                async with FakeBroker(3) as new:
                    front.advertised = new.advertised
                    await cluster.refresh()
                    assert set(cluster.metadata.brokers) == {3}
                    assert await cluster.any_node() == 3
                    await cluster.close()

        run(main())

    def test_without_that_strategy_they_are_not(self) -> None:
        async def main() -> None:
            async with FakeBroker(1) as front:
                async with FakeBroker(2) as old:
                    front.advertised = old.advertised
                    cluster = cluster_at(front.address, metadata_recovery_strategy="none")
                    await cluster.start()
                with pytest.raises(NoBrokersAvailable, match=r"advertised by broker 2"):
                    await cluster.refresh()
                await cluster.close()

        run(main())

    def test_a_broker_may_send_the_client_back_to_the_start(self) -> None:
        async def work(broker: FakeBroker, cluster: Cluster) -> None:
            answers = [MetadataResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)]
            broker.responses[ApiKey.METADATA] = lambda _: answers.pop() if answers else broker.metadata()
            await cluster.refresh()
            assert set(cluster.metadata.brokers) == {1}
            assert broker.connects == 2

        with_cluster(work)

    def test_a_broker_that_is_gone_from_the_metadata_is_disconnected(self) -> None:
        async def main() -> None:
            async with FakeBroker(1) as first, FakeBroker(2) as second:
                first.advertised |= second.advertised
                second.advertised = first.advertised
                async with Client(first.address) as cluster:
                    await cluster.ready(2)
                    del first.advertised[2]
                    await cluster.refresh()
                    with pytest.raises(ConnectionLost, match="broker 2 is not known"):
                        await cluster.ready(2)

        run(main())

    @pytest.mark.slow
    def test_a_restart_is_survived_and_nobody_hears_of_it(
        self, own_server: ClientServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with Client(own_server.bootstrap_servers) as cluster:
                before = cluster.metadata.cluster_id
                await asyncio.to_thread(own_server.stop)
                with pytest.raises(KafkaError) as caught:
                    await cluster.refresh()
                assert caught.value.retriable
                await asyncio.to_thread(own_server.start)
                await cluster.retry(cluster.refresh, timeout_ms=30_000)
                assert cluster.metadata.cluster_id == before

        run(main())
        said = [record for record in caplog.records if record.name.startswith("barnabas.client")]
        assert [record for record in said if record.levelno > logging.DEBUG] == []

    @pytest.mark.slow
    def test_a_start_that_failed_can_be_tried_again(self, own_server: ClientServer) -> None:
        async def main() -> None:
            await asyncio.to_thread(own_server.stop)
            cluster = cluster_at(own_server.bootstrap_servers)
            with pytest.raises(NoBrokersAvailable):
                await cluster.start()
            await asyncio.to_thread(own_server.start)
            await cluster.start()
            assert await cluster.any_node() in cluster.metadata.brokers
            await cluster.close()

        run(main())


class TestCoordinators:
    @pytest.mark.parametrize("version", [0, 1, 3, 4, 6])
    def test_one_is_found_in_every_version_and_remembered(self, version: int) -> None:
        async def main() -> None:
            async with FakeBroker() as broker:
                broker.offered[ApiKey.FIND_COORDINATOR] = Versions(0, version)
                host, port = broker.advertised[1]

                def respond(message: Message) -> FindCoordinatorResponse:
                    assert isinstance(message, FindCoordinatorRequest)
                    if version >= 4:
                        assert message.coordinator_keys == ["g"]
                        found = Coordinator(key="g", node_id=1, host=host, port=port)
                        return FindCoordinatorResponse(coordinators=[found])
                    assert message.key == "g"
                    return FindCoordinatorResponse(node_id=1, host=host, port=port)

                broker.responses[ApiKey.FIND_COORDINATOR] = respond
                async with Client(broker.address) as cluster:
                    for _ in range(3):
                        assert await cluster.coordinator(CoordinatorKind.GROUP, "g") == 1
                    assert broker.count(ApiKey.FIND_COORDINATOR) == 1
                    cluster.forget_coordinator(CoordinatorKind.GROUP, "g")
                    await cluster.coordinator(CoordinatorKind.GROUP, "g")
                    assert broker.count(ApiKey.FIND_COORDINATOR) == 2

        run(main())

    def test_one_that_is_not_ready_is_waited_for_and_a_refusal_is_told(self) -> None:
        async def work(broker: FakeBroker, cluster: Cluster) -> None:
            def coordinator(code: int) -> FindCoordinatorResponse:
                host, port = broker.advertised[1]
                return FindCoordinatorResponse(
                    coordinators=[Coordinator(node_id=1, host=host, port=port, error_code=code)]
                )

            answers = [30, 0, 15, 15]
            broker.responses[ApiKey.FIND_COORDINATOR] = lambda _: coordinator(answers.pop())
            assert await cluster.coordinator(CoordinatorKind.GROUP, "g") == 1
            with pytest.raises(GroupAuthorization, match="coordinator of group 'h'"):
                await cluster.coordinator(CoordinatorKind.GROUP, "h")

        with_cluster(work)

    def test_one_at_a_broker_that_was_not_known_can_be_reached(self) -> None:
        async def main() -> None:
            async with FakeBroker(1) as first, FakeBroker(2) as second:
                host, port = second.advertised[2]

                def respond(message: Message) -> FindCoordinatorResponse:
                    first.advertised |= second.advertised
                    return FindCoordinatorResponse(
                        coordinators=[Coordinator(key="t", node_id=2, host=host, port=port)]
                    )

                first.responses[ApiKey.FIND_COORDINATOR] = respond
                async with Client(first.address) as cluster:
                    node = await cluster.coordinator(CoordinatorKind.TRANSACTION, "t")
                    await cluster.ready(node, purpose="coordinator")

        run(main())


class TestTheController:
    def test_it_is_the_one_named_or_anybody(self) -> None:
        async def work(broker: FakeBroker, cluster: Cluster) -> None:
            assert await cluster.controller() == 1
            nobody = broker.metadata()
            nobody.controller_id = -1
            broker.responses[ApiKey.METADATA] = lambda _: nobody
            await cluster.refresh()
            assert await cluster.controller() == 1

        with_cluster(work)
