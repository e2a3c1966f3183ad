"""Bytes on their way out of one socket: memory by sendmsg, file ranges by sendfile.

O1  bytes leave in the order they were pushed, each once
O2  a file that is shorter than its slice raises FileCut before anything else is sent in its place
"""

import os
import socket
from collections import deque
from collections.abc import Iterable
from typing import Final

from barnabas.base.buffers import Buffer, FileSlice
from barnabas.net.errors import FileCut

__all__ = ["TURN_BYTES", "SendQueue"]

TURN_BYTES: Final = 2 * 1024 * 1024  # per flush, so that one fast reader does not keep the loop from the rest
_GATHER_MAX: Final = 64  # buffers per sendmsg; the kernel takes up to 1,024
_COPY_BYTES: Final = 256 * 1024  # of a file per read, where sendfile cannot be used


class SendQueue:
    """Holds what the socket has not taken yet.  One caller at a time."""

    __slots__ = ("_buffers", "_sends_files", "_slice_sent", "unsent_bytes")

    def __init__(self, *, sends_files: bool = True) -> None:
        self._buffers: deque[Buffer] = deque()
        self._slice_sent = 0  # of the first buffer, if that is a file slice
        self._sends_files = sends_files  # false under TLS, where the bytes must pass through us
        self.unsent_bytes = 0

    def push(self, buffers: Iterable[Buffer]) -> None:
        """Takes buffers to send; they must not change until they are."""
        for buffer in buffers:
            if length := len(buffer):
                self._buffers.append(buffer)
                self.unsent_bytes += length

    def flush(self, sock: socket.socket) -> bool:
        """Sends what the socket takes, up to about TURN_BYTES; true when nothing is left.

        Raises OSError when the connection is broken, FileCut when a file is.
        """
        buffers = self._buffers
        left = TURN_BYTES
        while buffers and left > 0:
            try:
                first = buffers[0]
                if isinstance(first, FileSlice):
                    sent = self._send_slice(sock, first)
                else:
                    sent = self._send_memory(sock)
            except BlockingIOError:
                break
            self.unsent_bytes -= sent
            left -= sent
        return not buffers

    def clear(self) -> None:
        """Forgets everything unsent, and lets go of the files."""
        self._buffers.clear()
        self.unsent_bytes = 0

    def _send_memory(self, sock: socket.socket) -> int:
        buffers = self._buffers
        first = buffers[0]
        assert not isinstance(first, FileSlice), first
        second = buffers[1] if len(buffers) > 1 else None
        if second is not None and not isinstance(second, FileSlice):
            return self._gather(sock)
        more = socket.MSG_MORE if second is not None else 0  # an answer's head and its records in one packet
        sent = sock.send(first, more)
        if sent == len(first):
            buffers.popleft()
        else:
            buffers[0] = memoryview(first)[sent:]
        return sent

    def _gather(self, sock: socket.socket) -> int:
        """Sends the memory up to the next file slice by one call."""
        buffers = self._buffers
        gathered: list[bytes | bytearray | memoryview] = []
        more = total = 0
        for buffer in buffers:
            if isinstance(buffer, FileSlice):
                more = socket.MSG_MORE
                break
            gathered.append(buffer)
            total += len(buffer)
            if len(gathered) == _GATHER_MAX or total >= TURN_BYTES:
                break
        sent = left = sock.sendmsg(gathered, (), more)
        for buffer in gathered:
            if left < len(buffer):
                buffers[0] = memoryview(buffer)[left:]
                break
            left -= len(buffer)
            buffers.popleft()
        return sent

    def _send_slice(self, sock: socket.socket, piece: FileSlice) -> int:
        position = piece.position + self._slice_sent
        left = piece.length - self._slice_sent
        if self._sends_files:
            sent = os.sendfile(sock.fileno(), piece.file.fileno(), position, min(left, TURN_BYTES))
        else:
            data = os.pread(piece.file.fileno(), min(left, _COPY_BYTES), position)
            sent = sock.send(data) if data else 0
        if sent == 0:
            raise FileCut(f"{piece.file.path} ends before byte {position + left}, which an answer promised")
        self._slice_sent += sent
        if sent == left:
            self._buffers.popleft()
            self._slice_sent = 0
        return sent
