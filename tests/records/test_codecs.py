"""Compression: what goes in comes out, other writers' streams are read, damage and bombs are refused."""

import contextlib
import gzip
import struct
import tracemalloc
import zlib

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Misuse
from barnabas.records.codecs import CODEC_BY_ID, Codec, Levels, compress, decompress, levels_of
from barnabas.records.errors import CorruptBatch, RecordError, TooLarge, UnsupportedCodec

REAL_CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
TEXT = b"".join(b"record %d of many, " % number for number in range(20_000))
MB = 1024 * 1024


def noise(size: int) -> bytes:
    """Bytes that do not compress, the same ones each time."""
    state, out = 1, bytearray()
    while len(out) < size:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out += struct.pack(">Q", state)[:5]
    return bytes(out[:size])


class TestRoundTrips:
    @pytest.mark.parametrize("codec", list(Codec))
    @pytest.mark.parametrize(
        "data",
        [b"", b"x", b"a" * 300_000, TEXT, noise(100_000)],
        ids=["empty", "one byte", "repeats", "text", "noise"],
    )
    def test_data_comes_back(self, codec: Codec, data: bytes) -> None:
        assert bytes(decompress(codec, compress(codec, data), limit=len(data))) == data

    @given(data=st.binary(max_size=5000), codec=st.sampled_from(Codec), repeat=st.integers(1, 50))
    def test_any_data_comes_back(self, data: bytes, codec: Codec, repeat: int) -> None:
        data *= repeat
        assert bytes(decompress(codec, compress(codec, data), limit=len(data))) == data

    @pytest.mark.parametrize("codec", list(Codec))
    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    def test_any_kind_of_buffer_serves_both_ways(self, codec: Codec, kind: type) -> None:
        packed = compress(codec, kind(TEXT))
        assert bytes(decompress(codec, kind(packed), limit=len(TEXT))) == TEXT

    @pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
    def test_every_level_of_the_range_works(self, codec: Codec) -> None:
        levels = levels_of(codec)
        assert levels is not None
        data = TEXT[:5000]
        for level in {*range(max(levels.lowest, -7), levels.highest + 1), levels.lowest, levels.default}:
            packed = compress(codec, data, level)
            assert bytes(decompress(codec, packed, limit=len(data))) == data, level

    def test_a_higher_level_makes_text_smaller(self) -> None:
        seed = noise(3000)
        text = b" ".join(seed[start : start + 2].hex().encode() * 3 for start in range(2999))
        for codec, low, high in [(Codec.GZIP, 1, 9), (Codec.LZ4, 9, 12), (Codec.ZSTD, -7, 19)]:
            assert len(compress(codec, text, high)) < len(compress(codec, text, low)), codec

    def test_no_compression_hands_back_the_same_object(self) -> None:
        data = bytearray(b"as it is")
        assert compress(Codec.NONE, data) is data
        assert decompress(Codec.NONE, data, limit=8) is data


class TestLevels:
    def test_the_ranges_are_those_of_kafka(self) -> None:
        assert levels_of(Codec.GZIP) == Levels(1, 9, -1)
        assert levels_of(Codec.LZ4) == Levels(1, 17, 9)
        assert levels_of(Codec.ZSTD) == Levels(-131072, 22, 3)
        assert levels_of(Codec.SNAPPY) is None
        assert levels_of(Codec.NONE) is None

    @pytest.mark.parametrize(
        ("codec", "level", "text"),
        [
            (Codec.GZIP, 0, "gzip level 0 is not between 1 and 9"),
            (Codec.GZIP, 10, "gzip level 10 is not between 1 and 9"),
            (Codec.LZ4, 18, "lz4 level 18 is not between 1 and 17"),
            (Codec.ZSTD, 23, "zstd level 23 is not between -131072 and 22"),
            (Codec.SNAPPY, 1, "snappy has no compression levels"),
            (Codec.NONE, 1, "none has no compression levels"),
        ],
    )
    def test_another_level_is_misuse(self, codec: Codec, level: int, text: str) -> None:
        with pytest.raises(Misuse) as caught:
            compress(codec, b"data", level)
        assert str(caught.value) == text


class TestWhatIsWritten:
    def test_snappy_is_xerial_framed_in_blocks_of_32_kib(self) -> None:
        packed = compress(Codec.SNAPPY, TEXT)
        assert packed[:16] == b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
        (length,) = struct.unpack_from(">i", packed, 16)
        assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + length])) == TEXT[: 32 * 1024]

    def test_lz4_is_version_1_with_independent_blocks_of_64_kib(self) -> None:
        packed = compress(Codec.LZ4, TEXT)
        assert packed[:4] == bytes.fromhex("04224d18")
        assert packed[4] >> 6 == 1, "version"
        assert packed[4] & 0x20, "independent blocks"
        assert packed[5] == 0x40, "64 KiB"

    def test_gzip_is_read_by_the_standard_library(self) -> None:
        assert gzip.decompress(compress(Codec.GZIP, TEXT)) == TEXT

    def test_zstd_is_one_frame(self) -> None:
        packed = bytes(compress(Codec.ZSTD, TEXT))
        assert packed[:4] == bytes.fromhex("28b52ffd")
        assert packed.find(bytes.fromhex("28b52ffd"), 1) == -1


class TestWhatOthersWrite:
    def test_raw_snappy_is_read(self) -> None:
        assert bytes(decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), MB)) == TEXT

    def test_a_framing_header_alone_is_empty(self) -> None:
        assert bytes(decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b""), 0)) == b""

    @pytest.mark.parametrize("content_checksum", [False, True])
    @pytest.mark.parametrize("linked", [False, True])
    def test_lz4_variants_are_read(self, content_checksum: bool, linked: bool) -> None:
        compressor = cramjam.lz4.Compressor(content_checksum=content_checksum, block_linked=linked)
        compressor.compress(TEXT)
        assert bytes(decompress(Codec.LZ4, bytes(compressor.finish()), len(TEXT))) == TEXT

    def test_lz4_with_content_size_is_read(self) -> None:
        # 0x68: version 1, independent blocks, content size; the one stored block holds 5 bytes.
        size = struct.pack("<Q", 5)
        frame = bytes.fromhex("04224d186840") + size + b"\x61" + struct.pack("<I", 5 | 1 << 31) + b"hello"
        assert bytes(decompress(Codec.LZ4, frame + bytes(4), 5)) == b"hello"

    def test_zstd_without_content_size_is_read(self) -> None:
        compressor = cramjam.zstd.Compressor(level=3)
        compressor.compress(TEXT)
        packed = bytes(compressor.finish())
        assert packed[4] & 0xE0 == 0, "neither content size nor single segment"
        assert bytes(decompress(Codec.ZSTD, packed, len(TEXT))) == TEXT

    @pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 65_535, 65_536 + 255, 65_536 + 256, 300_000])
    def test_zstd_with_each_width_of_content_size_is_read(self, size: int) -> None:
        packed = bytes(cramjam.zstd.compress(TEXT[:size], level=1))
        assert bytes(decompress(Codec.ZSTD, packed, size)) == TEXT[:size]

    @pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
    def test_several_members_or_frames_in_a_row_are_one_stream(self, codec: Codec) -> None:
        packed = bytes(compress(codec, TEXT)) + bytes(compress(codec, b"and more"))
        assert bytes(decompress(codec, packed, MB)) == TEXT + b"and more"

    def test_a_skippable_frame_is_skipped(self) -> None:
        skippable = struct.pack("<II", 0x184D2A53, 5) + b"notes"
        packed = skippable + bytes(compress(Codec.ZSTD, TEXT))
        assert bytes(decompress(Codec.ZSTD, packed, len(TEXT))) == TEXT


class TestTheLimit:
    @pytest.mark.parametrize("codec", list(Codec))
    def test_exactly_the_limit_passes_and_one_byte_more_does_not(self, codec: Codec) -> None:
        packed = compress(codec, TEXT)
        assert len(decompress(codec, packed, limit=len(TEXT))) == len(TEXT)
        with pytest.raises(TooLarge) as caught:
            decompress(codec, packed, limit=len(TEXT) - 1)
        assert str(caught.value) == f"{codec.name.lower()} data passes the limit of {len(TEXT) - 1} bytes"

    @pytest.mark.parametrize("codec", list(Codec))
    def test_a_limit_of_zero_lets_only_nothing_pass(self, codec: Codec) -> None:
        assert len(decompress(codec, compress(codec, b""), limit=0)) == 0
        with pytest.raises(TooLarge):
            decompress(codec, compress(codec, b"x"), limit=0)


def gzip_bomb() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([*(packer.compress(bytes(MB)) for _ in range(32)), packer.flush()])


def gzip_bomb_of_members() -> bytes:
    return gzip.compress(bytes(MB)) * 200


def gzip_bomb_with_a_lying_trailer() -> bytes:
    return gzip_bomb()[:-4] + struct.pack("<I", 1)


def snappy_bomb() -> bytes:
    return bytes(cramjam.snappy.compress_raw(bytes(32 * MB)))


def xerial_bomb() -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(MB)))
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + (struct.pack(">i", len(block)) + block) * 64


def lz4_bomb() -> bytes:
    return bytes(compress(Codec.LZ4, bytes(32 * MB)))


def zstd_bomb() -> bytes:
    """20,000 blocks of one byte repeated 128 Ki times: 2.4 GB out of 80 KB."""
    block = struct.pack("<I", (128 * 1024) << 3 | 1 << 1)[:3]
    last = struct.pack("<I", 1 << 3 | 1 << 1 | 1)[:3]
    return bytes.fromhex("28b52ffd0058") + (block + b"\0") * 20_000 + last + b"\0"


def zstd_bomb_with_content_size() -> bytes:
    return bytes(cramjam.zstd.compress(bytes(64 * MB), level=1))


BOMBS = [
    (Codec.GZIP, gzip_bomb),
    (Codec.GZIP, gzip_bomb_of_members),
    (Codec.GZIP, gzip_bomb_with_a_lying_trailer),
    (Codec.SNAPPY, snappy_bomb),
    (Codec.SNAPPY, xerial_bomb),
    (Codec.LZ4, lz4_bomb),
    (Codec.ZSTD, zstd_bomb),
    (Codec.ZSTD, zstd_bomb_with_content_size),
]


@pytest.mark.slow
@pytest.mark.parametrize(("codec", "make"), BOMBS, ids=[make.__name__ for _, make in BOMBS])
def test_a_bomb_is_stopped_before_it_takes_more_than_the_limit(codec: Codec, make: type) -> None:
    bomb = make()
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            decompress(codec, bomb, limit=MB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The buffer of the limit, the one before it while growing, and the list of blocks.
    assert peak < 1.5 * MB


def test_a_zstd_window_beyond_128_mib_is_refused() -> None:
    last_block = struct.pack("<I", 1 << 3 | 1 << 1 | 1)[:3] + b"z"
    for exponent, accepted in [(17, True), (18, False), (31, False)]:
        frame = bytes.fromhex("28b52ffd00") + bytes([exponent << 3]) + last_block
        if accepted:
            assert bytes(decompress(Codec.ZSTD, frame, limit=1)) == b"z"
        else:
            with pytest.raises(CorruptBatch, match=r"^zstd data is damaged: Frame requires too much memory"):
                decompress(Codec.ZSTD, frame, limit=1)


class TestDamage:
    @pytest.mark.parametrize(
        ("codec", "data", "text"),
        [
            (Codec.GZIP, b"", "gzip data is damaged: 0 bytes are too few"),
            (Codec.GZIP, b"garbage garbage garbage", "gzip data is damaged: invalid gzip header"),
            (Codec.SNAPPY, b"", "snappy data is damaged: snappy: corrupt input (empty)"),
            (
                Codec.SNAPPY,
                b"\x82SNAPPY\0\0\0",
                "snappy data is damaged: the framing header is cut after 10 bytes",
            ),
            (
                Codec.SNAPPY,
                b"\x82SNAPPY\0" + bytes(8) + b"\0\0\0",
                "snappy data is damaged: a block length is cut",
            ),
            (
                Codec.SNAPPY,
                b"\x82SNAPPY\0" + bytes(8) + b"\0\0\0\x09\x05hello",
                "snappy data is damaged: a block of 9 bytes, 6 are left",
            ),
            (
                Codec.SNAPPY,
                b"\x82SNAPPY\0" + bytes(8) + b"\xff\xff\xff\xff",
                "snappy data is damaged: a block of -1 bytes, 0 are left",
            ),
            (
                Codec.SNAPPY,
                b"\xff\xff\xff\xff\x0f",
                "snappy data is damaged: a block of 5 bytes cannot hold the 4294967295 it declares",
            ),
            (Codec.LZ4, b"", "lz4 data is damaged: lz4: empty input"),
            (Codec.LZ4, b"garbage garbage", "lz4 data is damaged: lz4: ERROR_frameType_unknown"),
            (Codec.ZSTD, b"", "zstd data is damaged: incomplete frame"),
            (Codec.ZSTD, b"garbage garbage", "zstd data is damaged: Unknown frame descriptor"),
        ],
    )
    def test_garbage_is_named(self, codec: Codec, data: bytes, text: str) -> None:
        with pytest.raises(CorruptBatch) as caught:
            decompress(codec, data, limit=MB)
        assert str(caught.value) == text

    @pytest.mark.parametrize("codec", REAL_CODECS)
    def test_a_cut_at_any_byte_is_noticed(self, codec: Codec) -> None:
        packed = bytes(compress(codec, TEXT[:300]))
        whole = {packed[:16]} if codec is Codec.SNAPPY else set()  # the framing header alone is empty data
        for end in range(len(packed)):
            if packed[:end] not in whole:
                with pytest.raises(CorruptBatch):
                    decompress(codec, packed[:end], limit=MB)

    @pytest.mark.parametrize("codec", REAL_CODECS)
    @given(data=st.data())
    def test_a_changed_byte_is_an_error_or_other_data_but_nothing_else(
        self, codec: Codec, data: st.DataObject
    ) -> None:
        packed = bytearray(compress(codec, TEXT[:2000]))
        position = data.draw(st.integers(0, len(packed) - 1))
        packed[position] ^= data.draw(st.integers(1, 255))
        with contextlib.suppress(RecordError):
            assert len(decompress(codec, packed, limit=4000)) <= 4000

    @pytest.mark.parametrize("codec", REAL_CODECS)
    @given(rubbish=st.binary(max_size=200), prefix=st.booleans())
    def test_rubbish_is_an_error(self, codec: Codec, rubbish: bytes, prefix: bool) -> None:
        magic = {
            Codec.GZIP: b"\x1f\x8b\x08",
            Codec.SNAPPY: b"\x82SNAPPY\0",
            Codec.LZ4: bytes.fromhex("04224d18"),
            Codec.ZSTD: bytes.fromhex("28b52ffd"),
        }[codec]
        with contextlib.suppress(RecordError):
            assert len(decompress(codec, magic * prefix + rubbish, limit=1000)) <= 1000


class TestCodecIds:
    def test_the_five_ids_exist(self) -> None:
        assert [CODEC_BY_ID[codec_id] for codec_id in range(5)] == list(Codec)

    @pytest.mark.parametrize("codec_id", [5, 6, 7])
    def test_no_other_id_does(self, codec_id: int) -> None:
        with pytest.raises(UnsupportedCodec) as caught:
            CODEC_BY_ID[codec_id]
        assert str(caught.value) == f"compression id {codec_id} does not exist"
