"""The send queue over real sockets: order, short writes, files, cut files."""

import os
import socket
import tempfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.buffers import Buffer, FileSlice, SharedFile
from barnabas.net.errors import FileCut
from barnabas.net.sending import TURN_BYTES, SendQueue

CONTENT = bytes(range(256)) * 1200


@pytest.fixture(scope="module")
def shared() -> SharedFile:
    fd, path = tempfile.mkstemp(prefix="barnabas-net-")
    os.write(fd, CONTENT)
    os.unlink(path)
    return SharedFile(fd, path)


def pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    ours.setblocking(False)
    theirs.setblocking(False)
    return ours, theirs


def pump(queue: SendQueue, ours: socket.socket, theirs: socket.socket) -> bytes:
    """Flushes and reads in turn until all is through."""
    received = bytearray()
    is_empty = False
    while not is_empty:
        is_empty = queue.flush(ours)
        with suppress(BlockingIOError):
            while data := theirs.recv(5000):
                received += data
    return bytes(received)


pieces = st.one_of(
    st.binary(max_size=9000),
    st.binary(max_size=200).map(bytearray),
    st.tuples(st.integers(0, 200_000), st.integers(0, 100_000)),
)


@pytest.mark.parametrize("sends_files", [True, False])
@given(drawn=st.lists(pieces, max_size=12))
def test_bytes_leave_in_order_each_once(
    sends_files: bool, drawn: list[bytes | bytearray | tuple[int, int]], shared: SharedFile
) -> None:
    buffers: list[Buffer] = [
        FileSlice(shared, *piece) if isinstance(piece, tuple) else piece for piece in drawn
    ]
    expected = b"".join(b.read() if isinstance(b, FileSlice) else b for b in buffers)
    queue = SendQueue(sends_files=sends_files)
    ours, theirs = pair()
    with ours, theirs:
        queue.push(buffers[:5])
        queue.push(buffers[5:])
        assert queue.unsent_bytes == len(expected)
        assert pump(queue, ours, theirs) == expected
        assert queue.unsent_bytes == 0


@pytest.mark.parametrize("sends_files", [True, False])
def test_a_file_shorter_than_its_slice_is_a_fault(sends_files: bool, shared: SharedFile) -> None:
    queue = SendQueue(sends_files=sends_files)
    queue.push([b"head", FileSlice(shared, len(CONTENT) - 10, 20), b"never"])
    ours, theirs = pair()
    with ours, theirs:
        with pytest.raises(
            FileCut, match=rf"ends before byte {len(CONTENT) + 10}, which an answer promised$"
        ):
            queue.flush(ours)
        assert theirs.recv(1000) == b"head" + CONTENT[-10:]


def test_a_flush_has_an_end_even_if_the_reader_is_fast(shared: SharedFile) -> None:
    queue = SendQueue()
    many: list[Buffer] = [b"x" * 100_000] * (3 * TURN_BYTES // 100_000)
    queue.push(many)
    before = queue.unsent_bytes

    class Sink:
        """Takes all it is given, like a client on a fast network."""

        def sendmsg(self, buffers: list[bytes], _: object, flags: int) -> int:
            return sum(map(len, buffers))

    assert not queue.flush(Sink())  # type: ignore[arg-type]  # stands for a socket
    assert TURN_BYTES <= before - queue.unsent_bytes < TURN_BYTES + 100_000


def test_clear_lets_go_of_files() -> None:
    fd, path = tempfile.mkstemp(prefix="barnabas-net-")
    os.unlink(path)
    queue = SendQueue()
    queue.push([FileSlice(SharedFile(fd, path), 0, 10)])
    queue.clear()
    assert queue.unsent_bytes == 0
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
