"""Records for clients that cannot read what the log stores: legacy message sets, and no zstd.

Fetch v0-1 readers know messages of magic 0, v2-3 of magic 1; v4 reads batches, v10 also zstd ones.
Converting reads and copies the data; it happens only for clients of that age.
"""

from barnabas.base.buffers import Buffer, FileSlice
from barnabas.records.batch import iter_batches
from barnabas.records.codecs import Codec
from barnabas.records.conversion import down_convert
from barnabas.records.errors import UnsupportedCodec

__all__ = ["FIRST_ZSTD_VERSION", "records_for_old_client"]

FIRST_MAGIC_1_VERSION = 2
FIRST_BATCH_VERSION = 4
FIRST_ZSTD_VERSION = 10
DECOMPRESSED_BYTES_MAX = 64 * 2**20


def records_for_old_client(piece: FileSlice, version: int, fetch_offset: int) -> Buffer:
    """What a Fetch of `version`, below FIRST_ZSTD_VERSION, can read.  Raises UnsupportedCodec for zstd."""
    data = memoryview(piece.read())
    if version < FIRST_BATCH_VERSION:
        magic = 1 if version >= FIRST_MAGIC_1_VERSION else 0
        return down_convert(data, magic, limit=DECOMPRESSED_BYTES_MAX, first_offset=fetch_offset)
    if any(batch.codec is Codec.ZSTD for batch in iter_batches(data)):
        raise UnsupportedCodec(f"zstd needs Fetch v{FIRST_ZSTD_VERSION} or newer")
    return piece
