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

from barnabas.protocol.blocks import BLOCK_BYTES, Block, BlockPool

__all__ = ["COPY_BYTES", "GROWTH", "Inbound"]

COPY_BYTES: Final = 16 * 1024
GROWTH: Final = 8
_SLACK_BYTES: Final = 4096  # read beyond a large frame: the next size and most small requests

_SIZE: Final = Layout(">i")
_size_at = _SIZE.unpack_from


class Inbound:
    """The receiving half of a connection: space to read into, frames out of it.

    Call `space`, read into what it returns, call `advance` with the number of bytes read; the view
    is void after that.  A size outside 0 to `frame_bytes_max` sets `fault` and nothing is cut then.
    """

    __slots__ = (
        "_block",
        "_earned",
        "_end",
        "_is_shared",
        "_pool",
        "_start",
        "_tail",
        "fault",
        "frame_bytes_max",
    )

    def __init__(self, *, frame_bytes_max: int, pool: BlockPool | None = None) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.fault: str | None = None
        self._pool = BlockPool() if pool is None else pool
        self._block: Block | None = None
        self._is_shared = False  # frames were cut from the block in place
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
        block = self._block
        if block is None:
            block = self._open()
        if self._end - self._start >= _SIZE.size:
            stop = self._start + _whole(block.view, self._start)
            if stop - self._start > COPY_BYTES:
                return block.view[self._end : stop + _SLACK_BYTES]
        return block.view[self._end :]

    def advance(self, count: int) -> list[memoryview]:
        """The frames that `count` more bytes complete, each without its size."""
        block = self._block
        assert block is not None, "space comes before advance"
        assert 0 <= count <= len(block.view) - self._end, "more bytes than there was space"
        self._end += count
        edges = self._edges(block.view)
        if not edges:
            frames = []
        else:
            first, stop = self._start, edges[-1][1]
            if stop - first > COPY_BYTES:
                view = block.view
                frames = [view[begin:end] for begin, end in edges]
                self._is_shared = True
            else:
                view = memoryview(bytearray(block.view[first:stop]))
                frames = [view[begin - first : end - first] for begin, end in edges]
            self._start = stop
        self._settle(block)
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

    def _edges(self, view: memoryview) -> list[tuple[int, int]]:
        """Where the complete frames in the block begin and end, without their sizes."""
        edges = []
        position, end, limit = self._start, self._end, self.frame_bytes_max
        while end - position >= 4:
            (size,) = _size_at(view, position)
            if not 0 <= size <= limit:
                self.fault = f"frame size {size} is outside 0 to {limit}"
                break
            position += 4
            stop = position + size
            if stop > end:
                break
            edges.append((position, stop))
            if size > self._earned:
                self._earned = size
            position = stop
        return edges

    def _settle(self, block: Block) -> None:
        """Keeps the unfinished bytes in the cheapest form that still has room for their frame."""
        rest = self._end - self._start
        if rest > COPY_BYTES and self.fault is None:
            if self._is_cramped(block.view, rest):
                self._tail = bytes(block.view[self._start : self._end])
                self._close(block)
                self._open()
            return
        self._tail = bytes(block.view[self._start : self._end]) if rest and self.fault is None else b""
        self._close(block)

    def _is_cramped(self, view: memoryview, started: int) -> bool:
        """Whether the unfinished frame should move to a block of its own now."""
        free = len(view) - self._end
        whole = _whole(view, self._start)
        if whole - started <= free:
            return False
        return free < COPY_BYTES or self._deserved(started) >= whole

    def _deserved(self, started: int) -> int:
        """How many bytes an unfinished frame may hold when `started` of them have arrived."""
        return max(BLOCK_BYTES, GROWTH * started, self._earned + 2 * _SLACK_BYTES)

    def _open(self) -> Block:
        """Takes a block and puts the unfinished bytes at its front."""
        tail = self._tail
        room = BLOCK_BYTES
        if len(tail) >= _SIZE.size:
            room = min(_whole(tail, 0) + _SLACK_BYTES, self._deserved(len(tail)))
        block = self._block = self._pool.take(room)
        if tail:
            self._end = len(tail)
            block.view[: self._end] = tail
            self._tail = b""
        return block

    def _close(self, block: Block) -> None:
        """Gives the block back; frames that were cut from it keep it from being reused."""
        self._pool.give(block, shared=self._is_shared)
        self._block = None
        self._is_shared = False
        self._start = self._end = 0


def _whole(data: bytes | memoryview, position: int) -> int:
    """The bytes of the frame that starts at `position`, its size included."""
    size: int = _size_at(data, position)[0]
    return _SIZE.size + size
