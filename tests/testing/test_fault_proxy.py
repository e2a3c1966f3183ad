"""Tests of the fault proxy: each fault is seen by a client and ends when it is taken back."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from barnabas.base.errors import Misuse
from barnabas.testing.fault_proxy import FaultProxy

TIMEOUT_S = 30.0


class Echo:
    """A server that sends back what it gets."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(65_536):
                    connection.sendall(data)
            except OSError:
                return

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for connection in self._open:
            connection.close()
        for thread in self._threads:
            thread.join(TIMEOUT_S)


@pytest.fixture
def proxy() -> Iterator[FaultProxy]:
    echo = Echo()
    with FaultProxy(echo.port) as opened:
        yield opened
    echo.close()


def dial(proxy: FaultProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), TIMEOUT_S)


def receive(client: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (more := client.recv(count - len(data))):
        data += more
    return data


def test_without_faults_bytes_pass(proxy: FaultProxy) -> None:
    with dial(proxy) as client:
        client.sendall(b"x" * 300_000)
        assert receive(client, 300_000) == b"x" * 300_000
        assert proxy.connections == 1


def test_a_cut_ends_every_connection(proxy: FaultProxy) -> None:
    with dial(proxy) as client:
        client.sendall(b"x")
        receive(client, 1)
        assert proxy.cut() == 1
        assert client.recv(1) == b""


def test_a_reset_is_one(proxy: FaultProxy) -> None:
    with dial(proxy) as client:
        client.sendall(b"x")
        receive(client, 1)
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            client.recv(1)


@pytest.mark.parametrize("reset", [False, True])
def test_connections_can_end_after_so_many_bytes(proxy: FaultProxy, reset: bool) -> None:
    proxy.cut_after(10, reset=reset)
    with dial(proxy) as client:
        client.sendall(b"123456")
        try:
            assert len(receive(client, 6)) < 6
        except ConnectionResetError:
            assert reset
    proxy.heal()
    with dial(proxy) as client:
        client.sendall(b"123456")
        assert receive(client, 6) == b"123456"


def test_a_stall_holds_everything_back_until_it_is_over(proxy: FaultProxy) -> None:
    with dial(proxy) as client:
        client.sendall(b"1")
        assert receive(client, 1) == b"1"
        proxy.stall()
        client.sendall(b"2")
        client.settimeout(0.05)
        with pytest.raises(TimeoutError):
            client.recv(1)
        proxy.resume()
        client.settimeout(TIMEOUT_S)
        assert receive(client, 1) == b"2"


def test_new_connections_can_be_refused(proxy: FaultProxy) -> None:
    proxy.refuse()
    with dial(proxy) as client, contextlib.suppress(ConnectionResetError):  # as good a refusal
        assert client.recv(1) == b""
    proxy.accept()
    with dial(proxy) as client:
        client.sendall(b"1")
        assert receive(client, 1) == b"1"


def test_pieces_and_delays_change_no_byte(proxy: FaultProxy) -> None:
    proxy.split(3)
    proxy.delay(0.5)
    sent = bytes(range(200))
    with dial(proxy) as client:
        client.sendall(sent)
        assert receive(client, 200) == sent


def test_a_chosen_answer_is_lost_and_the_next_one_passes(proxy: FaultProxy) -> None:
    # API key 0, version 9, correlation id 9: its echo is an answer with the correlation id 0 << 16 | 9.
    request = struct.pack(">ihhi", 12, 0, 9, 9) + b"body"
    proxy.lose_answers(0, times=1)
    with dial(proxy) as client:
        client.sendall(request)
        assert client.recv(1) == b""
    assert proxy.lost_answers == 1
    with dial(proxy) as client:
        client.sendall(request)
        assert receive(client, len(request)) == request


def test_a_target_that_is_gone_ends_the_connection_and_another_can_take_its_place() -> None:
    first, second = Echo(), Echo()
    with FaultProxy(first.port) as proxy:
        first.close()
        with dial(proxy) as client, contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""
        proxy.retarget(second.port)
        with dial(proxy) as client:
            client.sendall(b"1")
            assert receive(client, 1) == b"1"
    second.close()


def test_it_needs_a_target_and_starts_once() -> None:
    proxy = FaultProxy()
    with pytest.raises(Misuse, match="needs the port of a broker"):
        proxy.start()
    proxy.start(1)
    with pytest.raises(Misuse, match="runs already"):
        proxy.start(1)
    with pytest.raises(Misuse, match="at least one byte"):
        proxy.split(0)
    proxy.stop()


def test_one_that_was_never_started_can_be_stopped() -> None:
    FaultProxy().stop()
