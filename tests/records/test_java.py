"""Apache Kafka's own Java classes: we read what they wrote in every format and codec, and they read ours."""

import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.records.batch import RecordBatch, stamp_log_append_time
from barnabas.records.builder import Row, build_batch
from barnabas.records.codecs import Codec
from barnabas.records.legacy import read_message_set, write_message_set
from barnabas.records.record import Record
from tests import _kafka
from tests.records.samples import LIMIT, NOW

FOLDER = Path(__file__).resolve().parent.parent / "data" / "message_sets"
BASE_OFFSET = 1000
APPEND_TIME = NOW + 555


class Variant(NamedTuple):
    """One way to write the records."""

    magic: int
    codec: Codec
    append_time: bool

    def __str__(self) -> str:
        return f"magic{self.magic}-{self.codec.name.lower()}-{'append' if self.append_time else 'create'}"


VARIANTS = [
    Variant(magic, codec, append_time)
    for magic in (0, 1, 2)
    for codec in Codec
    for append_time in (False, True)
    if not (magic < 2 and codec is Codec.ZSTD) and not (magic == 0 and append_time)
]


def rows(variant: Variant) -> list[Row]:
    return [
        (
            NOW + i,
            None if i % 5 == 1 else b"key-%d" % i,
            None if i % 7 == 2 else b"value %d " % i * (i if variant.codec is Codec.NONE else 10 * i),
            ((f"h{i}", b"x%d" % i), ("null", None)) if variant.magic == 2 and i % 3 == 0 else (),
        )
        for i in range(40)
    ]


def expected(variant: Variant) -> list[Record]:
    return [
        Record(
            BASE_OFFSET + n,
            -1 if variant.magic == 0 else APPEND_TIME if variant.append_time else timestamp,
            None if key is None else bytes(key),
            None if value is None else bytes(value),
            headers,
            timestamp_type=int(variant.append_time),
        )
        for n, (timestamp, key, value, headers) in enumerate(rows(variant))
    ]


def write_ours(variant: Variant) -> bytearray:
    if variant.magic < 2:
        return write_message_set(
            expected(variant),
            magic=variant.magic,
            codec=variant.codec,
            log_append_time=APPEND_TIME if variant.append_time else None,
        )
    data = build_batch(rows(variant), codec=variant.codec, base_offset=BASE_OFFSET)
    if variant.append_time:
        stamp_log_append_time(data, 0, APPEND_TIME)
    return data


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_we_read_what_java_wrote(variant: Variant) -> None:
    data = (FOLDER / f"kafka-clients-3.9.1-{variant}.bin").read_bytes()
    if variant.magic < 2:
        found = read_message_set(memoryview(data), limit=LIMIT)
        assert (found.records, found.codec, found.size_bytes) == (
            expected(variant),
            variant.codec,
            len(data),
        )
    else:
        batch = RecordBatch(memoryview(data))
        batch.check()
        assert (batch.codec, batch.timestamp_type) == (variant.codec, variant.append_time)
        assert batch.records(limit=LIMIT) == expected(variant)


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v.codec in (Codec.NONE, Codec.SNAPPY)], ids=str)
def test_we_write_the_same_bytes_where_the_codec_leaves_no_freedom(variant: Variant) -> None:
    assert write_ours(variant) == (FOLDER / f"kafka-clients-3.9.1-{variant}.bin").read_bytes()


@pytest.mark.slow
def test_java_reads_what_we_wrote(tmp_path: Path) -> None:
    if reason := _kafka.why_missing():
        pytest.skip(reason)
    wanted = []
    for variant in VARIANTS:
        (tmp_path / str(variant)).write_bytes(write_ours(variant))
        wanted += [
            " ".join(
                [
                    f"{variant} {variant.codec.name.lower()} {record.offset} {record.timestamp}",
                    *(shown(data) for data in (record.key, record.value)),
                    *(f"{key}={shown(value)}" for key, value in record.headers),
                ]
            )
            for record in expected(variant)
        ]
    program = Path(__file__).with_name("ReadSets.java")
    command = _kafka.java(str(program), *(str(tmp_path / str(variant)) for variant in VARIANTS))
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == wanted


def shown(data: bytes | None) -> str:
    return "null" if data is None else f"0x{data.hex()}"
