"""Received bytes cut into frames, the large ones without a copy.

I1  a frame is handed out as a writable view, and nothing writes to its bytes while a view lives
I2  between reads a connection holds the bytes of an unfinished frame and no more, until these pass
    COPY_BYTES; then it holds a block of at most GROWTH times what has arrived, or of the size of a
    frame that this peer has sent before
I3  a read that starts inside a large frame ends soon after it, so that little of the next frame
    has to be moved to a block of its own

Few bytes (COPY_BYTES) are copied out of the block, so that a request that waits pins its own size
and not a block; more than that is handed out in place.
"""

from struct import Struct as Layout
from typing import Final

from barnabas.protocol.blocks import BLOCK_BYTES, BlockPool

__all__ = ["COPY_BYTES", "GROWTH", "Inbound"]

COPY_BYTES: Final = 16 * 1024
GROWTH: Final = 8
_SLACK_BYTES: Final = 4096  # read beyond a large frame: the next size and most small requests

_SIZE: Final = Layout(">i")
_NOTHING: Final = memoryview(b"")


class Inbound:
    """The receiving half of a connection: space to read into, frames out of it.

    Call `space`, read into what it returns, call `advance` with the number of bytes read; the view
    is void after that.  A size outside 0 to `frame_bytes_max` sets `fault` and nothing is cut then.
    """

    __slots__ = ("_block", "_earned", "_end", "_pool", "_start", "_tail", "_view", "fault", "frame_bytes_max")

    def __init__(self, *, frame_bytes_max: int, pool: BlockPool | None = None) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.fault: str | None = None
        self._pool = BlockPool() if pool is None else pool
        self._block: bytearray | None = None
        self._view = _NOTHING  # of the block
        self._start = 0  # first byte of the block that belongs to no complete frame
        self._end = 0  # first byte of the block that is not received
        self._tail = b""  # the unfinished bytes while no block is held
        self._earned = 0  # the largest frame received so far, size included

    @property
    def unfinished_bytes(self) -> int:
        """How many received bytes belong to a frame that is not complete."""
        return len(self._tail) + self._end - self._start

    def space(self) -> memoryview:
        """Writable room for the next read, never empty."""
        if self._block is None:
            self._open()
        started = self._end - self._start
        if started >= _SIZE.size:
            stop = self._start + self._whole(self._view, self._start)
            if stop - self._start > COPY_BYTES:
                return self._view[self._end : stop + _SLACK_BYTES]
        return self._view[self._end :]

    def advance(self, count: int) -> list[memoryview]:
        """The frames that `count` more bytes complete, each without its size."""
        assert 0 <= count <= len(self._view) - self._end, "more bytes than there was space"
        self._end += count
        frames, stop = self._cut()
        if frames and stop - self._start <= COPY_BYTES:
            frames = self._copied(frames, stop)
        self._start = stop
        self._settle()
        return frames

    def receive(self, data: bytes | bytearray | memoryview) -> list[memoryview]:
        """The frames that `data` completes; for callers that have the bytes already."""
        frames: list[memoryview] = []
        left = memoryview(data)
        while left and self.fault is None:
            space = self.space()
            count = min(len(space), len(left))
            space[:count] = left[:count]
            frames += self.advance(count)
            left = left[count:]
        return frames

    def _whole(self, data: bytes | memoryview, position: int) -> int:
        """The bytes of the frame that starts at `position`, its size included."""
        size: int = _SIZE.unpack_from(data, position)[0]
        return _SIZE.size + size

    def _cut(self) -> tuple[list[memoryview], int]:
        """The complete frames in the block, and the position after the last one."""
        frames: list[memoryview] = []
        view, position, end = self._view, self._start, self._end
        while end - position >= 4:
            (size,) = _SIZE.unpack_from(view, position)
            if not 0 <= size <= self.frame_bytes_max:
                self.fault = f"frame size {size} is outside 0 to {self.frame_bytes_max}"
                break
            stop = position + 4 + size
            if stop > end:
                break
            frames.append(view[position + 4 : stop])
            if stop - position > self._earned:
                self._earned = stop - position
            position = stop
        return frames, position

    def _copied(self, frames: list[memoryview], stop: int) -> list[memoryview]:
        """The same frames in a buffer of their own."""
        copy = memoryview(bytearray(self._view[self._start : stop]))
        position = 0
        for index, frame in enumerate(frames):
            position += 4
            end = position + len(frame)
            frames[index] = copy[position:end]
            position = end
        return frames

    def _settle(self) -> None:
        """Keeps the unfinished bytes in the cheapest form that still has room for their frame."""
        rest = self._end - self._start
        if self.fault is not None:
            self._close()
        elif rest <= COPY_BYTES:
            self._tail = bytes(self._view[self._start : self._end]) if rest else b""
            self._close()
        elif self._is_cramped(rest):
            self._tail = bytes(self._view[self._start : self._end])
            self._close()
            self._open()

    def _is_cramped(self, started: int) -> bool:
        """Whether the unfinished frame should move to a block of its own now."""
        free = len(self._view) - self._end
        whole = self._whole(self._view, self._start)
        if whole - started <= free:
            return False
        return free < COPY_BYTES or self._deserved(started) >= whole

    def _deserved(self, started: int) -> int:
        """How many bytes an unfinished frame may hold when `started` of them have arrived."""
        return max(BLOCK_BYTES, GROWTH * started, self._earned + _SLACK_BYTES)

    def _open(self) -> None:
        """Takes a block and puts the unfinished bytes at its front."""
        tail = self._tail
        room = BLOCK_BYTES
        if len(tail) >= _SIZE.size:
            room = min(self._whole(tail, 0) + _SLACK_BYTES, self._deserved(len(tail)))
        self._block = self._pool.take(room)
        self._view = memoryview(self._block)
        self._start, self._end = 0, len(tail)
        self._view[: self._end] = tail
        self._tail = b""

    def _close(self) -> None:
        """Gives the block back; frames that were cut from it keep it from being reused."""
        assert self._block is not None, "only an open block is closed"
        self._view.release()
        self._pool.give(self._block)
        self._block = None
        self._view = _NOTHING
        self._start = self._end = 0
