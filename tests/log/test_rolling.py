"""The limits of an active segment; what they mean for a log is in test_partition_log."""

from pathlib import Path

import pytest

from barnabas.log.config import LogConfig
from barnabas.log.files import OsFiles
from barnabas.log.rolling import RollRule
from barnabas.log.segment import Segment
from tests.log._make import NOW_MS, batch


def rule(folder: Path, config: LogConfig, *, held: bool = True, timestamp: int = NOW_MS) -> RollRule:
    """The rule for a segment at offset 100 with one batch of 91 bytes in it."""
    segment = Segment(OsFiles(), str(folder), 100)
    segment.create()
    if held:
        segment.append(batch(base_offset=100), [(0, 100, timestamp)])
    return RollRule(segment, config, since_ms=NOW_MS)


@pytest.mark.parametrize(("size_bytes", "due"), [(909, False), (910, True)])
def test_size(tmp_path: Path, size_bytes: int, due: bool) -> None:
    assert rule(tmp_path, LogConfig(segment_bytes=1000)).due(size_bytes, 101, NOW_MS, NOW_MS) is due


@pytest.mark.parametrize(("last_offset", "due"), [(100 + 2**31 - 1, False), (100 + 2**31, True)])
@pytest.mark.parametrize("held", [True, False])
def test_relative_offsets(tmp_path: Path, last_offset: int, due: bool, held: bool) -> None:
    assert rule(tmp_path, LogConfig(), held=held).due(10, last_offset, NOW_MS, NOW_MS) is due


def test_age_by_the_records(tmp_path: Path) -> None:
    ages = rule(tmp_path, LogConfig(segment_ms=50))
    assert not ages.due(10, 101, NOW_MS + 50, NOW_MS + 999)
    assert ages.due(10, 101, NOW_MS + 51, NOW_MS)


def test_age_by_the_clock_without_times(tmp_path: Path) -> None:
    ages = rule(tmp_path, LogConfig(segment_ms=50), timestamp=-1)
    assert not ages.due(10, 101, NOW_MS + 999, NOW_MS + 50)
    assert ages.due(10, 101, -1, NOW_MS + 51)


def test_an_empty_segment_is_never_too_full(tmp_path: Path) -> None:
    assert not rule(tmp_path, LogConfig(segment_bytes=14, segment_ms=1), held=False).due(
        99, 101, 0, NOW_MS * 2
    )
