"""Memory that a worker keeps between the batches it is sent.

Every Arrow batch comes in a block of its own, some megabytes large.  The C library gives such blocks back to
the system as soon as they are free, and the next batch then costs a page fault, and a page to be cleared, for
every 4 KB of it: as much as the copy into it.
"""

import ctypes
from functools import cache
from typing import Final

__all__ = ["keep_freed_memory"]

# What glibc's mallopt calls them.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3

_BLOCK_BYTES: Final = 32 << 20  # the most that glibc takes: larger ones are still given back at once
_KEPT_BYTES: Final = 64 << 20


@cache
def keep_freed_memory() -> bool:
    """Lets this process keep up to 64 MB that are free; false where the C library knows no such thing."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _BLOCK_BYTES) and mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES))
