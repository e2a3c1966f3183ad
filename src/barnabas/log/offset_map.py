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

__all__ = ["BYTES_PER_SLOT", "OffsetMap", "Row"]

Row = tuple[int, bytes | None, bool, int, int]
"""A record as the kernel's `keys` gives it: offset, key, value is null, position, size."""

BYTES_PER_SLOT: Final = 24  # two hashes and an offset, 8 bytes each
_EMPTY: Final = -1
_PIECE_SLOTS: Final = 2**16
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
        self._first = _filled(0, self._slots)
        self._second = _filled(0, self._slots)
        self._offsets = _filled(_EMPTY, self._slots)

    def __len__(self) -> int:
        return self.entries

    @property
    def memory_bytes(self) -> int:
        return self._slots * BYTES_PER_SLOT

    @property
    def utilization(self) -> float:
        """How full the map is, of what it may take."""
        return self.entries / self.entries_max

    def add(self, rows: Sequence[Row], first_offset: int = 0) -> bool:
        """Note the offset of every key from `first_offset` on; a null key is passed over.

        Offsets must rise from call to call.  False when a key found no room: `latest_offset` then is the
        offset before it, and the rest was not looked at.
        """
        first, second, known = self._first, self._second, self._offsets
        slots = self._slots
        stride = slots - 1
        offset = -1
        for offset, key, _, _, _ in rows:
            if key is None or offset < first_offset:
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
                    self.speak_up_to(offset - 1)
                    return False
                self.entries += 1
                first[slot] = hash_1
                second[slot] = hash_2
            known[slot] = offset
        self.speak_up_to(offset)
        return True

    def keep(self, rows: Sequence[Row], *, tombstones: bool) -> bytearray:
        """A byte for each record: 1 to keep it, 0 when it may go.

        It may go when a later record has its key, when it has no key, or, with `tombstones` off, when it
        has no value.  Records that the map does not speak for stay (M3).
        """
        first, second, known = self._first, self._second, self._offsets
        slots = self._slots
        stride = slots - 1
        latest = self.latest_offset
        mask = bytearray(len(rows))
        for index, (offset, key, is_tombstone, _, _) in enumerate(rows):
            if offset > latest:
                mask[index] = 1
                continue
            if key is None or (is_tombstone and not tombstones):
                continue
            hash_1 = hash(key)
            slot = hash_1 % slots
            if (last := known[slot]) >= 0:
                hash_2 = hash(key + _SECOND)
                while first[slot] != hash_1 or second[slot] != hash_2:
                    slot = (slot + 1 + hash_2 % stride) % slots
                    if (last := known[slot]) < 0:
                        break
            mask[index] = offset >= last
        return mask

    def get(self, key: bytes) -> int:
        """The last offset of the key, or -1 when it was not seen."""
        hash_1, hash_2 = hash(key), hash(key + _SECOND)
        slot = hash_1 % self._slots
        while (offset := self._offsets[slot]) >= 0:
            if self._first[slot] == hash_1 and self._second[slot] == hash_2:
                break
            slot = (slot + 1 + hash_2 % (self._slots - 1)) % self._slots
        return offset

    def speak_up_to(self, offset: int) -> None:
        """Everything up to `offset` has been looked at, keyed or not (M3)."""
        self.latest_offset = max(self.latest_offset, offset)


def _filled(value: int, slots: int) -> "array[int]":
    """An array of one value, made in pieces: one call for all would keep the interpreter for 50 ms."""
    filled = array("q")
    piece = array("q", (value,)) * min(slots, _PIECE_SLOTS)
    while len(filled) < slots:
        filled.extend(piece[: slots - len(filled)])
    return filled


def _prime_at_most(number: int) -> int:
    """A prime size lets every step walk the whole table."""
    while any(number % divisor == 0 for divisor in range(2, isqrt(number) + 1)):
        number -= 1
    return number
