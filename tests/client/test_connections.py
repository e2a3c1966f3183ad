"""Links: made when needed and made again, requests in order, every request ends, versions as agreed."""

import asyncio
import socket
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.base.buffers import join_buffers
from barnabas.client.config import ADMIN, ClientSettings, parse
from barnabas.client.connections import Connections, Link
from barnabas.client.dialing import Address, ConnectFailure
from barnabas.client.errors import (
    BadAnswer,
    ClientClosed,
    ConnectionLost,
    KafkaError,
    RequestTimedOut,
    UnsupportedByBroker,
)
from barnabas.net.errors import PeerGone
from barnabas.net.peer import Peer
from barnabas.protocol.api import ApiKey
from barnabas.protocol.connection import encode_response
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.protocol.schema import Message
from barnabas.protocol.versions import Versions
from tests.client._fake import CUT, HOLD, FakeBroker
from tests.client._kit import settings_for
from tests.net._kit import run, until


def settings(**more: object) -> ClientSettings:
    return parse(ADMIN, settings_for("unused:1", **more))


def beat(number: int) -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=number, member_id="m")


def numbered(message: Message) -> HeartbeatResponse:
    assert isinstance(message, HeartbeatRequest)
    return HeartbeatResponse(error_code=message.generation_id)


class Lost:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


Work = Callable[[FakeBroker, Link, Lost], Coroutine[Any, Any, None]]


def with_link(work: Work, **more: object) -> None:
    """Runs a test with a link to a fake broker that numbers heartbeats."""

    async def main() -> None:
        async with FakeBroker() as broker:
            broker.responses[ApiKey.HEARTBEAT] = numbered
            lost = Lost()
            link = Link(1, Address("127.0.0.1", broker.port), settings(**more), lost)
            try:
                await work(broker, link, lost)
            finally:
                await link.close()
                await link.close()

    run(main())


class TestSending:
    def test_requests_that_wait_for_the_connection_leave_in_order(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            answers = await asyncio.gather(*(link.send(beat(number)) for number in range(50)))
            assert [a.error_code for a in answers if isinstance(a, HeartbeatResponse)] == list(range(50))
            asked = [m.generation_id for _, _, m in broker.seen if isinstance(m, HeartbeatRequest)]
            assert asked == list(range(50))
            assert broker.connects == 1
            assert lost.count == 0

        with_link(work)

    def test_the_version_is_the_newest_of_both_or_lower_if_asked(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            await link.send(beat(0))
            await link.send(beat(0), version_max=2)
            assert [version for key, version, _ in broker.seen if key is ApiKey.HEARTBEAT] == [4, 2]

        with_link(work)

    def test_an_api_that_is_not_offered_says_so(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            del broker.offered[ApiKey.HEARTBEAT]
            broker.offered[ApiKey.LIST_GROUPS] = Versions(90, 99)
            with pytest.raises(UnsupportedByBroker, match=r"broker 1 at .* does not offer Heartbeat; .* 0-4"):
                await link.send(beat(1))
            with pytest.raises(UnsupportedByBroker, match=r"offers versions 90-99 of ListGroups"):
                await link.send(ListGroupsRequest())
            assert link.is_connected

        with_link(work)

    def test_a_message_that_the_version_cannot_carry_fails_alone(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            broker.responses[ApiKey.LIST_GROUPS] = lambda _: ListGroupsResponse()
            with pytest.raises(KafkaError, match="states_filter"):
                await link.send(ListGroupsRequest(states_filter=["Stable"]), version_max=1)
            assert isinstance(await link.send(ListGroupsRequest()), ListGroupsResponse)

        with_link(work)

    def test_a_request_without_an_answer_is_done_once_it_is_on_its_way(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            broker.responses[ApiKey.PRODUCE] = lambda _: HOLD
            answer = await link.send(ProduceRequest(acks=0), answered=False, version_max=12)
            assert answer == ProduceResponse()
            assert link.in_flight == 0
            await broker.wait_for(ApiKey.PRODUCE)

        with_link(work)

    def test_an_answer_to_a_cancelled_request_is_dropped(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            broker.responses[ApiKey.HEARTBEAT] = lambda _: HOLD
            first, second = link.send(beat(1)), link.send(beat(2))
            await broker.wait_for(ApiKey.HEARTBEAT, 2)
            first.cancel()
            broker.release(HeartbeatResponse(error_code=1))
            broker.release(HeartbeatResponse(error_code=2))
            assert await second == HeartbeatResponse(error_code=2)

        with_link(work)


class TestThrottling:
    def test_nothing_is_sent_until_the_time_is_over_and_then_in_order(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            broker.responses[ApiKey.LIST_GROUPS] = lambda _: ListGroupsResponse(throttle_time_ms=40)
            await link.send(ListGroupsRequest())
            waiting = [link.send(beat(number)) for number in range(5)]
            await asyncio.sleep(0.01)
            assert broker.count(ApiKey.HEARTBEAT) == 0
            answers = await asyncio.gather(*waiting)
            assert answers == [HeartbeatResponse(error_code=number) for number in range(5)]
            assert link.in_flight == 0

        with_link(work)

    def test_a_connection_that_ends_meanwhile_is_made_again_and_stays_quiet(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            broker.responses[ApiKey.LIST_GROUPS] = lambda _: ListGroupsResponse(throttle_time_ms=60)
            await link.send(ListGroupsRequest())
            waiting = link.send(beat(1))
            broker.cut_all()
            await until(lambda: not link.is_connected)
            second = link.send(beat(2))
            await until(lambda: link.is_connected)
            assert broker.count(ApiKey.HEARTBEAT) == 0
            assert [await waiting, await second] == [
                HeartbeatResponse(error_code=1),
                HeartbeatResponse(error_code=2),
            ]

        with_link(work)

    def test_running_out_of_time_under_a_quota_says_so(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            broker.responses[ApiKey.LIST_GROUPS] = lambda _: ListGroupsResponse(throttle_time_ms=60_000)
            await link.send(ListGroupsRequest())
            with pytest.raises(
                RequestTimedOut, match="its quota kept us from sending Heartbeat within 20 ms"
            ):
                await link.send(beat(1), timeout_ms=20)

        with_link(work)


class TestLosingTheConnection:
    def test_what_is_unanswered_fails_and_the_next_request_connects_again(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            broker.responses[ApiKey.HEARTBEAT] = lambda _: HOLD
            waiting = [link.send(beat(number)) for number in range(3)]
            await broker.wait_for(ApiKey.HEARTBEAT, 3)
            broker.cut_all()
            for each in waiting:
                with pytest.raises(ConnectionLost, match=r"broker 1: the connection to .* ended") as caught:
                    await each
                assert caught.value.retriable
            assert lost.count == 3
            broker.responses[ApiKey.HEARTBEAT] = numbered
            assert await link.send(beat(5)) == HeartbeatResponse(error_code=5)
            assert broker.connects == 2

        with_link(work)

    @pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
    @pytest.mark.parametrize("part", [0, 3, 1_000], ids=["nothing", "half an answer", "a whole answer"])
    def test_a_reset_right_behind_bytes_is_noticed(self, loop: str, part: int) -> None:
        async def main() -> None:
            with socket.create_server(("127.0.0.1", 0)) as server:
                server.setblocking(False)
                running = asyncio.get_running_loop()
                peer = await Peer.connect(*server.getsockname(), client_id="test", timeout_ms=10_000)
                accepted, _ = await running.sock_accept(server)
                first, second = peer.send(beat(1), 0), peer.send(beat(2), 0)
                await running.sock_recv(accepted, 1_000)
                answer = encode_response(ApiKey.HEARTBEAT, 0, 0, HeartbeatResponse(error_code=1))
                accepted.send(join_buffers(answer)[:part])
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                accepted.close()
                if part == 1_000:
                    assert (await first).message == HeartbeatResponse(error_code=1)
                for each in (first, second)[part == 1_000 :]:
                    with pytest.raises(PeerGone, match="Connection reset by peer"):
                        await each
                assert peer.is_closed

        run(main(), loop)

    def test_an_answer_that_belongs_to_no_request_is_the_brokers_fault(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            broker.correlation_shift = 7
            with pytest.raises(BadAnswer, match=r"response 8 came where 1 was due") as caught:
                await link.send(beat(1))
            assert not caught.value.retriable

        with_link(work)

    def test_a_request_that_is_not_answered_in_time_ends_the_connection(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            await link.ready()
            broker.responses[ApiKey.HEARTBEAT] = lambda _: HOLD
            first = link.send(beat(1))
            second = link.send(beat(2), timeout_ms=60_000)
            with pytest.raises(RequestTimedOut, match=r"broker 1 at .*: no answer to Heartbeat within 50 ms"):
                await first
            with pytest.raises(ConnectionLost, match="was given up"):
                await second
            assert not link.is_connected

        with_link(work, request_timeout_ms=50)

    def test_a_shorter_timeout_of_one_request_leaves_the_connection(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            await link.ready()
            broker.responses[ApiKey.HEARTBEAT] = lambda _: HOLD
            with pytest.raises(RequestTimedOut):
                await link.send(beat(1), timeout_ms=20)
            assert link.is_connected
            await broker.wait_for(ApiKey.HEARTBEAT)
            broker.release(HeartbeatResponse(error_code=1))
            broker.responses[ApiKey.HEARTBEAT] = numbered
            assert await link.send(beat(2)) == HeartbeatResponse(error_code=2)

        with_link(work)

    def test_what_waits_for_a_connection_runs_out_of_time_too(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            broker.responses[ApiKey.API_VERSIONS] = lambda _: HOLD
            waiting = [link.send(beat(1)), link.send(beat(2)), link.send(beat(3), timeout_ms=10)]
            for each in waiting:
                with pytest.raises(RequestTimedOut, match=r"broker 1 at .*: no connection for Heartbeat"):
                    await each

        with_link(work, request_timeout_ms=50)

    def test_one_timer_watches_requests_of_any_age(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            for number in range(20):
                await asyncio.gather(link.send(beat(number)), link.send(beat(number)))
                await asyncio.sleep(0.005)
            assert not link._watched
            broker.responses[ApiKey.HEARTBEAT] = lambda _: HOLD
            with pytest.raises(RequestTimedOut):
                await link.send(beat(1))

        with_link(work, request_timeout_ms=400)

    def test_closing_fails_what_is_unanswered_and_what_comes_later(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            broker.responses[ApiKey.HEARTBEAT] = lambda _: HOLD
            waiting = link.send(beat(1))
            await broker.wait_for(ApiKey.HEARTBEAT)
            await link.close()
            with pytest.raises(ClientClosed):
                await waiting
            with pytest.raises(ClientClosed):
                await link.send(beat(2))
            with pytest.raises(ClientClosed):
                await link.ready()

        with_link(work)

    def test_closing_while_it_connects_leaves_nothing(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            broker.responses[ApiKey.API_VERSIONS] = lambda _: HOLD
            waiting = link.send(beat(1))
            await broker.wait_for(ApiKey.API_VERSIONS)
            ready = asyncio.ensure_future(link.ready())
            await asyncio.sleep(0)
            await link.close(ConnectionLost("broker 1 left the cluster"))
            for each in (waiting, ready):
                with pytest.raises(ConnectionLost, match="broker 1 left the cluster"):
                    await each
            assert len(asyncio.all_tasks()) == 1

        with_link(work)


class TestConnectingAgain:
    def test_it_waits_longer_after_each_failure_and_requests_wait_with_it(self) -> None:
        async def main() -> None:
            lost = Lost()
            link = Link(1, Address("127.0.0.1", 1), settings(reconnect_backoff_ms=5), lost)
            for number in range(1, 4):
                with pytest.raises(ConnectFailure, match=r"127.0.0.1:1 \(advertised by broker 1\): connect"):
                    await link.send(beat(number))
                assert link.is_backing_off
                assert link.last_failure is not None
                assert link._backoff.failures == number
            assert lost.count == 3
            await link.close()

        run(main())

    def test_all_who_wait_share_one_try(self) -> None:
        async def main() -> None:
            link = Link(1, Address("127.0.0.1", 1), settings(), Lost())
            errors = await asyncio.gather(*(link.ready() for _ in range(5)), return_exceptions=True)
            assert all(isinstance(error, ConnectFailure) for error in errors)
            assert link._backoff.failures == 1
            await link.close()

        run(main())

    def test_a_success_forgets_the_failures(self) -> None:
        async def work(broker: FakeBroker, link: Link, lost: Lost) -> None:
            broker.responses[ApiKey.API_VERSIONS] = lambda _: CUT
            with pytest.raises(ConnectFailure):
                await link.ready()
            del broker.responses[ApiKey.API_VERSIONS]
            await link.ready()
            assert link.last_failure is None
            assert not link.is_backing_off
            assert link._backoff.failures == 0

        with_link(work)


class TestConnections:
    def test_there_is_one_link_per_broker_and_purpose(self) -> None:
        async def main() -> None:
            async with FakeBroker() as broker:
                address = Address("127.0.0.1", broker.port)
                connections = Connections(settings(), on_lost=Lost())
                data = connections.link(1, address, "data")
                assert connections.link(1, address, "data") is data
                assert connections.link(1, address, "coordinator") is not data
                assert connections.agreed_with(1) is None
                await data.ready()
                assert connections.agreed_with(1) is data.agreed
                assert connections.existing(1, "data") is data
                assert connections.existing(2, "data") is None
                await connections.close()
                with pytest.raises(ClientClosed):
                    connections.link(1, address, "data")

        run(main())

    def test_a_broker_that_moved_gets_a_new_link_and_the_old_one_ends(self) -> None:
        async def main() -> None:
            async with FakeBroker() as broker, FakeBroker() as moved:
                connections = Connections(settings(), on_lost=Lost())
                old = connections.link(1, Address("127.0.0.1", broker.port), "data")
                await old.ready()
                new = connections.link(1, Address("127.0.0.1", moved.port), "data")
                await new.ready()
                await until(lambda: not old.is_connected)
                connections.forget(1)
                await until(lambda: not new.is_connected)
                await connections.close()

        run(main())

    @pytest.mark.parametrize(("idle_ms", "stays"), [(0, False), (60_000, True), (-1, True)])
    def test_an_idle_connection_is_closed_in_time(self, idle_ms: int, stays: bool) -> None:
        async def main() -> None:
            async with FakeBroker() as broker:
                connections = Connections(settings(connections_max_idle_ms=idle_ms), on_lost=Lost())
                link = connections.link(1, Address("127.0.0.1", broker.port), "data")
                await link.ready()
                connections.close_idle()
                assert link.is_connected is stays
                await link.ready()
                await connections.close()

        run(main())
