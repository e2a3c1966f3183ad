"""The four compressions of Kafka behind one table: bytes in, bytes out, never past a limit.

C1  Decompression never holds more than `limit` bytes of output: it goes into a buffer made beforehand,
    whose size is taken from what the stream declares and capped by the limit.  A bomb costs at most
    one buffer of `limit` bytes.
C2  Damage of any kind is CorruptBatch; passing the limit is TooLarge; ids 5 to 7 are UnsupportedCodec.

What is written is what every client reads, and that is what the Java client writes: gzip; snappy in
xerial framing (magic, two versions, then raw blocks of 32 KiB, each behind its length); an lz4 frame of
independent 64-KiB blocks; one zstd frame.  What is read is wider: snappy with or without framing, lz4 with
any mix of checksums, content size and linked blocks, zstd with or without content size, and for
gzip, lz4 and zstd several members or frames in a row.

Knows no batch layout.  No state; cramjam gives up the interpreter lock while it works, so big buffers
may go to a thread.
"""

from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple, NoReturn

import cramjam

from barnabas.base.errors import Misuse
from barnabas.records.errors import CorruptBatch, TooLarge, UnsupportedCodec

__all__ = ["CODEC_BY_ID", "Codec", "Levels", "compress", "decompress", "levels_of"]

Data = bytes | bytearray | memoryview


class Codec(IntEnum):
    """The compression ids of batch and message attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class _CodecById(dict[int, Codec]):
    """The codec of an attribute value; a plain dict hit for the ids that exist."""

    def __missing__(self, codec_id: int) -> Codec:
        raise UnsupportedCodec(f"compression id {codec_id} does not exist")


CODEC_BY_ID: Final = _CodecById({codec.value: codec for codec in Codec})


class Levels(NamedTuple):
    """The values of Kafka's `compression.<codec>.level`."""

    lowest: int
    highest: int
    default: int


_LEVELS: Final = {
    Codec.GZIP: Levels(1, 9, -1),  # -1, zlib's default, is also allowed; it means 6
    Codec.LZ4: Levels(1, 17, 9),
    Codec.ZSTD: Levels(-131072, 22, 3),
}


def levels_of(codec: Codec) -> Levels | None:
    """The levels that `compress` takes, or None for codecs without levels."""
    return _LEVELS.get(codec)


def compress(codec: Codec, data: Data, level: int | None = None) -> Data:
    """`data` compressed; with Codec.NONE the very same object.

    `level` None is Kafka's default.  Raises Misuse for a level that the codec does not have.
    """
    if level is not None:
        levels = _LEVELS.get(codec)
        if levels is None:
            raise Misuse(f"{codec.name.lower()} has no compression levels")
        if not levels.lowest <= level <= levels.highest and level != levels.default:
            raise Misuse(
                f"{codec.name.lower()} level {level} is not between {levels.lowest} and {levels.highest}"
            )
    if codec is Codec.NONE:
        return data
    return _COMPRESS[codec](data, level)


def decompress(codec: Codec, data: Data, limit: int) -> Data:
    """What `compress` was given, at most `limit` bytes of it; with Codec.NONE the very same object.

    Raises TooLarge, CorruptBatch.
    """
    if codec is Codec.NONE:
        if len(data) > limit:
            _refuse_size(codec, limit)
        return data
    try:
        return _DECOMPRESS[codec](data, limit)
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"{codec.name.lower()} data is damaged: {error}") from error


# --- gzip -----------------------------------------------------------------------------------------

_GZIP_LEVEL_DEFAULT: Final = 6
_GZIP_TRAILER: Final = Struct("<I")  # size of the last member, modulo 2**32
_DEFLATE_RATIO_MAX: Final = 1032
_GZIP_BYTES_MIN: Final = 18  # header and trailer


def _compress_gzip(data: Data, level: int | None) -> bytes:
    used = _GZIP_LEVEL_DEFAULT if level is None or level < 0 else level
    return bytes(cramjam.gzip.compress(data, level=used))


def _decompress_gzip(data: Data, limit: int) -> memoryview:
    if len(data) < _GZIP_BYTES_MIN:
        raise CorruptBatch(f"gzip data is damaged: {len(data)} bytes are too few")
    (declared,) = _GZIP_TRAILER.unpack_from(data, len(data) - _GZIP_TRAILER.size)
    # A damaged trailer must not buy memory that the data cannot fill.
    guess = min(declared, len(data) * _DEFLATE_RATIO_MAX)
    return _decompress_into(Codec.GZIP, cramjam.gzip.decompress_into, data, guess, limit)


# --- snappy ---------------------------------------------------------------------------------------

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"  # version, oldest reader
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_XERIAL_LENGTH: Final = Struct(">i")
_SNAPPY_RATIO_MAX: Final = 22  # three bytes stand for at most 64


def _compress_snappy(data: Data, level: int | None) -> bytes:
    parts: list[bytes] = [_XERIAL_HEADER]
    with memoryview(data) as view:
        for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
            parts += (_XERIAL_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: Data, limit: int) -> memoryview:
    view = memoryview(data)
    blocks = _xerial_blocks(view) if bytes(view[: len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC else [view]
    sizes = [_snappy_size(block) for block in blocks]
    if sum(sizes) > limit:
        _refuse_size(Codec.SNAPPY, limit)
    output = memoryview(bytearray(sum(sizes)))
    start = 0
    for block, size in zip(blocks, sizes, strict=True):
        cramjam.snappy.decompress_raw_into(block, output[start : start + size])
        start += size
    return output


def _xerial_blocks(view: memoryview) -> list[memoryview]:
    blocks = []
    position, end = len(_XERIAL_HEADER), len(view)
    if end < position:
        raise CorruptBatch(f"snappy data is damaged: the framing header is cut after {end} bytes")
    while position < end:
        if end - position < _XERIAL_LENGTH.size:
            raise CorruptBatch("snappy data is damaged: a block length is cut")
        (length,) = _XERIAL_LENGTH.unpack_from(view, position)
        position += _XERIAL_LENGTH.size
        if not 0 < length <= end - position:
            raise CorruptBatch(
                f"snappy data is damaged: a block of {length} bytes, {end - position} are left"
            )
        blocks.append(view[position : position + length])
        position += length
    return blocks


def _snappy_size(block: memoryview) -> int:
    size: int = cramjam.snappy.decompress_raw_len(block)
    if size > len(block) * _SNAPPY_RATIO_MAX:
        raise CorruptBatch(
            f"snappy data is damaged: a block of {len(block)} bytes cannot hold the {size} it declares"
        )
    return size


# --- lz4 ------------------------------------------------------------------------------------------

_LZ4_MAGIC: Final = 0x184D2204
_LZ4_RATIO_MAX: Final = 255
_LZ4_HC_LEVEL_MAX: Final = 12  # what liblz4 has; lz4-java goes on to 17 with the same result
_U32: Final = Struct("<I")
_SKIPPABLE_MAGIC: Final = 0x184D2A50  # and the 15 after it, in lz4 and zstd alike


def _compress_lz4(data: Data, level: int | None) -> bytes:
    # Kafka's level 9, the default, is lz4-java's fast compressor; any other is its high compressor.
    used = 0 if level is None or level == _LEVELS[Codec.LZ4].default else min(level, _LZ4_HC_LEVEL_MAX)
    compressor = cramjam.lz4.Compressor(level=used, content_checksum=False, block_linked=False)
    compressor.compress(bytes(data))  # takes no other buffer
    return bytes(compressor.finish())


def _decompress_lz4(data: Data, limit: int) -> memoryview:
    return _decompress_into(Codec.LZ4, cramjam.lz4.decompress_into, data, _lz4_size_bound(data), limit)


def _lz4_size_bound(data: Data) -> int:
    """At least the size of the output, read from the block headers; anything if the data is damaged."""
    position, end, bound = 0, len(data), 0
    while end - position >= 7:
        (magic,) = _U32.unpack_from(data, position)
        if magic & ~0xF == _SKIPPABLE_MAGIC:
            position += 8 + _U32.unpack_from(data, position + 4)[0] if end - position >= 8 else 8
            continue
        if magic != _LZ4_MAGIC:
            break
        flags, block_code = data[position + 4], data[position + 5] >> 4 & 7
        block_bytes_max = 1 << 2 * block_code + 8  # codes 4 to 7: 64 KiB, 256 KiB, 1 MiB, 4 MiB
        position += 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
        checksum_bytes = 4 if flags & 0x10 else 0
        while end - position >= 4:
            (word,) = _U32.unpack_from(data, position)
            position += 4
            if word == 0:
                position += 4 if flags & 0x04 else 0
                break
            size = word & 0x7FFFFFFF
            bound += size if word >> 31 else min(block_bytes_max, size * _LZ4_RATIO_MAX)
            position += size + checksum_bytes
    return bound


# --- zstd -----------------------------------------------------------------------------------------

_ZSTD_MAGIC: Final = 0xFD2FB528
_ZSTD_BLOCK_BYTES_MAX: Final = 128 * 1024
_ZSTD_WINDOW_BYTES: Final = (1, 0)  # by the single-segment flag
_ZSTD_DICTIONARY_BYTES: Final = (0, 1, 2, 4)
_ZSTD_CONTENT_BYTES: Final = (0, 2, 4, 8)  # the first is 1 for a single segment


def _compress_zstd(data: Data, level: int | None) -> bytes:
    used = _LEVELS[Codec.ZSTD].default if level is None else level
    return bytes(cramjam.zstd.compress(data, level=used))


def _decompress_zstd(data: Data, limit: int) -> memoryview:
    return _decompress_into(Codec.ZSTD, cramjam.zstd.decompress_into, data, _zstd_size_bound(data), limit)


def _zstd_size_bound(data: Data) -> int:
    """As `_lz4_size_bound`: the declared sizes where there are some, else what the blocks may hold."""
    position, end, bound = 0, len(data), 0
    while end - position >= 6:
        (magic,) = _U32.unpack_from(data, position)
        if magic & ~0xF == _SKIPPABLE_MAGIC:
            position += 8 + _U32.unpack_from(data, position + 4)[0] if end - position >= 8 else 8
            continue
        if magic != _ZSTD_MAGIC:
            break
        descriptor = data[position + 4]
        single_segment = descriptor >> 5 & 1
        position += 5 + _ZSTD_WINDOW_BYTES[single_segment] + _ZSTD_DICTIONARY_BYTES[descriptor & 3]
        content_bytes = _ZSTD_CONTENT_BYTES[descriptor >> 6] or single_segment
        content = int.from_bytes(data[position : position + content_bytes], "little")
        if content_bytes == 2:
            content += 256
        position += content_bytes
        blocks, position = _zstd_blocks_bound(data, position)
        bound += min(content, blocks) if content_bytes else blocks
        position += 4 if descriptor & 0x04 else 0
    return bound


def _zstd_blocks_bound(data: Data, position: int) -> tuple[int, int]:
    """What the blocks from `position` on may hold, and where the frame's last one ends."""
    bound, end = 0, len(data)
    while end - position >= 3:
        header = int.from_bytes(data[position : position + 3], "little")
        kind, size = header >> 1 & 3, header >> 3
        bound += min(size, _ZSTD_BLOCK_BYTES_MAX) if kind < 2 else _ZSTD_BLOCK_BYTES_MAX
        position += 3 + (1 if kind == 1 else size)  # 1: one byte, repeated
        if header & 1:
            break
    return bound, position


# --- all ------------------------------------------------------------------------------------------

_GROW: Final = 4
_OUTPUT_BYTES_MIN: Final = 256


def _decompress_into(codec: Codec, run: Callable[..., int], data: Data, guess: int, limit: int) -> memoryview:
    """Decompress into one buffer of `guess` bytes, or larger ones while they are too small (C1)."""
    size = min(guess, limit)
    while True:
        output = memoryview(bytearray(size))
        try:
            written = run(data, output)
        except cramjam.DecompressionError as error:
            # What is raised keeps this frame alive, and must not keep the memory with it.
            del output
            # The only sign of a full buffer that cramjam gives is the text of Rust's `write_all`.
            if "failed to write whole buffer" not in str(error):
                raise
            if size >= limit:
                _refuse_size(codec, limit)
            size = min(max(size * _GROW, _OUTPUT_BYTES_MIN), limit)
        else:
            return output[:written]


def _refuse_size(codec: Codec, limit: int) -> NoReturn:
    raise TooLarge(f"{codec.name.lower()} data passes the limit of {limit} bytes")


_COMPRESS: Final[dict[Codec, Callable[[Data, int | None], bytes]]] = {
    Codec.GZIP: _compress_gzip,
    Codec.SNAPPY: _compress_snappy,
    Codec.LZ4: _compress_lz4,
    Codec.ZSTD: _compress_zstd,
}
_DECOMPRESS: Final[dict[Codec, Callable[[Data, int], memoryview]]] = {
    Codec.GZIP: _decompress_gzip,
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _decompress_lz4,
    Codec.ZSTD: _decompress_zstd,
}
