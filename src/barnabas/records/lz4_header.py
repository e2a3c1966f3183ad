"""The checksum byte of an LZ4 frame header, right and as Kafka's magic 0 has it.

A frame starts with its magic (4 bytes), FLG, BD, perhaps 8 bytes of content size, then one checksum byte:
the second byte of xxHash-32 over what lies between magic and checksum.  Kafka's first writer hashed the
magic too; brokers and clients of that time check for that value, so messages of magic 0 keep it (KAFKA-3160).
Later readers ignore the byte in magic 0; cramjam cannot, so `with_right_checksum` mends it.
"""

from typing import Final

__all__ = ["with_kafka_checksum", "with_right_checksum", "xxhash32_short"]

_MAGIC_BYTES: Final = 4
_FLAGS_AT: Final = 4
_FLAG_CONTENT_SIZE: Final = 0x08
_FLAG_DICTIONARY_ID: Final = 0x01

_PRIMES: Final = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_MASK: Final = 0xFFFFFFFF


def with_right_checksum(frame: bytes | bytearray | memoryview) -> bytearray:
    """A copy of `frame` whose header checksum is the one of the LZ4 specification."""
    return _with_checksum(frame, hash_from=_MAGIC_BYTES)


def with_kafka_checksum(frame: bytes | bytearray | memoryview) -> bytearray:
    """A copy of `frame` whose header checksum is the one that Kafka expects in messages of magic 0."""
    return _with_checksum(frame, hash_from=0)


def _with_checksum(frame: bytes | bytearray | memoryview, *, hash_from: int) -> bytearray:
    copy = bytearray(frame)
    if len(copy) > _FLAGS_AT:
        flags = copy[_FLAGS_AT]
        checksum_at = _FLAGS_AT + 2 + (8 if flags & _FLAG_CONTENT_SIZE else 0)
        # Too short, or a dictionary that nobody has: left for the decompressor to refuse.
        if checksum_at < len(copy) and not flags & _FLAG_DICTIONARY_ID:
            copy[checksum_at] = xxhash32_short(bytes(copy[hash_from:checksum_at])) >> 8 & 0xFF
    return copy


def xxhash32_short(data: bytes) -> int:
    """xxHash-32 with seed 0 of fewer than 16 bytes, where the algorithm has no stripes."""
    assert len(data) < 16, "longer input needs the striped form"
    prime1, prime2, prime3, prime4, prime5 = _PRIMES
    state = (prime5 + len(data)) & _MASK
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        lane = int.from_bytes(data[start : start + 4], "little")
        state = _rotate((state + lane * prime3) & _MASK, 17) * prime4 & _MASK
    for byte in data[whole:]:
        state = _rotate((state + byte * prime5) & _MASK, 11) * prime1 & _MASK
    state = (state ^ state >> 15) * prime2 & _MASK
    state = (state ^ state >> 13) * prime3 & _MASK
    return state ^ state >> 16


def _rotate(value: int, count: int) -> int:
    return (value << count | value >> (32 - count)) & _MASK
