"""Listeners, admission, sweeping and stopping."""

import asyncio
import os
import resource
import socket
import tracemalloc

import pytest

from barnabas.base.clock import ManualClock
from barnabas.net.errors import ListenFault
from barnabas.net.limits import ConnectionLimits, ServerLimits
from barnabas.net.listener import Listener
from barnabas.net.server import Server
from tests.net._kit import LOOPS, Client, Kept, Site, answer, echo, frame, run, turns, until

both_loops = pytest.mark.parametrize("loop", LOOPS)


@both_loops
class TestListeners:
    def test_several_listeners_have_their_own_names_and_limits(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            server = Server(kept.on_request)
            inside = server.bind(Listener("IN", "127.0.0.1", 0))
            outside = server.bind(Listener("OUT", "127.0.0.1", 0, ConnectionLimits(request_bytes_max=50)))
            server.start()
            control = server.bind(Listener("CONTROL", "127.0.0.1", 0))
            clients = [await Client.connect(port) for port in (inside, outside, control)]
            for client in clients:
                await client.send(frame(b"x" * 30))
            await kept.wait_for(3)
            assert sorted(connection.listener for connection, _ in kept.requests) == ["CONTROL", "IN", "OUT"]
            await clients[0].send(frame(b"x" * 60))
            await kept.wait_for(4)
            for index in range(4):
                kept.finish(index, None)
            await clients[1].send(frame(b"x" * 60))
            assert await clients[1].is_cut()
            for client in clients:
                client.close()
            await server.stop(1_000)

        run(main(), loop)

    def test_nobody_is_served_before_start(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            server = Server(kept.on_request)
            port = server.bind(Listener("A", "127.0.0.1", 0))
            client = await Client.connect(port)
            await client.send(frame(b"early"))
            await turns()
            assert kept.bodies == []
            server.start()
            await kept.wait_for(1)
            client.close()
            await until(lambda: not server.connections)
            await server.stop(1_000)

        run(main(), loop)

    @pytest.mark.skipif(not socket.has_ipv6, reason="the machine has no IPv6")
    @pytest.mark.parametrize("everywhere", ["", "::"])
    def test_every_interface_means_both_families(self, loop: str, everywhere: str) -> None:
        async def main() -> None:
            server = Server(echo)
            port = server.bind(Listener("ALL", everywhere, 0))
            server.start()
            for host, seen in (("127.0.0.1", "127.0.0.1"), ("::1", "::1")):
                client = await Client.connect(port, host=host)
                await client.send(frame(b"hi"))
                assert await client.read_answer() == b"hi"
                (connection,) = server.connections
                assert connection.peer_host == seen
                client.close()
                await until(lambda: not server.connections)
            await server.stop(1_000)

        run(main(), loop)


def test_a_port_in_use_is_said_in_one_sentence() -> None:
    async def main() -> None:
        server = Server(echo)
        port = server.bind(Listener("A", "127.0.0.1", 0))
        with pytest.raises(ListenFault) as caught:
            server.bind(Listener("B", "127.0.0.1", port))
        assert str(caught.value) == (
            f"listener B cannot listen on 127.0.0.1:{port}: the port is in use;"
            " stop the program that has it, or choose another port"
        )
        await server.stop(0)

    run(main())


class TestAdmission:
    def test_connections_over_the_limits_are_refused_and_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with Site(echo, server_limits=ServerLimits(connections_per_host_max=2)) as site:
                first, second = await site.client(), await site.client()
                third = await site.client()
                assert await third.is_cut()
                assert "127.0.0.1 has 2 connections already (max.connections.per.ip)" in caplog.text
                assert (site.server.accepted_total, site.server.refused_total) == (2, 1)
                first.close()
                await until(lambda: len(site.server.connections) == 1)
                fourth = await site.client()
                for client in (second, fourth):
                    await client.send(frame(b"in"))
                    assert await client.read_answer() == b"in"

        run(main())

    def test_a_rate_of_new_connections_leaves_the_rest_in_the_backlog(self) -> None:
        async def main() -> None:
            clock = ManualClock()
            async with Site(
                echo, server_limits=ServerLimits(connections_per_second_max=2), clock=clock
            ) as site:
                clients = [await site.client() for _ in range(5)]
                await turns()
                assert len(site.server.connections) == 2
                for expected in (4, 5):
                    clock.advance(1_000)
                    for listening in list(site.server._sockets):
                        site.server._accept_again(listening)
                    await turns()
                    assert len(site.server.connections) == expected
                await clients[4].send(frame(b"last"))
                assert await clients[4].read_answer() == b"last"

        run(main())

    @pytest.mark.slow
    def test_running_out_of_descriptors_pauses_accepting_and_hurts_nobody(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with Site(echo) as site:
                first, _ = await site.connected()
                sock = socket.socket()
                sock.setblocking(False)
                late = Client(sock)
                soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
                highest = max(int(name) for name in os.listdir("/proc/self/fd"))
                used = {int(name) for name in os.listdir("/proc/self/fd")}
                fillers = [os.dup(0) for _ in range(highest - len(used) + 2)]
                resource.setrlimit(resource.RLIMIT_NOFILE, (max(fillers) + 1, hard))
                try:
                    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", site.port))
                    await until(lambda: "cannot accept connections: Too many open files" in caplog.text)
                    await first.send(frame(b"served"))
                    assert await first.read_answer() == b"served"
                finally:
                    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                    for fd in fillers:
                        os.close(fd)
                await late.send(frame(b"at last"))
                assert await late.read_answer() == b"at last"
                late.close()

        run(main())


class TestSweeping:
    def test_an_idle_connection_is_closed_and_a_busy_one_is_not(self) -> None:
        async def main() -> None:
            clock = ManualClock()
            kept = Kept()
            async with Site(kept.on_request, limits=ConnectionLimits(idle_ms_max=1_000), clock=clock) as site:
                idle, busy, waiting = await site.client(), await site.client(), await site.client()
                await waiting.send(frame(b"long poll"))
                await kept.wait_for(1)
                await until(lambda: len(site.server.connections) == 3)
                site.server.sweep()
                for _ in range(4):
                    clock.advance(400)
                    await busy.send(frame(b"x"))
                    count = len(kept.requests)
                    await kept.wait_for(count + 1)
                    kept.finish(count, None)
                    site.server.sweep()
                assert await idle.is_cut()
                assert len(site.server.connections) == 2
                kept.finish(0, [answer(b"done")])
                assert await waiting.read_answer() == b"done"

        run(main())

    def test_a_client_that_takes_no_answer_is_cut_off(self, caplog: pytest.LogCaptureFixture) -> None:
        async def main() -> None:
            clock = ManualClock()
            kept = Kept()
            async with Site(kept.on_request, limits=ConnectionLimits(idle_ms_max=1_000), clock=clock) as site:
                client = await site.client(receive_buffer=4096)
                await client.send(frame(b"give"))
                await kept.wait_for(1)
                kept.finish(0, [bytes(20_000_000)])
                await turns()
                (connection,) = site.server.connections
                assert connection.unsent_bytes > 0
                site.server.sweep()
                clock.advance(1_000)
                site.server.sweep()
                assert connection.is_closed
                assert "took nothing of" in caplog.text

        run(main())

    def test_when_memory_is_short_a_stalled_half_request_is_cut_off(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            clock = ManualClock()
            kept = Kept()
            limits = ServerLimits(held_bytes_max=100_000, stalled_ms_max=500)
            async with Site(kept.on_request, server_limits=limits, clock=clock) as site:
                stalled, honest = await site.client(), await site.client()
                await stalled.send(frame(bytes(200_000))[:150_000])
                await until(lambda: site.server.budget.is_full)
                await honest.send(frame(b"hungry"))
                await turns()
                assert kept.bodies == []
                site.server.sweep()
                clock.advance(500)
                site.server.sweep()
                assert await stalled.is_cut()
                await kept.wait_for(1)
                assert kept.bodies == [b"hungry"]
                assert "sent nothing of a half request for 500 ms while memory is short" in caplog.text

        run(main())

    def test_sweeps_go_on_by_themselves(self) -> None:
        async def main() -> None:
            async with Site(echo, limits=ConnectionLimits(idle_ms_max=8)) as site:
                client = await site.client()
                assert await client.is_cut()

        run(main())


@both_loops
class TestStopping:
    def test_what_is_owed_is_sent_before_the_end(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            server = Server(kept.on_request)
            port = server.bind(Listener("A", "127.0.0.1", 0))
            server.start()
            idle, busy = await Client.connect(port), await Client.connect(port)
            await busy.send(frame(b"x"))
            await kept.wait_for(1)
            stopping = asyncio.ensure_future(server.stop(30_000))
            assert await idle.is_cut()
            with pytest.raises(ConnectionRefusedError):
                await Client.connect(port)
            kept.finish(0, [answer(b"last words")])
            assert await busy.read_answer() == b"last words"
            assert await busy.is_cut()
            await stopping
            assert server.connections == {}
            idle.close()
            busy.close()

        run(main(), loop)

    def test_the_wait_is_bounded(self, loop: str, caplog: pytest.LogCaptureFixture) -> None:
        async def main() -> None:
            kept = Kept()
            server = Server(kept.on_request, on_closed=kept.on_closed)
            port = server.bind(Listener("A", "127.0.0.1", 0))
            server.start()
            client = await Client.connect(port)
            await client.send(frame(b"never answered"))
            await kept.wait_for(1)
            await server.stop(1)
            assert len(kept.closed) == 1
            assert "1 connections were cut off at the end" in caplog.text
            client.close()

        run(main(), loop)


def test_an_idle_connection_costs_little_memory() -> None:
    async def main() -> None:
        async with Site(echo) as site:
            clients = [await site.client() for _ in range(20)]  # warms up pools and caches
            for client in clients:
                await client.send(frame(bytes(1000)))
                await client.read_answer()
            tracemalloc.start()
            before, _ = tracemalloc.get_traced_memory()
            server_side: list[int] = []
            for _ in range(200):
                client = await site.client()
                await client.send(frame(bytes(1000)))
                await client.read_answer()
                server_side.append(1)
            after, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            # The test's own client objects are in the figure too.
            assert (after - before) / 200 < 10_000

    run(main())
