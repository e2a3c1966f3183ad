"""Batches of real clients, recorded on the wire with Apache Kafka 3.9.1 and 4.3.1, read by us.

aiokafka's readers, plain and compiled, say what must be found in them.
"""

from pathlib import Path
from typing import Any

import pytest

from barnabas.records.batch import RecordBatch, split_batches
from barnabas.records.builder import EndTxnMarker, build_batch, end_txn_marker, read_end_txn_marker
from barnabas.records.codecs import Codec
from tests.records.peers import READERS
from tests.records.samples import LIMIT, recorded_files

FILES = list(recorded_files())


def batches_of(path: Path) -> list[RecordBatch]:
    return split_batches(memoryview(path.read_bytes()))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("peer", ["aiokafka compiled", "aiokafka plain"])
def test_we_read_what_aiokafka_reads(path: Path, peer: str) -> None:
    for batch in batches_of(path):
        batch.check()
        if not batch.is_control:
            batch.check_produced()
        theirs = READERS[peer](bytes(batch.view))
        assert theirs.validate_crc()
        assert batch.base_offset == theirs.base_offset
        assert batch.producer_id == theirs.producer_id
        assert batch.is_transactional == theirs.is_transactional
        assert batch.is_control == theirs.is_control_batch
        assert batch.next_offset == theirs.next_offset
        expected = [
            (r.offset, r.timestamp, r.timestamp_type, r.key, r.value, tuple(r.headers)) for r in theirs
        ]
        ours = [
            (r.offset, r.timestamp, r.timestamp_type, r.key, r.value, r.headers)
            for r in batch.records(limit=LIMIT)
        ]
        assert ours == expected


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_we_build_the_same_bytes_again(path: Path) -> None:
    """For uncompressed batches the format leaves no freedom; markers included."""
    for batch in batches_of(path):
        if batch.codec is not Codec.NONE or batch.timestamp_type == 1:
            continue
        state: Any = {
            "base_offset": batch.base_offset,
            "leader_epoch": batch.leader_epoch,
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
        }
        if batch.is_control:
            marker = read_end_txn_marker(batch)
            assert marker is not None
            rebuilt = end_txn_marker(**marker._asdict(), timestamp=batch.base_timestamp, **state)
        else:
            rebuilt = build_batch(
                [(r.timestamp, r.key, r.value, r.headers) for r in batch.records(limit=LIMIT)],
                transactional=batch.is_transactional,
                base_sequence=batch.base_sequence,
                **state,
            )
        assert rebuilt == batch.view


def test_the_recordings_cover_what_they_should() -> None:
    batches = [(path.stem, batch) for path in FILES for batch in batches_of(path)]
    assert {batch.codec for _, batch in batches} == set(Codec)
    librdkafka = {batch.codec for name, batch in batches if "confluent-kafka" in name}
    assert librdkafka == set(Codec), "C codecs, not the ones that we use"
    markers = [read_end_txn_marker(batch) for _, batch in batches if batch.is_control]
    assert set(markers) == {EndTxnMarker(True, 0), EndTxnMarker(False, 0)}
    assert any(batch.is_transactional and not batch.is_control for _, batch in batches)
    assert any(record.headers for _, batch in batches for record in batch.records(limit=LIMIT))
