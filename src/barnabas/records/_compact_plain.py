"""The offset map of compaction in plain Python: the latest offset of each key, and which records stay.

The compiled twin keeps 24 bytes a slot, a hash and an offset, whatever the keys; this one keeps the keys.
Their results are the same.
"""

from typing import Final, NamedTuple, final

from barnabas.base.errors import Misuse
from barnabas.records._walk_plain import INT32_MAX, INT64_MIN, Data, piece, walk, wrap

__all__ = ["OffsetMap", "Retained"]


class Retained(NamedTuple):
    """What stays of a payload: a byte for each record, as `filter` takes it, and two counts."""

    keep: bytearray
    kept: int
    tombstones: int  # kept up to the map's latest offset, with a key and without a value


@final
class OffsetMap:
    """The latest offset of each key, for at most `keys_max` keys in `slots` slots of 24 bytes.

    The fuller the slots, the longer the searches; nine tenths do.  `seed`, 16 random bytes, keeps producers
    from making keys that the map takes for each other.  `latest_offset` is the end, inclusive, of what the
    map speaks for; -1 at first.  One caller at a time; another one gets Misuse.
    """

    def __init__(self, slots: int, seed: bytes, *, keys_max: int) -> None:
        if not 0 < keys_max < slots < INT32_MAX:
            raise Misuse(f"a map of {slots} slots cannot hold {keys_max} keys")
        if len(seed) != 16:
            raise Misuse(f"a seed has 16 bytes, not {len(seed)}")
        self.slots: Final = slots
        self.keys_max: Final = keys_max
        self.latest_offset = -1
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, payload: Data, count: int, base_offset: int, *, start_offset: int = INT64_MIN) -> bool:
        """Learn the keys of a payload from `start_offset` on; False when one of them found no room.

        `latest_offset` then is still below it, and the rest was not looked at.  Records without a key
        count for `latest_offset` only.  What comes before a malformed record is learnt.
        """
        data = bytes(payload)
        for walked in walk(data, count):
            offset = wrap(base_offset + walked.offset_delta)
            if offset < start_offset:
                continue
            key = piece(data, walked.key, walked.key_size)
            if key is not None:
                if key not in self._offsets and len(self._offsets) == self.keys_max:
                    return False
                self._offsets[key] = max(offset, self._offsets.get(key, offset))
            self.reach(offset)
        return True

    def get(self, key: bytes) -> int:
        """The latest offset of the key, or -1 when it was not seen."""
        return self._offsets.get(key, -1)

    def retain(self, payload: Data, count: int, base_offset: int, *, tombstones: bool) -> Retained:
        """Which records stay, by the rule of Kafka's cleaner.

        All behind `latest_offset`; of the others those with a key of which no later record is known,
        if they have a value or `tombstones` may stay.
        """
        data = bytes(payload)
        keep, deleted = bytearray(), 0
        for walked in walk(data, count):
            offset = wrap(base_offset + walked.offset_delta)
            key = piece(data, walked.key, walked.key_size)
            has_value = walked.value_size >= 0
            behind = offset > self.latest_offset
            kept = behind or (
                key is not None and (has_value or tombstones) and offset >= self._offsets.get(key, offset)
            )
            keep.append(kept)
            deleted += kept and not behind and not has_value
        return Retained(keep, sum(keep), deleted)

    def reach(self, offset: int) -> None:
        """Raise `latest_offset` to at least `offset`: batches that hold no keys were passed."""
        self.latest_offset = max(self.latest_offset, offset)
