"""Key → last offset, for compaction, in memory that is bounded and known: 24 bytes a slot.

M1  A key is remembered as 128 bits: two SipHashes of it under this process's secret.  Two keys that
    share all 128 would lose one of their values; among a billion keys the chance is below 10**-20.
M2  The table never holds more than `entries_max` keys = slots x load factor; `add` then refuses a new key
    and the caller cleans up to there.
M3  `latest_offset` is the last offset that the map speaks for: nothing above it may be judged by it.

Slots are three flat arrays with open addressing (prime size, second hash as the step), because a dict takes
about 160 bytes a key.  With log.cleaner.dedupe.buffer.size = 128 MiB it holds 5 million keys at load factor
0.9, as many as Apache Kafka's map; the table is made only as large as the offsets it is to cover need.
One caller at a time; lives as long as one clean.
"""

from array import array
from collections.abc import Sequence
from math import isqrt
from typing import Final

__all__ = ["BYTES_PER_SLOT", "OffsetMap"]

BYTES_PER_SLOT: Final = 24  # two hashes and an offset, 8 bytes each
_EMPTY: Final = -1
_SLOTS_MIN: Final = 3
_SECOND: Final = b"\x9d"  # what is put behind a key for its second hash


class OffsetMap:
    """The last offset of every key seen, for at most `keys_expected` keys within `memory_bytes`."""

    __slots__ = ("_first", "_offsets", "_second", "_slots", "entries", "entries_max", "latest_offset")

    def __init__(
        self, memory_bytes: int, *, load_factor: float = 0.9, keys_expected: int | None = None
    ) -> None:
        slots = memory_bytes // BYTES_PER_SLOT
        if keys_expected is not None:
            slots = min(slots, int(keys_expected / load_factor) + 64)
        self._slots: Final = _prime_at_most(max(slots, _SLOTS_MIN))
        self.entries_max: Final = max(1, min(int(self._slots * load_factor), self._slots - 1))
        self.entries = 0
        self.latest_offset = -1
        self._first = array("q", (0,)) * self._slots
        self._second = array("q", (0,)) * self._slots
        self._offsets = array("q", (_EMPTY,)) * self._slots

    def __len__(self) -> int:
        return self.entries

    @property
    def memory_bytes(self) -> int:
        return self._slots * BYTES_PER_SLOT

    @property
    def utilization(self) -> float:
        """How full the map is, of what it may take."""
        return self.entries / self.entries_max

    def add(self, keys: Sequence[bytes | None], offsets: Sequence[int], start: int = 0) -> int:
        """Note the offset of each key from index `start` on; a null key is passed over.

        Offsets must rise from call to call.  Returns the index of the first key that found no room, or
        the number of keys; `latest_offset` is then the offset of the last one taken.
        """
        first, second, known = self._first, self._second, self._offsets
        slots = self._slots
        stride = slots - 1
        index = start
        for index in range(start, len(keys)):
            key = keys[index]
            if key is None:
                continue
            hash_1 = hash(key)
            hash_2 = hash(key + _SECOND)
            slot = hash_1 % slots
            while (before := known[slot]) >= 0:
                if first[slot] == hash_1 and second[slot] == hash_2:
                    break
                slot = (slot + 1 + hash_2 % stride) % slots
            if before < 0:
                if self.entries >= self.entries_max:
                    self.latest_offset = max(self.latest_offset, offsets[index] - 1)
                    return index
                self.entries += 1
                first[slot] = hash_1
                second[slot] = hash_2
            known[slot] = offsets[index]
        if offsets:
            self.latest_offset = max(self.latest_offset, offsets[-1])
        return len(keys)

    def get(self, key: bytes) -> int:
        """The last offset of the key, or -1 when it was not seen."""
        return self.superseding([key])[0]

    def superseding(self, keys: Sequence[bytes | None]) -> list[int]:
        """For each key its last offset, or -1 for a key not seen and for a null one."""
        first, second, known = self._first, self._second, self._offsets
        slots = self._slots
        stride = slots - 1
        found: list[int] = []
        for key in keys:
            if key is None:
                found.append(_EMPTY)
                continue
            hash_1 = hash(key)
            slot = hash_1 % slots
            if (offset := known[slot]) < 0:
                found.append(_EMPTY)
                continue
            hash_2 = hash(key + _SECOND)
            while first[slot] != hash_1 or second[slot] != hash_2:
                slot = (slot + 1 + hash_2 % stride) % slots
                if (offset := known[slot]) < 0:
                    break
            found.append(offset)
        return found

    def speak_up_to(self, offset: int) -> None:
        """Everything up to `offset` has been looked at, keyed or not (M3)."""
        self.latest_offset = max(self.latest_offset, offset)


def _prime_at_most(number: int) -> int:
    """A prime size lets every step walk the whole table."""
    while any(number % divisor == 0 for divisor in range(2, isqrt(number) + 1)):
        number -= 1
    return number
