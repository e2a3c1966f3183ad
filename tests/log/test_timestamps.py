"""Looking up records by time inside one segment."""

from pathlib import Path

import pytest

from barnabas.log.config import LogConfig
from barnabas.log.errors import CorruptSegment
from barnabas.log.files import OsFiles
from barnabas.log.timestamps import FoundOffset, find_largest_timestamp, find_timestamp
from barnabas.records.builder import build_batch
from barnabas.records.codecs import Codec
from tests.log._make import NOW_MS, append, batch, open_log

FILES = OsFiles()


def times(*timestamps: int, codec: Codec = Codec.NONE) -> memoryview:
    return memoryview(build_batch([(NOW_MS + each, b"k", b"v", ()) for each in timestamps], codec=codec))


@pytest.mark.parametrize("codec", list(Codec))
def test_the_first_record_not_older_is_found_inside_its_batch(tmp_path: Path, codec: Codec) -> None:
    log = open_log(tmp_path)
    append(log, times(1, 5, 3, codec=codec), leader_epoch=4)
    append(log, times(2, 9, 9, codec=codec), leader_epoch=5)
    segment = log.segments.active
    assert find_timestamp(FILES, segment, NOW_MS + 2, 0) == FoundOffset(1, NOW_MS + 5, 4)
    assert find_timestamp(FILES, segment, NOW_MS + 2, 2) == FoundOffset(2, NOW_MS + 3, 4)
    assert find_timestamp(FILES, segment, NOW_MS + 6, 0) == FoundOffset(4, NOW_MS + 9, 5)
    assert find_timestamp(FILES, segment, NOW_MS + 10, 0) is None
    assert find_largest_timestamp(FILES, segment) == FoundOffset(4, NOW_MS + 9, 5)


def test_records_without_a_time_have_no_largest(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert find_largest_timestamp(FILES, log.segments.active) is None
    append(log, batch(timestamp=-1))
    assert find_largest_timestamp(FILES, log.segments.active) is None


def test_log_append_time_stands_for_all_records(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(log_append_time=True))
    append(log, times(-50, -60))
    assert log.offset_for_timestamp(NOW_MS) == FoundOffset(0, NOW_MS, 0)
    assert log.max_timestamp_offset() == FoundOffset(0, NOW_MS, 0)


def test_damage_is_told_with_its_place(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(3))
    path = Path(log.segments.active.path)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptSegment, match="position 0: batch at offset 0: the stored CRC"):
        log.offset_for_timestamp(NOW_MS)
