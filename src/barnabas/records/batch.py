"""One record batch of format v2: a view over its bytes, its checks, and the rewrites that keep its records.

Layout, big-endian, position: field (WIRE.md section 4):

    0 base_offset i64 · 8 length i32, of what follows it · 12 leader_epoch i32 · 16 magic i8 = 2
    17 crc u32 · 21 attributes i16 · 23 last_offset_delta i32 · 27 base_timestamp i64
    35 max_timestamp i64 · 43 producer_id i64 · 51 producer_epoch i16 · 53 base_sequence i32
    57 record_count i32 · 61 the records, as one compressed blob when attributes name a codec

B1  The CRC-32C covers position 21 to the end, so base_offset and leader_epoch may be patched freely;
    any other change needs a new checksum.
B2  Only the checksum and `records` look behind the header; what is in there is the kernel's business.
B3  A view shares the memory it was made from and keeps it alive; it copies nothing, and it does not
    follow later patches of the header.

No state is shared: any thread may call anything here on its own buffer.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NoReturn

import crc32c as _crc32c_package

from barnabas.records import kernel
from barnabas.records.codecs import CODEC_BY_ID, Codec, decompress
from barnabas.records.errors import CorruptBatch, InvalidRecord
from barnabas.records.kernel import Record

__all__ = [
    "ATTRIBUTE_CODEC_MASK",
    "ATTRIBUTE_CONTROL",
    "ATTRIBUTE_DELETE_HORIZON",
    "ATTRIBUTE_LOG_APPEND_TIME",
    "ATTRIBUTE_TRANSACTIONAL",
    "CRC_COVERS_FROM",
    "HEADER",
    "HEADER_BYTES",
    "LENGTH_COUNTS_FROM",
    "MAGIC",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "RecordBatch",
    "iter_batches",
    "patch_batch",
    "read_header",
    "seal_batch",
    "split_batches",
    "stamp_log_append_time",
    "stamp_producer",
    "write_producer",
]

MAGIC: Final = 2
HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = 61
LENGTH_COUNTS_FROM: Final = 12  # the length field counts the bytes from here
CRC_COVERS_FROM: Final = 21
assert HEADER.size == HEADER_BYTES

ATTRIBUTE_CODEC_MASK: Final = 0x07
ATTRIBUTE_LOG_APPEND_TIME: Final = 0x08
ATTRIBUTE_TRANSACTIONAL: Final = 0x10
ATTRIBUTE_CONTROL: Final = 0x20
ATTRIBUTE_DELETE_HORIZON: Final = 0x40  # KIP-534: base_timestamp holds the horizon

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1
_NO_LEADER_EPOCH: Final = -1

_ATTRIBUTES_OF_THE_BROKER: Final = ATTRIBUTE_CONTROL | ATTRIBUTE_DELETE_HORIZON

_PREFIX: Final = Struct(">qi")  # base_offset, length
_LEADER_EPOCH: Final = Struct(">i")
_LEADER_EPOCH_AT: Final = 12
_MAGIC_AT: Final = 16
_CRC: Final = Struct(">I")
_CRC_AT: Final = 17
_ATTRIBUTES: Final = Struct(">h")
_TIMESTAMP: Final = Struct(">q")
_MAX_TIMESTAMP_AT: Final = 35
_PRODUCER: Final = Struct(">qhi")  # id, epoch, base sequence
_PRODUCER_AT: Final = 43

# The raw fields in wire order, with no check at all: (base_offset, length, leader_epoch, magic, crc,
# attributes, last_offset_delta, base_timestamp, max_timestamp, producer_id, producer_epoch,
# base_sequence, record_count).  For hot loops that already know that 61 bytes are there: a bound C
# method, a third of the price of a RecordBatch.
read_header = HEADER.unpack_from

_unpack = HEADER.unpack_from
_crc32c = _crc32c_package.crc32c


class RecordBatch:
    """The header fields of the batch at `position` of `buffer`, and views of its bytes.

    Making one proves only that a header's worth of bytes is there: call `check` before believing it.
    `size_bytes` is the whole batch, `position` its place in `buffer`.
    Raises CorruptBatch when fewer than 61 bytes are left.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "crc",
        "last_offset_delta",
        "leader_epoch",
        "magic",
        "max_timestamp",
        "position",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size_bytes",
    )
    buffer: memoryview
    position: int
    base_offset: int
    size_bytes: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    def __init__(self, buffer: memoryview, position: int = 0) -> None:
        if len(buffer) - position < HEADER_BYTES:
            _refuse_cut_header(len(buffer) - position)
        self.buffer = buffer
        self.position = position
        (
            self.base_offset,
            length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = _unpack(buffer, position)
        self.size_bytes = length + LENGTH_COUNTS_FROM

    def __repr__(self) -> str:
        return (
            f"RecordBatch(base_offset={self.base_offset}, last_offset={self.last_offset}, "
            f"record_count={self.record_count}, size_bytes={self.size_bytes}, "
            f"attributes={self.attributes:#x}, producer_id={self.producer_id})"
        )

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The first offset behind this batch; compaction never lowers it (last_offset_delta stays)."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record: sequences follow 2**31 - 1 with 0; -1 without a producer id."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def codec(self) -> Codec:
        """How the payload is compressed.  Raises UnsupportedCodec for the ids 5 to 7."""
        return CODEC_BY_ID[self.attributes & ATTRIBUTE_CODEC_MASK]

    @property
    def is_compressed(self) -> bool:
        return self.attributes & ATTRIBUTE_CODEC_MASK != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & ATTRIBUTE_TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & ATTRIBUTE_CONTROL != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def timestamp_type(self) -> int:
        """0 CreateTime, 1 LogAppendTime (then max_timestamp is the time of every record)."""
        return self.attributes >> 3 & 1

    @property
    def log_append_time(self) -> int | None:
        """The time that stands for all records of the batch, or None when each has its own."""
        return self.max_timestamp if self.attributes & ATTRIBUTE_LOG_APPEND_TIME else None

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones and markers in here may go (KIP-534), or None when not yet decided."""
        return self.base_timestamp if self.attributes & ATTRIBUTE_DELETE_HORIZON else None

    @property
    def view(self) -> memoryview:
        """All bytes of the batch."""
        return self.buffer[self.position : self.position + self.size_bytes]

    @property
    def payload(self) -> memoryview:
        """The records area as it is stored, compressed or not."""
        return self.buffer[self.position + HEADER_BYTES : self.position + self.size_bytes]

    def plain_payload(self, limit: int) -> bytes | bytearray | memoryview:
        """The records area, decompressed to at most `limit` bytes.

        Raises UnsupportedCodec, TooLarge, CorruptBatch.
        """
        if not self.attributes & ATTRIBUTE_CODEC_MASK:
            return self.payload
        return decompress(self.codec, self.payload, limit)

    def records(
        self, *, limit: int, start_offset: int = 0, topic: str | None = None, partition: int = -1
    ) -> list[Record]:
        """The records from `start_offset` on; the payload may grow to `limit` bytes when decompressed.

        Raises as `plain_payload`, and InvalidRecord when the payload is not `record_count` whole records.
        """
        return kernel.decode(
            self.plain_payload(limit),
            self.record_count,
            self.base_offset,
            self.base_timestamp,
            self.log_append_time,
            start_offset=start_offset,
            topic=topic,
            partition=partition,
            leader_epoch=self.leader_epoch,
        )

    def check(self) -> None:
        """Raise CorruptBatch unless size, magic and CRC-32C hold and the batch lies whole in its buffer."""
        position, size = self.position, self.size_bytes
        if self.magic != MAGIC or size < HEADER_BYTES or len(self.buffer) - position < size:
            _refuse_frame(self.base_offset, size, self.magic, len(self.buffer) - position)
        crc = _crc32c(self.buffer[position + CRC_COVERS_FROM : position + size])
        if crc != self.crc:
            raise CorruptBatch(
                f"batch at offset {self.base_offset}: the stored CRC is {self.crc:#010x}, "
                f"the bytes have {crc:#010x}"
            )

    def check_produced(self) -> None:
        """Raise InvalidRecord for a header that no client may send.

        No empty batch, no gap and no control batch; a producer id comes with a sequence: the rules of
        Kafka's LogValidator.  It also comes with an epoch, and a transaction with a producer id, or the
        producer's state in the log could not be kept; and the delete horizon is the broker's.
        LogAppendTime, also the broker's, is left to the log: Kafka has an error code of its own for times.
        """
        if self.last_offset_delta < 0 or self.record_count != self.last_offset_delta + 1:
            raise InvalidRecord(
                f"the batch counts {self.record_count} records, its last offset delta "
                f"is {self.last_offset_delta}"
            )
        if self.attributes & _ATTRIBUTES_OF_THE_BROKER:
            _refuse_attributes(self.attributes)
        if self.producer_id > NO_PRODUCER_ID:
            if self.base_sequence < 0 or self.producer_epoch < 0:
                raise InvalidRecord(
                    f"producer id {self.producer_id} comes with epoch {self.producer_epoch} "
                    f"and sequence {self.base_sequence}"
                )
        elif self.attributes & ATTRIBUTE_TRANSACTIONAL:
            raise InvalidRecord("a transactional batch needs a producer id")


def iter_batches(buffer: memoryview) -> Iterator[RecordBatch]:
    """The batches of `buffer` in turn, unchecked but for their framing; a cut last batch ends it.

    That is how fetched bytes are read: a broker may cut the last batch at its byte limit.
    Raises CorruptBatch on a bad magic or length.
    """
    position, end = 0, len(buffer)
    while end - position >= HEADER_BYTES:
        batch = RecordBatch(buffer, position)
        size = batch.size_bytes
        if batch.magic != MAGIC or size < HEADER_BYTES:
            _refuse_frame(batch.base_offset, size, batch.magic, end - position)
        if end - position < size:
            return
        yield batch
        position += size
    # Too short for a header, so the magic cannot be told in general: what is there is a cut batch,
    # unless its length already says that it never was one.
    if end - position >= _PREFIX.size:
        base_offset, length = _PREFIX.unpack_from(buffer, position)
        if length + LENGTH_COUNTS_FROM < HEADER_BYTES:
            _refuse_frame(base_offset, length + LENGTH_COUNTS_FROM, MAGIC, end - position)


def split_batches(buffer: memoryview) -> list[RecordBatch]:
    """All batches of `buffer`, which must end where the last one ends.

    Checks the framing only; call `check` on each batch.  Raises CorruptBatch.
    """
    batches = []
    position, end = 0, len(buffer)
    while position < end:
        batch = RecordBatch(buffer, position)
        size = batch.size_bytes
        if batch.magic != MAGIC or size < HEADER_BYTES or end - position < size:
            _refuse_frame(batch.base_offset, size, batch.magic, end - position)
        batches.append(batch)
        position += size
    return batches


def patch_batch(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write the broker's two fields into the batch at `position`, in place (B1: the CRC stays right)."""
    _TIMESTAMP.pack_into(buffer, position, base_offset)
    _LEADER_EPOCH.pack_into(buffer, position + _LEADER_EPOCH_AT, leader_epoch)


def stamp_log_append_time(buffer: bytearray | memoryview, position: int, append_time_ms: int) -> None:
    """Make the batch at `position` one of LogAppendTime: attribute, max_timestamp and a new CRC, in place.

    The records keep their own timestamp deltas; readers ignore them in favour of max_timestamp.
    """
    (attributes,) = _ATTRIBUTES.unpack_from(buffer, position + CRC_COVERS_FROM)
    _ATTRIBUTES.pack_into(buffer, position + CRC_COVERS_FROM, attributes | ATTRIBUTE_LOG_APPEND_TIME)
    _TIMESTAMP.pack_into(buffer, position + _MAX_TIMESTAMP_AT, append_time_ms)
    _, length = _PREFIX.unpack_from(buffer, position)
    seal_batch(buffer, position, length + LENGTH_COUNTS_FROM)


def stamp_producer(
    buffer: bytearray | memoryview,
    position: int,
    *,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool,
) -> None:
    """Make the batch at `position` one that this producer sends, in place; the payload is only summed.

    Whatever broker or producer it comes from: its offset and leader epoch are set back, and what only brokers
    may say (LogAppendTime, delete horizon) is taken out, so that the records have their own times again.
    """
    patch_batch(buffer, position, 0, _NO_LEADER_EPOCH)
    (attributes,) = _ATTRIBUTES.unpack_from(buffer, position + CRC_COVERS_FROM)
    attributes &= ~(ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_LOG_APPEND_TIME | ATTRIBUTE_DELETE_HORIZON)
    attributes |= ATTRIBUTE_TRANSACTIONAL if transactional else 0
    _, length = _PREFIX.unpack_from(buffer, position)
    size_bytes = length + LENGTH_COUNTS_FROM
    write_producer(buffer, position, size_bytes, attributes, producer_id, producer_epoch, base_sequence)


def write_producer(
    buffer: bytearray | memoryview,
    position: int,
    size_bytes: int,
    attributes: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
) -> None:
    """Set the attributes and the producer of the batch at `position`, and seal it."""
    _ATTRIBUTES.pack_into(buffer, position + CRC_COVERS_FROM, attributes)
    _PRODUCER.pack_into(buffer, position + _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    seal_batch(buffer, position, size_bytes)


def seal_batch(buffer: bytearray | memoryview, position: int, size_bytes: int) -> None:
    """Write the CRC of the `size_bytes` long batch at `position`: the last step of every change to it."""
    with memoryview(buffer) as view:
        crc = _crc32c(view[position + CRC_COVERS_FROM : position + size_bytes])
    _CRC.pack_into(buffer, position + _CRC_AT, crc)


def _refuse_cut_header(bytes_left: int) -> NoReturn:
    raise CorruptBatch(f"a batch header takes {HEADER_BYTES} bytes, {max(bytes_left, 0)} are left")


def _refuse_attributes(attributes: int) -> NoReturn:
    if attributes & ATTRIBUTE_CONTROL:
        raise InvalidRecord("clients may not write control batches")
    raise InvalidRecord("clients may not set a delete horizon")


def _refuse_frame(base_offset: int, size: int, magic: int, bytes_left: int) -> NoReturn:
    # In an order such that the first thing said is the cause: a wrong magic makes the rest meaningless.
    if magic != MAGIC:
        raise CorruptBatch(f"batch at offset {base_offset}: magic {magic} instead of {MAGIC}")
    if size < HEADER_BYTES:
        raise CorruptBatch(
            f"batch at offset {base_offset}: a size of {size} bytes is less than its header's {HEADER_BYTES}"
        )
    raise CorruptBatch(f"batch at offset {base_offset}: {size} bytes long, {bytes_left} are left")
