"""Key → last offset, for compaction, in memory that is bounded and known: 24 bytes a slot.

M1  A key is remembered as 128 bits of a keyed hash with a fresh random seed.  Two keys that share all of them
    would lose one of their values; among a billion keys the chance is below 10**-20.
M2  The map never holds more than `entries_max` keys = slots x load factor; `add` then refuses a new key
    and the caller cleans up to there.
M3  `latest_offset` is the last offset that the map speaks for: nothing above it may be judged by it.

The table itself is the kernel's (`records.kernel.OffsetMap`); this sizes it.  With
log.cleaner.dedupe.buffer.size = 128 MiB it holds 5 million keys at load factor 0.9, as many as Apache Kafka's
map, and it is made only as large as the offsets it is to cover need.  One caller at a time; lives as long as
one clean.
"""

import secrets
from typing import Final

from barnabas.records import kernel
from barnabas.records._compact_plain import Retained
from barnabas.records._walk_plain import Data

__all__ = ["BYTES_PER_SLOT", "OffsetMap"]

BYTES_PER_SLOT: Final = 24  # a hash of 16 bytes and an offset
_SLOTS_MIN: Final = 3
_SLOTS_MAX: Final = 2**31 - 2
_SEED_BYTES: Final = 16


class OffsetMap:
    """The last offset of every key seen, for at most `keys_expected` keys within `memory_bytes`."""

    __slots__ = ("_map", "entries_max")

    def __init__(
        self, memory_bytes: int, *, load_factor: float = 0.9, keys_expected: int | None = None
    ) -> None:
        slots = memory_bytes // BYTES_PER_SLOT
        if keys_expected is not None:
            slots = min(slots, int(keys_expected / load_factor) + 64)
        slots = min(max(slots, _SLOTS_MIN), _SLOTS_MAX)
        self.entries_max: Final = max(1, min(int(slots * load_factor), slots - 1))
        self._map: Final = kernel.OffsetMap(
            slots, secrets.token_bytes(_SEED_BYTES), keys_max=self.entries_max
        )

    def __len__(self) -> int:
        return len(self._map)

    @property
    def memory_bytes(self) -> int:
        return self._map.slots * BYTES_PER_SLOT

    @property
    def utilization(self) -> float:
        """How full the map is, of what it may take."""
        return len(self._map) / self.entries_max

    @property
    def latest_offset(self) -> int:
        return self._map.latest_offset

    def add(self, payload: Data, count: int, base_offset: int, first_offset: int = 0) -> bool:
        """Note the offset of every key of a payload from `first_offset` on; a null key is passed over.

        Offsets must rise from call to call.  False when a key found no room: `latest_offset` then is below
        its offset, and the rest was not looked at.  Raises InvalidRecord.
        """
        return self._map.put(payload, count, base_offset, start_offset=first_offset)

    def retain(self, payload: Data, count: int, base_offset: int, *, tombstones: bool) -> Retained:
        """Which records stay: `keep` has a byte for each, `kept` counts them.

        One may go when a later record has its key, when it has no key, or, with `tombstones` off, when it
        has no value.  Records that the map does not speak for stay (M3).
        """
        return self._map.retain(payload, count, base_offset, tombstones=tombstones)

    def get(self, key: bytes) -> int:
        """The last offset of the key, or -1 when it was not seen."""
        return self._map.get(key)

    def speak_up_to(self, offset: int) -> None:
        """Everything up to `offset` has been looked at, keyed or not (M3)."""
        self._map.reach(offset)
