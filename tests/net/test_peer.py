"""The client's end: answers, pipelining, and errors that name address and cause."""

import asyncio
import struct

import pytest

from barnabas.base.errors import Closed, PeerFault
from barnabas.net.connection import Connection
from barnabas.net.errors import ConnectFailed, PeerGone, PeerTimeout
from barnabas.net.peer import Peer
from barnabas.protocol.connection import Request, encode_response
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.net._kit import LOOPS, Kept, Site, run, turns, until

both_loops = pytest.mark.parametrize("loop", LOOPS)


def beat(connection: Connection, request: Request) -> None:
    """Answers a heartbeat with its generation as the error code."""
    message = HeartbeatRequest.decode(request.api_version, request.body)
    response = HeartbeatResponse(error_code=message.generation_id)
    connection.finish(
        request.ticket,
        encode_response(request.api_key, request.api_version, request.correlation_id, response),
    )


def heartbeat(generation_id: int) -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=generation_id, member_id="m")


async def connect(site: Site) -> Peer:
    return await Peer.connect("127.0.0.1", site.port, client_id="test", timeout_ms=10_000)


@both_loops
class TestAPeer:
    def test_a_request_gets_its_typed_answer(self, loop: str) -> None:
        async def main() -> None:
            async with Site(beat) as site:
                peer = await connect(site)
                response = await peer.request(heartbeat(7), 4, HeartbeatResponse, timeout_ms=10_000)
                assert response.error_code == 7
                assert peer.in_flight == 0
                peer.close()

        run(main(), loop)

    def test_requests_in_flight_get_their_own_answers(self, loop: str) -> None:
        async def main() -> None:
            async with Site(beat) as site:
                peer = await connect(site)
                responses = await asyncio.gather(
                    *(peer.request(heartbeat(n), 0, HeartbeatResponse, timeout_ms=10_000) for n in range(200))
                )
                assert [response.error_code for response in responses] == list(range(200))
                peer.close()

        run(main(), loop)

    def test_a_late_answer_is_dropped_and_the_next_is_right(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request) as site:
                peer = await connect(site)
                with pytest.raises(PeerTimeout) as caught:
                    await peer.request(heartbeat(1), 0, HeartbeatResponse, timeout_ms=1)
                assert (
                    str(caught.value) == f"127.0.0.1:{site.port} did not answer HeartbeatRequest within 1 ms"
                )
                second = asyncio.ensure_future(
                    peer.request(heartbeat(2), 0, HeartbeatResponse, timeout_ms=10_000)
                )
                await kept.wait_for(2)
                for connection, request in kept.requests:
                    beat(connection, request)
                assert (await second).error_code == 2
                peer.close()

        run(main(), loop)

    def test_an_unanswered_request_leaves_nothing_to_wait_for(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request) as site:
                peer = await connect(site)
                peer.send_unanswered(heartbeat(1), 0)
                await kept.wait_for(1)
                assert peer.in_flight == 0
                peer.close()

        run(main(), loop)

    def test_a_bare_token_is_exchanged(self, loop: str) -> None:
        async def main() -> None:
            def swap(connection: Connection, request: Request) -> None:
                token = bytes(request.body)[::-1]
                connection.finish(request.ticket, [struct.pack(">i", len(token)) + token])

            async with Site(swap) as site:
                peer = await connect(site)
                await until(lambda: bool(site.server.connections))
                (connection,) = site.server.connections
                connection.protocol.raw = True
                assert await peer.exchange_token(b"abc", timeout_ms=10_000) == b"cba"
                peer.close()

        run(main(), loop)

    def test_a_large_request_goes_out_in_parts(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request) as site:
                peer = await connect(site)
                message = HeartbeatRequest(group_id="g" * 30_000, generation_id=0, member_id="m" * 30_000)
                futures = [peer.send(message, 0) for _ in range(300)]
                assert peer.unsent_bytes > 0
                await kept.wait_for(300)
                assert peer.unsent_bytes == 0
                peer.close()
                await asyncio.gather(*futures, return_exceptions=True)

        run(main(), loop)


@both_loops
class TestEnds:
    def test_what_is_unanswered_fails_when_the_broker_goes(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request) as site:
                peer = await connect(site)
                waiting = [peer.send(heartbeat(n), 0) for n in range(2)]
                await kept.wait_for(2)
                kept.requests[0][0].abort()
                for result in await asyncio.gather(*waiting, return_exceptions=True):
                    assert isinstance(result, PeerGone)
                    assert str(result) == (
                        f"the connection to 127.0.0.1:{site.port} ended with 2 requests unanswered:"
                        " it was closed by the other side"
                    )
                assert peer.is_closed
                with pytest.raises(PeerGone):
                    peer.send(heartbeat(3), 0)

        run(main(), loop)

    def test_nonsense_from_the_broker_is_its_fault(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request) as site:
                peer = await connect(site)
                waiting = peer.send(heartbeat(1), 0)
                await kept.wait_for(1)
                kept.finish(0, [struct.pack(">iih", 6, 99, 0)])
                with pytest.raises(PeerFault) as caught:
                    await waiting
                assert str(caught.value) == (
                    f"127.0.0.1:{site.port} sent what no broker may: response 99 came where 0 was due"
                )
                assert peer.is_closed

        run(main(), loop)

    def test_after_close_nothing_is_sent(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request) as site:
                peer = await connect(site)
                waiting = peer.send(heartbeat(1), 0)
                peer.close()
                peer.close()
                with pytest.raises(Closed, match=r"^the connection to .* was closed$"):
                    await waiting
                with pytest.raises(Closed):
                    await peer.request(heartbeat(1), 0, HeartbeatResponse, timeout_ms=1)
                await turns()

        run(main(), loop)


class TestConnecting:
    def test_a_refused_connection_names_address_and_cause(self) -> None:
        async def main() -> None:
            async with Site(beat) as site:
                port = site.port
            with pytest.raises(ConnectFailed) as caught:
                await Peer.connect("127.0.0.1", port, client_id=None, timeout_ms=10_000)
            assert str(caught.value).startswith(f"cannot connect to 127.0.0.1:{port}: ")
            assert "refused" in str(caught.value)

        run(main(), "asyncio")

    def test_an_unknown_host_is_a_failure_to_connect(self) -> None:
        async def main() -> None:
            with pytest.raises(ConnectFailed, match=r"^cannot connect to no\.such\.host\.invalid:1: "):
                await Peer.connect("no.such.host.invalid", 1, client_id=None, timeout_ms=10_000)

        run(main(), "asyncio")
