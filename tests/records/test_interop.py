"""Batches of other clients' libraries are read by us, and ours by them: kafka-python, aiokafka, kio.

kio has no compression and keeps whole seconds of a timestamp.
"""

import datetime
import io
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from kio.records.readers import read_batch as kio_read_batch
from kio.records.schema import NewRecordBatch as KioNewBatch
from kio.records.schema import Record as KioRecord
from kio.records.schema import RecordHeader as KioHeader
from kio.records.writers import write_batch as kio_write_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from barnabas.records.batch import RecordBatch
from barnabas.records.builder import Row, build_batch
from barnabas.records.codecs import Codec
from tests.records.peers import BUILDERS, CODECS, READERS
from tests.records.samples import LIMIT, NOW, ROWS, rows

MB = 1024 * 1024
# One record of each size, 1 byte to 10 MB.
SIZES: list[Row] = [(NOW, b"k", bytes([n]) * 10**n, ()) for n in range(7)]
HUGE: list[Row] = [(NOW, b"k" * MB, b"large value " * (10 * MB // 12), (("h", b"x" * MB),))]

PAIRS = [(name, codec) for name, codecs in CODECS.items() for codec in codecs]


def build_theirs(name: str, codec: Codec, rows: Iterable[Row]) -> bytes:
    builder: Any = BUILDERS[name](2, int(codec), 1, 4000, 5, 6, 64 * MB)
    for offset, (timestamp, key, value, headers) in enumerate(rows):
        assert builder.append(offset, timestamp, key, value, list(headers)) is not None
    return bytes(builder.build())


def read_theirs(name: str, data: bytes) -> list[Row]:
    batch = READERS[name](data)
    assert batch.validate_crc()
    return [(r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]


def read_ours(data: bytes | bytearray) -> list[Row]:
    batch = RecordBatch(memoryview(data))
    batch.check()
    return [(r.timestamp, r.key, r.value, r.headers) for r in batch.records(limit=LIMIT)]


@pytest.mark.parametrize(("name", "codec"), PAIRS)
class TestWithPythonClients:
    def test_we_read_theirs(self, name: str, codec: Codec) -> None:
        data = build_theirs(name, codec, ROWS)
        assert read_ours(data) == ROWS
        batch = RecordBatch(memoryview(data))
        batch.check_produced()
        assert batch.codec is codec
        assert batch.is_transactional
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (4000, 5, 6)
        assert batch.max_timestamp == NOW + 70_000

    def test_they_read_ours(self, name: str, codec: Codec) -> None:
        data = build_batch(ROWS, codec=codec, producer_id=1, producer_epoch=0, base_sequence=0)
        assert RecordBatch(memoryview(data)).codec is codec
        assert read_theirs(name, bytes(data)) == ROWS

    def test_records_of_every_size_go_both_ways(self, name: str, codec: Codec) -> None:
        assert read_ours(build_theirs(name, codec, SIZES)) == SIZES
        assert read_theirs(name, bytes(build_batch(SIZES, codec=codec))) == SIZES

    @pytest.mark.slow
    def test_a_record_of_12_megabytes_goes_both_ways(self, name: str, codec: Codec) -> None:
        assert read_ours(build_theirs(name, codec, HUGE)) == HUGE
        assert read_theirs(name, bytes(build_batch(HUGE, codec=codec))) == HUGE

    @given(expected=rows())
    def test_any_records_go_both_ways(self, name: str, codec: Codec, expected: list[Row]) -> None:
        assert read_ours(build_theirs(name, codec, expected)) == expected
        assert read_theirs(name, bytes(build_batch(expected, codec=codec))) == expected


@pytest.mark.parametrize("name", BUILDERS)
@given(expected=rows())
def test_uncompressed_batches_are_the_same_bytes(name: str, expected: list[Row]) -> None:
    theirs = build_theirs(name, Codec.NONE, expected)
    ours = build_batch(
        expected,
        leader_epoch=RecordBatch(memoryview(theirs)).leader_epoch,  # kafka-python writes 0
        producer_id=4000,
        producer_epoch=5,
        base_sequence=6,
        transactional=True,
    )
    assert ours == theirs


def in_whole_seconds(rows: Iterable[Row]) -> list[Row]:
    return [(t // 1000 % 2**31 * 1000, k, v, h) for t, k, v, h in rows]


def build_kio(rows: Iterable[Row]) -> bytes:
    records = tuple(
        KioRecord(
            attributes=i8(0),
            timestamp=TZAwareMicros.parse(datetime.datetime.fromtimestamp(t / 1000, datetime.UTC)),
            offset=i64(offset),
            key=_bytes(k),
            value=_bytes(v),
            headers=tuple(KioHeader(key=name.encode(), value=value) for name, value in h),
        )
        for offset, (t, k, v, h) in enumerate(rows)
    )
    buffer = io.BytesIO()
    kio_write_batch(
        buffer,
        KioNewBatch(
            producer_id=i64(1),
            producer_epoch=i16(2),
            partition_leader_epoch=i32(-1),
            base_sequence=i32(3),
            attributes=i16(0),
            records=records,
        ),
    )
    return buffer.getvalue()


def _bytes(data: bytes | bytearray | memoryview | None) -> bytes | None:
    return None if data is None else bytes(data)


def read_kio(data: bytes) -> list[Row]:
    batch, size = kio_read_batch(data, 0)
    assert size == len(data)
    return [
        (
            int(record.timestamp.timestamp() * 1000),
            record.key,
            record.value,
            tuple((header.key.decode(), header.value) for header in record.headers if header.key is not None),
        )
        for record in batch.records
    ]


class TestWithKio:
    def check_both_ways(self, rows: list[Row]) -> None:
        theirs = build_kio(rows)
        ours = build_batch(rows, producer_id=1, producer_epoch=2, base_sequence=3)
        assert ours == theirs
        assert read_ours(theirs) == rows
        assert read_kio(bytes(ours)) == rows

    @pytest.mark.parametrize("sample", [ROWS, SIZES], ids=["kinds", "sizes"])
    def test_samples_go_both_ways(self, sample: list[Row]) -> None:
        self.check_both_ways(in_whole_seconds(sample))

    @given(rows().map(in_whole_seconds))
    def test_any_records_go_both_ways(self, expected: list[Row]) -> None:
        self.check_both_ways(expected)


def _damaged(change: Callable[[bytearray], None]) -> bytes:
    data = build_batch(ROWS)
    change(data)
    return bytes(data)


@pytest.mark.parametrize("position", range(21, 61))
def test_we_and_they_notice_the_same_damage(position: int) -> None:
    def flip(data: bytearray) -> None:
        data[position] ^= 0x40

    data = _damaged(flip)
    assert not READERS["aiokafka compiled"](data).validate_crc()
    with pytest.raises(Exception, match="the stored CRC is"):
        RecordBatch(memoryview(data)).check()
