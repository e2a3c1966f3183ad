"""One connection: order, back-pressure, files, faults and endings."""

import logging
import os
import random
import socket
import struct
import tempfile

import pytest

from barnabas.base.buffers import Buffer, FileSlice, SharedFile
from barnabas.net.connection import TURN_REQUESTS, Connection
from barnabas.net.limits import ConnectionLimits, ServerLimits
from barnabas.protocol.connection import Request
from tests.net._kit import LOOPS, Kept, Site, answer, echo, frame, run, turns, until

both_loops = pytest.mark.parametrize("loop", LOOPS)


def file_of(data: bytes) -> SharedFile:
    fd, path = tempfile.mkstemp(prefix="barnabas-net-")
    os.write(fd, data)
    os.unlink(path)
    return SharedFile(fd, path)


@both_loops
class TestRequestsAndAnswers:
    def test_a_request_reaches_the_handler_and_its_answer_the_client(self, loop: str) -> None:
        async def main() -> None:
            async with Site(echo) as site:
                client, connection = await site.connected()
                await client.send(frame(b"hello"))
                assert await client.read_answer() == b"hello"
                assert connection.listener == "TEST"
                assert connection.peer_host == "127.0.0.1"
                assert connection.peer == f"127.0.0.1:{client.sock.getsockname()[1]}"

        run(main(), loop)

    def test_answers_leave_in_request_order(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request) as site:
                client = await site.client()
                await client.send(b"".join(frame(bytes([number])) for number in range(5)))
                await kept.wait_for(5)
                for number in (3, 1, 4, 0, 2):
                    kept.finish(number, [answer(bytes([number]))])
                assert [await client.read_answer() for _ in range(5)] == [bytes([n]) for n in range(5)]

        run(main(), loop)

    def test_a_request_may_come_byte_by_byte(self, loop: str) -> None:
        async def main() -> None:
            async with Site(echo) as site:
                client = await site.client()
                for byte in frame(b"slow") + frame(b"slower"):
                    await client.send(bytes([byte]))
                    await turns(2)
                assert await client.read_answer() == b"slow"
                assert await client.read_answer() == b"slower"

        run(main(), loop)

    def test_a_large_request_arrives_whole(self, loop: str) -> None:
        async def main() -> None:
            body = random.Random(1).randbytes(3_000_000)
            kept = Kept()
            async with Site(kept.on_request) as site:
                client = await site.client()
                await client.send(frame(body))
                await kept.wait_for(1)
                assert kept.bodies == [body]
                assert site.server.budget.used == len(body)
                kept.finish(0, [answer(b"")])
                assert site.server.budget.used == 0

        run(main(), loop)

    def test_none_sends_nothing(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request) as site:
                client = await site.client()
                await client.send(frame(b"silent") + frame(b"loud"))
                await kept.wait_for(2)
                kept.finish(1, [answer(b"LOUD")])
                kept.finish(0, None)
                assert await client.read_answer() == b"LOUD"

        run(main(), loop)

    def test_a_request_is_answered_once(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request) as site:
                client = await site.client()
                await client.send(frame(b""))
                await kept.wait_for(1)
                kept.finish(0, None)
                with pytest.raises(AssertionError, match=r"N2: request 0 of .* is not open"):
                    kept.finish(0, None)

        run(main(), loop)


@both_loops
class TestFiles:
    def test_memory_and_file_ranges_arrive_as_one_stream(self, loop: str) -> None:
        async def main() -> None:
            data = random.Random(2).randbytes(3_000_000)
            shared = file_of(data)
            pieces: list[Buffer] = [
                b"head",
                FileSlice(shared, 10, 1_000_000),
                b"",
                bytearray(b"middle"),
                FileSlice(shared, 5, 0),
                memoryview(b"more"),
                *(b"many" for _ in range(150)),
                FileSlice(shared, 2_000_000, 1_000_000),
                FileSlice(shared, 0, 3),
            ]
            expected = b"".join(p.read() if isinstance(p, FileSlice) else p for p in pieces)
            kept = Kept()
            async with Site(kept.on_request) as site:
                client = await site.client(receive_buffer=8192)
                await client.send(frame(b""))
                await kept.wait_for(1)
                kept.finish(0, pieces)
                assert await client.read(len(expected)) == expected
                await client.send(frame(b""))
                await kept.wait_for(2)
                kept.finish(1, [b"after"])
                assert await client.read(5) == b"after"
                assert site.server.bytes_sent == len(expected) + 5

        run(main(), loop)

    def test_a_file_that_was_cut_ends_the_connection_without_a_wrong_byte(
        self, loop: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            data = random.Random(3).randbytes(200_000)
            shared = file_of(data)
            kept = Kept()
            async with Site(kept.on_request) as site:
                client = await site.client()
                await client.send(frame(b"") + frame(b""))
                await kept.wait_for(2)
                os.ftruncate(shared.fileno(), 150_000)
                kept.finish(0, [b"head", FileSlice(shared, 0, 200_000)])
                kept.finish(1, [b"must never follow"])
                received = await client.read(1_000_000)
                assert received == (b"head" + data)[: len(received)]
                assert len(received) <= 150_004
            assert "ends before byte 200000, which an answer promised" in caplog.text

        run(main(), loop)


@both_loops
class TestBackPressure:
    def test_no_more_requests_are_handed_out_than_allowed(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request, limits=ConnectionLimits(requests_open_max=4)) as site:
                client, connection = await site.connected()
                await client.send(b"".join(frame(bytes([number])) for number in range(20)))
                await kept.wait_for(4)
                await turns()
                assert connection.requests_open == 4
                for number in range(20):
                    await kept.wait_for(number + 1)
                    assert connection.requests_open <= 4
                    kept.finish(number, [answer(bytes([number]))])
                assert kept.bodies == [bytes([number]) for number in range(20)]
                assert [await client.read_answer() for _ in range(20)] == kept.bodies

        run(main(), loop)

    def test_a_client_that_takes_no_answers_is_not_read_until_it_does(self, loop: str) -> None:
        async def main() -> None:
            big = bytes(200_000)
            seen = 0

            def reply(connection: Connection, request: Request) -> None:
                nonlocal seen
                seen += 1
                connection.finish(request.ticket, [answer(big)])

            limits = ConnectionLimits(unsent_bytes_max=500_000, requests_open_max=3)
            async with Site(reply, limits=limits) as site:
                client = await site.client(receive_buffer=32_768)
                await until(lambda: bool(site.server.connections))
                (connection,) = site.server.connections
                for _ in range(60):
                    await client.send(frame(b""))
                    await turns(3)
                assert seen < 60
                # The rule looks after each turn, and a turn hands out at most requests_open_max here.
                assert connection.unsent_bytes <= 500_000 + 3 * 200_004
                for _ in range(60):
                    assert await client.read_answer() == big
                assert seen == 60

        run(main(), loop)

    def test_a_muted_connection_is_not_read(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request) as site:
                client, connection = await site.connected()
                connection.mute()
                await client.send(frame(b"later"))
                await turns()
                assert kept.bodies == []
                connection.unmute()
                await kept.wait_for(1)

        run(main(), loop)

    def test_held_bytes_are_bounded_and_half_requests_still_get_through(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            size = 400_000
            async with Site(kept.on_request, server_limits=ServerLimits(held_bytes_max=600_000)) as site:
                clients = [await site.client() for _ in range(4)]
                whole = [frame(bytes([number]) * size) for number in range(4)]
                for client, data in zip(clients, whole, strict=True):
                    await client.send(data[:200_000])
                await until(lambda: site.server.budget.is_full)
                await turns()
                for client, data in zip(clients, whole, strict=True):
                    await client.send(data[200_000:])
                answered = 0
                while answered < 4:
                    await kept.wait_for(answered + 1)
                    assert site.server.budget.used <= 600_000 + 4 * 128 * 1024 + size
                    kept.finish(answered, [answer(b"ok")])
                    answered += 1
                assert sorted(body[0] for body in kept.bodies) == [0, 1, 2, 3]

        run(main(), loop)

    def test_a_busy_client_does_not_keep_the_others_waiting(self, loop: str) -> None:
        async def main() -> None:
            order: list[str] = []

            def note(connection: Connection, request: Request) -> None:
                order.append(bytes(request.body).decode())
                echo(connection, request)

            async with Site(note) as site:
                busy, _ = await site.connected()
                other, _ = await site.connected()
                await busy.send(frame(b"busy") * (10 * TURN_REQUESTS))
                await other.send(frame(b"other"))
                await until(lambda: "other" in order)
                assert order.index("other") <= 3 * TURN_REQUESTS
                await until(lambda: len(order) == 10 * TURN_REQUESTS + 1)

        run(main(), loop)


@both_loops
class TestFaults:
    @pytest.mark.parametrize(
        ("data", "cause"),
        [
            (struct.pack(">i", -5), "frame size -5 is outside 0 to 1000"),
            (struct.pack(">i", 1001), "frame size 1001 is outside 0 to 1000"),
            (b"GET / HTTP/1.1\r\n\r\n", "frame size 1195725856 is outside 0 to 1000"),
            (frame(b"", key=999), "no API has key 999"),
            (frame(b"", version=99), "Heartbeat has versions 0-4, not 99"),
            (struct.pack(">ih", 2, 12), "a request of 2 bytes has no header"),
        ],
    )
    def test_nonsense_ends_its_connection_with_a_line_that_names_peer_and_cause(
        self, loop: str, data: bytes, cause: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with Site(echo, limits=ConnectionLimits(request_bytes_max=1000)) as site:
                good = await site.client()
                bad, connection = await site.connected()
                await bad.send(data)
                assert await bad.is_cut()
                assert caplog.messages == [f"TEST: {connection.peer} closed: {cause}"]
                await good.send(frame(b"still here"))
                assert await good.read_answer() == b"still here"

        run(main(), loop)

    def test_answers_owed_before_the_nonsense_are_still_sent(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request, limits=ConnectionLimits(requests_open_max=1)) as site:
                client = await site.client()
                await client.send(frame(b"one") + frame(b"two") + struct.pack(">i", -1))
                await kept.wait_for(1)
                kept.finish(0, [answer(b"ONE")])
                await kept.wait_for(2)
                kept.finish(1, [answer(b"TWO")])
                assert await client.read_answer() == b"ONE"
                assert await client.read_answer() == b"TWO"
                assert await client.is_cut()

        run(main(), loop)

    def test_a_handler_that_fails_costs_one_connection(
        self, loop: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            def fail(connection: Connection, request: Request) -> None:
                if bytes(request.body) == b"bad":
                    raise ValueError("our bug")
                echo(connection, request)

            async with Site(fail) as site:
                good, bad = await site.client(), await site.client()
                await bad.send(frame(b"fine") + frame(b"bad") + frame(b"after"))
                assert await bad.read_answer() == b"fine"
                assert await bad.is_cut()
                await good.send(frame(b"ok"))
                assert await good.read_answer() == b"ok"
            assert "ValueError: our bug" in caplog.text
            assert "closed: internal error" in caplog.text

        run(main(), loop)

    def test_a_bug_of_ours_in_reading_costs_one_connection(
        self, loop: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with Site(echo) as site:
                good, (bad, connection) = await site.client(), await site.connected()
                connection.protocol._inbound = None  # type: ignore[assignment]  # breaks the state machine
                await bad.send(frame(b"x"))
                assert await bad.is_cut()
                await good.send(frame(b"ok"))
                assert await good.read_answer() == b"ok"
            assert "reading from" in caplog.text

        run(main(), loop)


@both_loops
class TestEnds:
    def test_when_the_client_goes_the_handler_is_told_and_late_answers_are_dropped(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request, on_closed=kept.on_closed) as site:
                client, connection = await site.connected()
                await client.send(frame(b"x"))
                await kept.wait_for(1)
                client.close()
                await until(lambda: bool(kept.closed))
                assert kept.closed == [connection]
                assert connection.is_closed
                kept.finish(0, [answer(b"late")])
                connection.close("twice")
                connection.close_after_flush()
                assert site.server.budget.used == 0

        run(main(), loop)

    def test_a_reset_ends_only_that_connection(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request, on_closed=kept.on_closed) as site:
                client = await site.client()
                await client.send(frame(b"x") + frame(b"half")[:6])
                await kept.wait_for(1)
                client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
                await until(lambda: bool(kept.closed))

        run(main(), loop)

    def test_a_reset_right_behind_half_a_request_is_noticed(self, loop: str) -> None:
        async def main() -> None:
            async with Site(echo) as site:
                clients = [await site.client() for _ in range(20)]
                await until(lambda: len(site.server.connections) == 20)
                for client in clients:
                    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    client.sock.send(b"\0\0\0")
                    client.close()
                await until(lambda: not site.server.connections)

        run(main(), loop)

    def test_requests_sent_before_the_client_closed_are_handed_out(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request, on_closed=kept.on_closed) as site:
                client = await site.client()
                await client.send(frame(b"acks=0") * 200)
                client.close()
                await until(lambda: bool(kept.closed))
                assert len(kept.bodies) == 200

        run(main(), loop)

    def test_close_sends_what_is_ready_and_logs_why(
        self, loop: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            def refuse_second(connection: Connection, request: Request) -> None:
                if bytes(request.body) == b"bad":
                    connection.close("undecodable")
                else:
                    echo(connection, request)

            async with Site(refuse_second) as site:
                client, connection = await site.connected()
                await client.send(frame(b"good") + frame(b"bad") + frame(b"never"))
                assert await client.read_answer() == b"good"
                assert await client.is_cut()
                assert caplog.messages == [f"TEST: {connection.peer} closed: undecodable"]

        with caplog.at_level(logging.WARNING):
            run(main(), loop)

    def test_close_after_flush_waits_for_open_requests_and_takes_no_more(self, loop: str) -> None:
        async def main() -> None:
            kept = Kept()
            async with Site(kept.on_request, limits=ConnectionLimits(requests_open_max=2)) as site:
                client, connection = await site.connected()
                await client.send(frame(b"1") + frame(b"2") + frame(b"3"))
                await kept.wait_for(2)
                connection.close_after_flush()
                kept.finish(1, [answer(b"two")])
                await turns()
                assert not connection.is_closed
                kept.finish(0, [answer(b"one")])
                assert await client.read_answer() == b"one"
                assert await client.read_answer() == b"two"
                assert await client.is_cut()
                assert kept.bodies == [b"1", b"2"]

        run(main(), loop)

    def test_close_after_flush_from_within_the_handler(self, loop: str) -> None:
        async def main() -> None:
            def last(connection: Connection, request: Request) -> None:
                connection.close_after_flush()
                echo(connection, request)

            async with Site(last) as site:
                client = await site.client()
                await client.send(frame(b"bye") + frame(b"never"))
                assert await client.read_answer() == b"bye"
                assert await client.is_cut()

        run(main(), loop)

    def test_close_after_flush_of_an_idle_connection_closes_it(self, loop: str) -> None:
        async def main() -> None:
            async with Site(echo) as site:
                client, connection = await site.connected()
                connection.close_after_flush()
                assert await client.is_cut()

        run(main(), loop)
