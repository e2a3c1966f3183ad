"""Walking a segment file as it lies there."""

from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.files import OsFiles
from barnabas.log.stored_batches import LegacyEntry, StoredBatches, crc_fault
from barnabas.records.batch import RecordBatch
from barnabas.records.codecs import Codec
from barnabas.records.legacy import write_message_set
from barnabas.records.record import Record
from tests.log._make import batch

SAMPLE = b"".join(batch(2, base_offset=offset, value_bytes=offset) for offset in (0, 2, 4))


def walk(path: Path, data: bytes, max_bytes: int | None = None) -> tuple[list[tuple[int, int]], str | None]:
    """(position, first offset) of each batch, and the fault at the end."""
    path.write_bytes(data)
    batches = StoredBatches(OsFiles(), OsFiles().open_to_read(str(path)), max_bytes)
    found = [
        (position, each.base_offset if isinstance(each, RecordBatch) else each.offset)
        for position, each in batches
    ]
    return found, batches.fault


def test_every_batch_with_its_position(tmp_path: Path) -> None:
    sizes = [len(batch(2, value_bytes=value)) for value in (0, 2, 4)]
    assert walk(tmp_path / "log", SAMPLE) == (
        [(0, 0), (sizes[0], 2), (sizes[0] + sizes[1], 4)],
        None,
    )


def test_batches_larger_than_the_buffer(tmp_path: Path) -> None:
    large = bytes(batch(3, value_bytes=700_000))
    found, fault = walk(tmp_path / "log", large + SAMPLE)
    assert (len(found), fault) == (4, None)


def test_a_wrong_checksum_is_passed(tmp_path: Path) -> None:
    damaged = bytearray(SAMPLE)
    damaged[70] ^= 1
    found, fault = walk(tmp_path / "log", bytes(damaged))
    assert (len(found), fault) == (3, None)
    assert "the stored CRC is" in (crc_fault(RecordBatch(memoryview(damaged))) or "")


def test_rubbish_ends_the_walk(tmp_path: Path) -> None:
    found, fault = walk(tmp_path / "log", SAMPLE + b"\x00" * 40)
    assert (len(found), fault) == (3, "a batch of 12 bytes is shorter than its header")
    assert walk(tmp_path / "log", SAMPLE + b"\xff" * 40)[1] == "magic -1 instead of 2"
    assert walk(tmp_path / "log", SAMPLE[:-1])[1] == "a batch of 89 bytes with 88 bytes left"


def test_no_more_than_max_bytes_are_read(tmp_path: Path) -> None:
    assert len(walk(tmp_path / "log", SAMPLE, max_bytes=100)[0]) == 1


def test_message_sets_are_entries(tmp_path: Path) -> None:
    records = [Record(offset, 1000 + offset, b"k", b"v", ()) for offset in (5, 6)]
    data = b"".join(write_message_set(records, magic=magic, codec=Codec.NONE) for magic in (0, 1))
    path = tmp_path / "log"
    path.write_bytes(data)
    found = [each for _, each in StoredBatches(OsFiles(), OsFiles().open_to_read(str(path)))]
    assert [(e.magic, e.offset, e.timestamp, e.is_valid) for e in found if isinstance(e, LegacyEntry)] == [
        (0, 5, -1, True),
        (0, 6, -1, True),
        (1, 5, 1005, True),
        (1, 6, 1006, True),
    ]


@given(st.integers(0, len(SAMPLE)))
def test_any_cut_leaves_the_whole_batches_before_it(cut: int) -> None:
    ends = list(accumulate(len(batch(2, value_bytes=value)) for value in (0, 2, 4)))
    with TemporaryDirectory() as folder:
        found, fault = walk(Path(folder) / "log", SAMPLE[:cut])
    assert len(found) == sum(end <= cut for end in ends)
    assert (fault is None) == (cut in (0, *ends))
