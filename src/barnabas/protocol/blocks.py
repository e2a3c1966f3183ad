"""Blocks of memory to read into, reused when nobody looks at them any more.

B1  a block is handed out again only when no view of it is alive: `bytearray` itself knows, it
    refuses to change its size while it is exported, so nobody has to give views back

One pool serves all connections of one event loop; it is not for use by several threads.
"""

from collections import deque
from typing import Final

__all__ = ["BLOCK_BYTES", "BlockPool"]

BLOCK_BYTES: Final = 128 * 1024
_KEPT_PER_SIZE: Final = 4  # blocks that a pool remembers per size; more are left to the allocator
_KEPT_BYTES_MAX: Final = 4 * 2**20  # and so are larger ones


def _is_unused(block: bytearray) -> bool:
    """Whether no memoryview of the block is alive."""
    try:
        block.append(0)
    except BufferError:
        return False
    block.pop()
    return True


class BlockPool:
    """Remembers a few blocks of each size.  Sizes are powers of two from BLOCK_BYTES up."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[int, deque[bytearray]] = {}

    def take(self, size: int) -> bytearray:
        """A block of at least `size` bytes with stale content, which the caller owns."""
        rounded = BLOCK_BYTES if size <= BLOCK_BYTES else 1 << (size - 1).bit_length()
        kept = self._kept.get(rounded)
        if kept is None:
            kept = self._kept[rounded] = deque(maxlen=_KEPT_PER_SIZE)
        for _ in range(len(kept)):
            block = kept.pop()  # the newest first: its memory is warm
            if _is_unused(block):
                return block
            kept.appendleft(block)
        return bytearray(rounded)

    def give(self, block: bytearray) -> None:
        """Takes a block back that may still have views."""
        if len(block) <= _KEPT_BYTES_MAX:
            self._kept[len(block)].append(block)
