"""Opening the addresses of a listener."""

import socket

import pytest

from barnabas.net.errors import ListenFault
from barnabas.net.listener import Listener, open_listener


def test_all_addresses_of_a_name_share_a_port() -> None:
    sockets, port = open_listener(Listener("A", "localhost", 0))
    assert sockets
    assert {sock.getsockname()[1] for sock in sockets} == {port}
    for sock in sockets:
        sock.close()


def test_an_unknown_name_is_said_in_one_sentence() -> None:
    with pytest.raises(ListenFault, match=r"^listener A cannot listen on no\.such\.host\.invalid:9092: "):
        open_listener(Listener("A", "no.such.host.invalid", 9092))


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ListenFault, match=r"^listener A cannot listen on 192\.0\.2\.1:0: "):
        open_listener(Listener("A", "192.0.2.1", 0))


def test_a_failure_leaves_no_socket_open() -> None:
    # An unclosed socket would warn, and a warning fails the test.
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ListenFault, match="the port is in use"),
    ):
        open_listener(Listener("A", "localhost", taken.getsockname()[1]))


def test_options_of_a_connection() -> None:
    listener = Listener("A", "127.0.0.1", 0, send_buffer_bytes=50_000, receive_buffer_bytes=60_000)
    (listening,), port = open_listener(listener)
    client = socket.create_connection(("127.0.0.1", port))
    sock, _ = listening.accept()
    listener.prepare(sock)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 100_000  # Linux doubles it
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 120_000
    for one in (listening, client, sock):
        one.close()
