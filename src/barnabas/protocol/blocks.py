"""Blocks of memory to read into, reused when nobody looks at them any more.

B1  a block is handed out again only when no view of it is alive: its last user said so, or
    `bytearray` itself did, which refuses to change its size while it is exported.  So nobody has
    to give views back, and a forgotten view costs memory, never correctness.

One pool serves all connections of one event loop; it is not for use by several threads.
"""

from collections import deque
from typing import Final

__all__ = ["BLOCK_BYTES", "Block", "BlockPool"]

BLOCK_BYTES: Final = 128 * 1024
_KEPT_PER_SIZE: Final = 4  # blocks that a pool remembers per size; more are left to the allocator
_KEPT_BYTES_MAX: Final = 4 * 2**20  # and so are larger ones


class Block:
    """Memory and the one view of it through which its owner works."""

    __slots__ = ("memory", "view")

    def __init__(self, size: int) -> None:
        self.memory = bytearray(size)
        self.view = memoryview(self.memory)


def _is_unused(memory: bytearray) -> bool:
    """Whether no memoryview of the memory is alive."""
    try:
        memory.append(0)
    except BufferError:
        return False
    memory.pop()
    return True


class BlockPool:
    """Remembers a few blocks of each size.  Sizes are powers of two from BLOCK_BYTES up."""

    __slots__ = ("_clean", "_shared")

    def __init__(self) -> None:
        self._clean: list[Block] = []  # of BLOCK_BYTES, without views
        self._shared: dict[int, deque[Block]] = {}  # by size; views of them may be alive

    def take(self, size: int) -> Block:
        """A block of at least `size` bytes with stale content, which the caller owns."""
        if size <= BLOCK_BYTES:
            if self._clean:
                return self._clean.pop()
            size = BLOCK_BYTES
        else:
            size = 1 << (size - 1).bit_length()
        shared = self._shared.get(size, ())
        for index, block in enumerate(shared):
            if _is_unused(block.memory):
                block.view = memoryview(block.memory)
                del self._shared[size][index]
                return block
        return Block(size)

    def give(self, block: Block, *, shared: bool) -> None:
        """Takes a block back; `shared` says that others may still have views of it."""
        size = len(block.memory)
        if not shared and size == BLOCK_BYTES:
            if len(self._clean) < _KEPT_PER_SIZE:
                self._clean.append(block)
        elif size <= _KEPT_BYTES_MAX:
            block.view.release()
            if size not in self._shared:
                self._shared[size] = deque(maxlen=_KEPT_PER_SIZE)
            self._shared[size].append(block)
