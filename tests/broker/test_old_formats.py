"""barnabas.broker.old_formats: what clients of before batches and zstd can be given."""

from pathlib import Path

import pytest

from barnabas.base.buffers import FileSlice
from barnabas.broker.old_formats import (
    FIRST_BATCH_VERSION,
    FIRST_ZSTD_VERSION,
    check_codec,
    legacy_records,
)
from barnabas.log.files import OsFiles
from barnabas.records.builder import build_batch, end_txn_marker
from barnabas.records.codecs import Codec
from barnabas.records.errors import UnsupportedCodec
from barnabas.records.legacy import magic_of, read_message_set


def stored(path: Path, *batches: bytes | bytearray) -> FileSlice:
    data = b"".join(batches)
    path.write_bytes(data)
    return FileSlice(OsFiles().open(str(path)), 0, len(data))


def rows(*values: bytes, base_offset: int = 0, codec: Codec = Codec.NONE) -> bytearray:
    return build_batch([(5, None, value, ()) for value in values], base_offset=base_offset, codec=codec)


def marker(offset: int) -> bytearray:
    return end_txn_marker(
        committed=True, coordinator_epoch=0, timestamp=5, producer_id=1, producer_epoch=0, base_offset=offset
    )


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_the_magic_follows_from_the_version(tmp_path: Path, version: int, magic: int) -> None:
    given = legacy_records(stored(tmp_path / "f", rows(b"a"), rows(b"b", base_offset=1)), version, 0)
    assert isinstance(given, bytearray)
    assert magic_of(memoryview(given)) == magic
    read = read_message_set(memoryview(given), limit=1 << 20)
    assert [(record.offset, record.value) for record in read.records] == [(0, b"a"), (1, b"b")]


def test_control_batches_are_left_out_and_alone_they_are_nothing(tmp_path: Path) -> None:
    mixed = legacy_records(stored(tmp_path / "f", rows(b"a"), marker(1)), 2, 0)
    assert isinstance(mixed, bytearray)
    assert len(read_message_set(memoryview(mixed), limit=1 << 20).records) == 1
    assert len(legacy_records(stored(tmp_path / "g", marker(0), marker(1)), 2, 0)) == 0


def test_zstd_cannot_be_given(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedCodec):
        legacy_records(stored(tmp_path / "f", rows(b"z" * 200, codec=Codec.ZSTD)), 3, 0)


@pytest.mark.parametrize("codec", [None, Codec.NONE, Codec.GZIP, Codec.LZ4])
def test_topics_kept_in_other_codecs_are_for_everybody(codec: Codec | None) -> None:
    for version in range(19):
        check_codec(codec, version)


def test_a_topic_kept_in_zstd_is_for_readers_that_know_it() -> None:
    for version in range(FIRST_ZSTD_VERSION):
        with pytest.raises(UnsupportedCodec, match=r"^zstd needs Fetch v10 or newer$"):
            check_codec(Codec.ZSTD, version)
    check_codec(Codec.ZSTD, FIRST_ZSTD_VERSION)
    assert FIRST_BATCH_VERSION == 4
