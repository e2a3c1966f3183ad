"""The header checksum of LZ4 frames, right and as Kafka's magic 0 has it."""

import cramjam
import pytest

from barnabas.records.codecs import Codec, compress
from barnabas.records.lz4_header import with_kafka_checksum, with_right_checksum, xxhash32_short


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF), (b"abcd", 0xA3643705)],
)
def test_the_hash_has_the_published_values(data: bytes, expected: int) -> None:
    assert xxhash32_short(data) == expected


def test_the_right_checksum_is_the_one_of_the_library() -> None:
    frame = bytes(compress(Codec.LZ4, b"data " * 100))
    for wrong in range(256):
        broken = frame[:6] + bytes([wrong]) + frame[7:]
        assert with_right_checksum(broken) == frame


def test_kafkas_checksum_covers_the_magic_too() -> None:
    frame = bytes(compress(Codec.LZ4, b"data " * 100))
    changed = with_kafka_checksum(frame)
    assert changed[6] == xxhash32_short(frame[:6]) >> 8 & 0xFF
    assert changed[6] != frame[6]
    with pytest.raises(cramjam.DecompressionError, match="headerChecksum"):
        cramjam.lz4.decompress(bytes(changed))
    assert with_right_checksum(changed) == frame


def test_a_content_size_is_part_of_the_header() -> None:
    header = bytes.fromhex("04224d186840") + (5).to_bytes(8, "little")
    assert with_right_checksum(header + b"\0rest") == header + b"\x61rest"


@pytest.mark.parametrize("frame", [b"", b"\x04\x22\x4d", bytes.fromhex("04224d186040"), bytes(20)])
def test_what_is_too_short_or_no_frame_is_left_to_the_decompressor(frame: bytes) -> None:
    assert len(with_right_checksum(frame)) == len(frame)


def test_a_dictionary_id_is_left_to_the_decompressor() -> None:
    frame = bytes.fromhex("04224d1861400102030455") + bytes(4)
    assert with_right_checksum(frame) == frame
