"""Which partition of an internal topic keeps a key: Java's string hash, so that Kafka agrees."""

from functools import lru_cache

__all__ = ["java_hash", "partition_of"]

_INT32_MIN = -(2**31)


def java_hash(text: str) -> int:
    """`String.hashCode()` of Java: over UTF-16 code units, wrapped to a signed 32-bit number."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


@lru_cache(maxsize=16_384)
def partition_of(key: str, partition_count: int) -> int:
    """The partition that keeps `key`, from 0 to `partition_count` - 1."""
    assert partition_count > 0, partition_count
    value = java_hash(key)
    # Java's Math.abs leaves its smallest number negative; Kafka takes it for 0.
    return (0 if value == _INT32_MIN else abs(value)) % partition_count
