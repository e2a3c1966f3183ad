"""The offset map of compaction in plain Python: the latest offset of each key, and which records stay.

The compiled twin keeps a hash of each key instead of the key, so it takes 32 to 64 bytes a key however long
keys are; this one keeps them whole.  Their results are the same.
"""

from typing import Final, NamedTuple, final

from barnabas.base.errors import Misuse
from barnabas.records._walk_plain import INT64_MIN, Data, check_count, piece, walk, wrap

__all__ = ["OffsetMap", "Retained"]


class Retained(NamedTuple):
    """What stays of a payload: a byte for each record, as `filter` takes it, and two counts."""

    keep: bytearray
    kept: int
    tombstones: int  # kept records with a key and no value


@final
class OffsetMap:
    """The latest offset of each key, for at most `capacity` keys.

    `seed`, 16 random bytes, keeps producers from making keys that the map takes for each other.
    `latest_offset` is the end, inclusive, of what the map knows; -1 at first.
    One caller at a time; another one gets Misuse.
    """

    def __init__(self, capacity: int, seed: bytes) -> None:
        if capacity < 1:
            raise Misuse(f"a map for {capacity} keys is of no use")
        if len(seed) != 16:
            raise Misuse(f"a seed has 16 bytes, not {len(seed)}")
        self.capacity: Final = capacity
        self.latest_offset = -1
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, payload: Data, count: int, base_offset: int, *, start_offset: int = INT64_MIN) -> bool:
        """Learn the keys of a payload from `start_offset` on; False, with nothing learnt, when it is full.

        It says so early: when the keys would not fit if all of them were new.  Records without a key
        count for `latest_offset` only.  Keys of a payload that turns out malformed may have been learnt.
        """
        data = bytes(payload)
        check_count(data, count)
        if len(self._offsets) + count > self.capacity:
            return False
        for walked in walk(data, count):
            offset = wrap(base_offset + walked.offset_delta)
            if offset < start_offset:
                continue
            self.reach(offset)
            key = piece(data, walked.key, walked.key_size)
            if key is not None:
                self._offsets[key] = max(offset, self._offsets.get(key, offset))
        return True

    def retain(self, payload: Data, count: int, base_offset: int, *, tombstones: bool) -> Retained:
        """Which records stay, by the rule of Kafka's cleaner.

        All behind `latest_offset`; of the others those with a key of which no later record is known,
        if they have a value or `tombstones` may stay.
        """
        data = bytes(payload)
        check_count(data, count)
        keep, deleted = bytearray(), 0
        for walked in walk(data, count):
            offset = wrap(base_offset + walked.offset_delta)
            key = piece(data, walked.key, walked.key_size)
            has_value = walked.value_size >= 0
            kept = offset > self.latest_offset or (
                key is not None and (has_value or tombstones) and offset >= self._offsets.get(key, offset)
            )
            keep.append(kept)
            deleted += kept and key is not None and not has_value
        return Retained(keep, sum(keep), deleted)

    def reach(self, offset: int) -> None:
        """Raise `latest_offset` to at least `offset`: batches that hold no keys were passed."""
        self.latest_offset = max(self.latest_offset, offset)
