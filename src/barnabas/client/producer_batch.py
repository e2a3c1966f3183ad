"""One batch of the producer between its first record and its acknowledgement.

    open ──► closed ──► sealed: bytes with a sequence ──► done
                          └── refused as too large: split into parts, each a batch of its own

Q1  records are added only while the batch is open, see `client.hot`
Q2  bytes handed to the network never change: a batch that gets another sequence is sealed anew into other
    bytes, as the old ones may still be on their way
Q3  numbers order the batches of a partition for ever: a retried batch goes back to its place, and the parts
    of a split one lie between its neighbours

Everything but adding records runs on the client's event loop.
"""

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.client.hot import BatchBase
from barnabas.records.batch import (
    ATTRIBUTE_TRANSACTIONAL,
    HEADER_BYTES,
    NO_SEQUENCE,
    RecordBatch,
    seal_batch,
)
from barnabas.records.builder import assemble_batch
from barnabas.records.codecs import Codec
from barnabas.records.kernel import PayloadBuilder

if TYPE_CHECKING:
    from barnabas.client._hot_plain import Home

__all__ = ["NO_ID", "Compression", "Identity", "ProducerBatch"]

_PRODUCER_FIELDS: Final = Struct(">qhi")  # id, epoch, base sequence
_PRODUCER_FIELDS_AT: Final = 43
_SIZE_LIMIT_MAX: Final = 2**31 - 1


class Compression(NamedTuple):
    """Codec of the batches and its level; None is the codec's own choice."""

    codec: Codec = Codec.NONE
    level: int | None = None


class Identity(NamedTuple):
    """The name under which sequences count."""

    producer_id: int
    epoch: int


NO_ID: Final = Identity(-1, -1)


class ProducerBatch(BatchBase):
    """A batch, what it costs, and how its sending stands."""

    __slots__ = (
        "_sealed",
        "attempts",
        "created_ms",
        "identity",
        "is_urgent",
        "last_error",
        "may_be_written",
        "number",
        "reserved",
        "retry_at_ms",
        "sent_ms",
        "sequence",
        "was_reset",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        home: "Home",
        *,
        number: tuple[int, ...],
        size_limit: int,
        reserved: int,
        now_ms: int,
    ) -> None:
        payload_limit = max(size_limit - HEADER_BYTES, 0)
        super().__init__(topic, partition, PayloadBuilder(payload_limit), home)
        self.number: Final = number
        self.reserved = reserved
        """Bytes taken from the pool, given back when the batch is done."""
        self.created_ms: Final = now_ms
        self.is_urgent = False
        """Somebody waits for it: it does not linger."""
        self.attempts = 0
        self.retry_at_ms = 0
        self.sent_ms = 0
        """In a request that is not answered yet."""
        self.last_error: Exception | None = None
        self.may_be_written = False
        """A request with it got no answer, or one that leaves it open."""
        self.identity = NO_ID
        self.sequence = NO_SEQUENCE
        self.was_reset = False
        """Its sequence was changed after it had been sent once."""
        self._sealed: bytearray | None = None

    @property
    def has_sequence(self) -> bool:
        return self.sequence != NO_SEQUENCE

    @property
    def size_bytes(self) -> int:
        """Bytes on the wire; before sealing, without compression."""
        return HEADER_BYTES + self.builder.size if self._sealed is None else len(self._sealed)

    def set_sequence(self, identity: Identity, sequence: int) -> None:
        """Names the batch; one that was sealed under another name is sealed anew (Q2)."""
        if (identity, sequence) == (self.identity, self.sequence):
            return
        self.identity, self.sequence = identity, sequence
        if self._sealed is not None:
            self._sealed = self._sealed[:]
            _PRODUCER_FIELDS.pack_into(self._sealed, _PRODUCER_FIELDS_AT, *identity, sequence)
            seal_batch(self._sealed, 0, len(self._sealed))

    def seal(self, compression: Compression, *, is_transactional: bool = False) -> bytearray:
        """The bytes to send; the batch must not be open any more."""
        if self._sealed is None:
            builder = self.builder
            base_timestamp, max_timestamp = builder.base_timestamp, builder.max_timestamp
            self._sealed = assemble_batch(
                builder.take(),
                record_count=self.count,
                last_offset_delta=self.count - 1,
                base_timestamp=base_timestamp,
                max_timestamp=max_timestamp,
                attributes=ATTRIBUTE_TRANSACTIONAL if is_transactional else 0,
                codec=compression.codec,
                level=compression.level,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.epoch,
                base_sequence=self.sequence,
            )
        return self._sealed

    def forget_bytes(self) -> None:
        """Lets go of the records: futures keep the batch and its outcome for as long as they live."""
        self._sealed = None

    def split(self, now_ms: int) -> "list[tuple[int, ProducerBatch]]":
        """The records in batches of half the size or less, each with the index of its first record.

        A batch of one record cannot be split.  The parts take over the reserved bytes and the sequences;
        nobody is told here, see `delivery.share`.
        """
        assert self._sealed is not None, "only what the broker refused is split"
        assert self.count > 1, "one record cannot be split"
        with memoryview(self._sealed) as view:
            records = RecordBatch(view).records(limit=_SIZE_LIMIT_MAX)
        limit = HEADER_BYTES + self._plain_bytes() // 2
        parts: list[tuple[int, ProducerBatch]] = []
        for index, record in enumerate(records):
            part = parts[-1][1] if parts else None
            if part is None or not part.builder.append(
                record.timestamp, record.key, record.value, record.headers
            ):
                part = self._part(len(parts), limit, now_ms)
                part.builder.append(record.timestamp, record.key, record.value, record.headers)
                parts.append((index, part))
            part.count += 1
        assert len(parts) > 1, "half the size never holds all records"
        self._share_sequence(parts)
        parts[0][1].reserved, self.reserved = self.reserved, 0
        return parts

    def _plain_bytes(self) -> int:
        assert self._sealed is not None
        with memoryview(self._sealed) as view:
            return len(RecordBatch(view).plain_payload(_SIZE_LIMIT_MAX))

    def _part(self, place: int, size_limit: int, now_ms: int) -> "ProducerBatch":
        part = ProducerBatch(
            self.topic,
            self.partition,
            self.home,
            number=(*self.number, place),
            size_limit=size_limit,
            reserved=0,
            now_ms=self.created_ms,
        )
        part.is_urgent = True
        part.attempts = self.attempts
        part.retry_at_ms = now_ms
        return part

    def _share_sequence(self, parts: "list[tuple[int, ProducerBatch]]") -> None:
        if self.has_sequence:
            for first, part in parts:
                part.set_sequence(self.identity, self.sequence + first & _SIZE_LIMIT_MAX)
                part.was_reset = self.was_reset

    def __repr__(self) -> str:
        return (
            f"<ProducerBatch {self.topic}-{self.partition} {self.number}: {self.count} records, "
            f"sequence {self.sequence}, {self.attempts} attempts>"
        )
