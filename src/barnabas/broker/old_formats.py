"""Records for clients that cannot read what the log stores: legacy message sets, and no zstd.

Fetch v0-1 readers know messages of magic 0, v2-3 of magic 1; v4 reads batches, v10 also zstd ones.
From v4 on only the topic's setting decides, as in Apache Kafka: a topic whose compression.type is zstd is
refused to readers before v10, while batches that a producer compressed with zstd are sent as they are.
Converting reads and copies the data; it happens only for clients of that age.
"""

from barnabas.base.buffers import Buffer, FileSlice
from barnabas.records.codecs import Codec
from barnabas.records.conversion import down_convert
from barnabas.records.errors import UnsupportedCodec

__all__ = ["FIRST_BATCH_VERSION", "FIRST_ZSTD_VERSION", "check_codec", "legacy_records"]

FIRST_MAGIC_1_VERSION = 2
FIRST_BATCH_VERSION = 4
FIRST_ZSTD_VERSION = 10
DECOMPRESSED_BYTES_MAX = 64 * 2**20


def check_codec(topic_codec: Codec | None, version: int) -> None:
    """Raises UnsupportedCodec when the topic is kept in zstd and the reader is too old for it."""
    if version < FIRST_ZSTD_VERSION and topic_codec is Codec.ZSTD:
        raise UnsupportedCodec(f"zstd needs Fetch v{FIRST_ZSTD_VERSION} or newer")


def legacy_records(piece: FileSlice, version: int, fetch_offset: int) -> Buffer:
    """What a Fetch below FIRST_BATCH_VERSION can read; empty if it was all control batches.

    Raises UnsupportedCodec for zstd.
    """
    magic = 1 if version >= FIRST_MAGIC_1_VERSION else 0
    data = memoryview(piece.read())
    return down_convert(data, magic, limit=DECOMPRESSED_BYTES_MAX, first_offset=fetch_offset)
