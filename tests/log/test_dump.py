"""What the dump prints; where Apache Kafka can be had, that it is what its own tool prints."""

import json
from pathlib import Path

import pytest

from barnabas.log.dump import DumpOptions, Line, dump
from barnabas.log.dump_decoders import decode_offsets, decode_transactions
from barnabas.log.errors import CorruptIndex, DiskFault
from barnabas.log.files import OsFiles
from barnabas.protocol.storage.consumer_groups import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue
from barnabas.protocol.storage.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from barnabas.protocol.storage.offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.storage.transactions import PartitionsSchema, TransactionLogKey, TransactionLogValue
from barnabas.records.builder import build_batch
from barnabas.records.codecs import Codec
from barnabas.records.legacy import write_message_set
from barnabas.records.record import Record
from tests import _kafka
from tests.log._make import batch
from tests.log._samples import sample_folder

FIRST = "00000000000000000000"


def lines(path: Path, **options: object) -> list[Line]:
    return list(dump(OsFiles(), str(path), DumpOptions(**options)))  # type: ignore[arg-type]  # test shorthand


def texts(path: Path, **options: object) -> list[str]:
    return [line.text for line in lines(path, **options) if not line.is_aside]


def asides(path: Path, **options: object) -> list[str]:
    return [line.text for line in lines(path, **options) if line.is_aside]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return sample_folder(tmp_path)


class TestSegments:
    def test_a_batch_is_a_line(self, partition: Path) -> None:
        head, start, first, *_ = texts(partition / f"{FIRST}.log")
        assert head == f"Dumping {partition}/{FIRST}.log"
        assert start == "Log starting offset: 0"
        assert first == (
            "baseOffset: 0 lastOffset: 1 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 "
            "producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: false isControl: false "
            "deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1700000000000 size: 79 magic: 2 "
            "compresscodec: none crc: 3512734719 isvalid: true"
        )

    def test_deep_iteration_shows_records_without_their_content(self, partition: Path) -> None:
        assert texts(partition / f"{FIRST}.log", deep_iteration=True)[3] == (
            "| offset: 0 CreateTime: 1700000000000 keySize: 1 valueSize: 1 sequence: -1 headerKeys: []"
        )

    def test_print_data_log_shows_keys_and_values(self, partition: Path) -> None:
        shown = texts(partition / f"{FIRST}.log", print_data_log=True)
        assert shown[3].endswith("headerKeys: [] key: a payload: 1")
        assert "| offset: 3 CreateTime: 1700000000000 keySize: 1 valueSize: -1 " in shown[7]
        assert shown[7].endswith("key: d")

    def test_markers_say_what_they_decide(self, partition: Path) -> None:
        shown = texts(partition / f"{FIRST}.log", deep_iteration=True)
        assert shown[-1].endswith("keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] "
                                  "endTxnMarker: ABORT coordinatorEpoch: 0")  # fmt: skip

    def test_without_record_metadata_only_content_is_left(self, partition: Path) -> None:
        shown = texts(partition / f"{FIRST}.log", print_data_log=True, skip_record_metadata=True)
        assert shown[3] == "| key: a payload: 1"
        assert not any("endTxnMarker" in each for each in shown)

    def test_json_has_the_same_facts(self, partition: Path) -> None:
        first = json.loads(lines(partition / f"{FIRST}.log")[2].as_json)
        assert (first["kind"], first["baseOffset"], first["isvalid"]) == ("batch", 0, True)
        assert first["deleteHorizonMs"] is None

    def test_a_horizon_is_shown(self, tmp_path: Path) -> None:
        cleaned = sample_folder(tmp_path, cleaned=True)
        shown = texts(cleaned / f"{FIRST}.log")
        assert any("deleteHorizonMs: OptionalLong[1700086400000]" in each for each in shown)

    def test_gaps_are_named_aside(self, tmp_path: Path) -> None:
        cleaned = sample_folder(tmp_path, cleaned=True)
        path = cleaned / f"{FIRST}.log"
        said = asides(path, deep_iteration=True)
        assert said[0] == f"Non-consecutive offsets in {path}"
        assert "  1 is followed by 10" in said
        assert not any(line.is_problem for line in lines(path, deep_iteration=True))

    def test_a_damaged_batch_is_not_valid_and_the_next_is_shown(self, partition: Path) -> None:
        path = partition / f"{FIRST}.log"
        data = bytearray(path.read_bytes())
        data[75] ^= 0xFF
        path.write_bytes(data)
        shown = texts(path)
        assert shown[2].endswith("isvalid: false")
        assert shown[3].endswith("isvalid: true")

    def test_malformed_records_are_a_problem_and_the_dump_goes_on(self, partition: Path) -> None:
        path = partition / f"{FIRST}.log"
        data = bytearray(path.read_bytes())
        data[61] = 0x7F
        path.write_bytes(data)
        (problem,) = asides(path, deep_iteration=True)[:1]
        assert problem == f"{path}, position 0: record 0: its length is -64, 17 bytes follow"
        assert len(texts(path, deep_iteration=True)) > 10

    def test_a_torn_tail_is_counted(self, partition: Path) -> None:
        path = partition / f"{FIRST}.log"
        path.write_bytes(path.read_bytes()[:100])
        assert texts(path)[-1] == f"Found 21 invalid bytes at the end of {FIRST}.log"

    def test_max_bytes_stops_early(self, partition: Path) -> None:
        assert len(texts(partition / f"{FIRST}.log", max_bytes=80)) == 3

    def test_message_sets_are_shown_too(self, tmp_path: Path) -> None:
        path = tmp_path / f"{FIRST}.log"
        records = [Record(offset, 1000, b"k", b"v", ()) for offset in (0, 1)]
        path.write_bytes(write_message_set(records, magic=1, codec=Codec.GZIP))
        _, _, wrapper, first, _ = texts(path, print_data_log=True)
        assert wrapper.startswith("offset: 1 position: 0 CreateTime: 1000 size:")
        assert first == "| offset: 0 CreateTime: 1000 keySize: 1 valueSize: 1 key: k payload: v"

    def test_deleted_segments_can_be_looked_at(self, partition: Path) -> None:
        path = partition / f"{FIRST}.log"
        path.rename(f"{path}.deleted")
        assert len(texts(Path(f"{path}.deleted"))) > 3


class TestIndexes:
    def test_entries(self, partition: Path) -> None:
        assert texts(partition / f"{FIRST}.index")[1] == "offset: 5 position: 217"
        assert texts(partition / f"{FIRST}.timeindex")[1] == "timestamp: 1700000000000 offset: 1"
        assert asides(partition / f"{FIRST}.index") == asides(partition / f"{FIRST}.timeindex") == []

    def test_verify_only_prints_no_entries(self, partition: Path) -> None:
        assert len(texts(partition / f"{FIRST}.index", verify_index_only=True)) == 1

    def test_sanity(self, partition: Path) -> None:
        path = partition / f"{FIRST}.index"
        assert texts(path, index_sanity_check=True)[1] == f"{path} passed sanity check."
        path.write_bytes(path.read_bytes()[:8] * 2)
        assert asides(path, index_sanity_check=True) == [
            f"{path}: the index does not rise: (5, 217) follows (5, 217)"
        ]

    def test_a_wrong_entry_is_a_mismatch(self, partition: Path) -> None:
        path = partition / f"{FIRST}.index"
        path.write_bytes(b"\x00\x00\x00\x01\x00\x00\x00\x4f")
        assert asides(path) == [f"Mismatches in :{path}", "  Index offset: 1, log offset: 3"]

    def test_a_wrong_time_is_a_mismatch(self, partition: Path) -> None:
        path = partition / f"{FIRST}.timeindex"
        path.write_bytes((5).to_bytes(8, "big") + (1).to_bytes(4, "big"))
        assert asides(path) == [
            f"Found timestamp mismatch in :{path}",
            "  Index timestamp: 5, log timestamp: 1700000000000",
        ]

    def test_an_offset_that_is_not_there(self, partition: Path) -> None:
        path = partition / f"{FIRST}.timeindex"
        path.write_bytes((5).to_bytes(8, "big") + (2).to_bytes(4, "big"))
        assert asides(path)[1] == "Indexed offset: 2, found log offset: 3"

    def test_an_empty_one(self, partition: Path) -> None:
        path = partition / "00000000000000000019.index"
        assert texts(path)[1] == f"{path} is empty."

    def test_half_an_entry_is_an_error(self, partition: Path) -> None:
        path = partition / f"{FIRST}.index"
        path.write_bytes(b"123")
        with pytest.raises(CorruptIndex, match="3 bytes are not whole entries of 8 bytes"):
            lines(path)

    def test_aborted_transactions(self, partition: Path) -> None:
        assert texts(partition / f"{FIRST}.txnindex")[1:] == [
            "version: 0 producerId: 7 firstOffset: 12 lastOffset: 13 lastStableOffset: 14"
        ]


class TestSmallFiles:
    def test_producer_snapshots(self, partition: Path) -> None:
        assert texts(partition / "00000000000000000019.snapshot")[1] == (
            "producerId: 7 producerEpoch: 0 coordinatorEpoch: 0 currentTxnFirstOffset: OptionalLong.empty "
            "lastTimestamp: 1700000000000 firstSequence: 1 lastSequence: 2 lastOffset: 15 offsetDelta: 1 "
            "timestamp: 1700000000000"
        )

    def test_a_damaged_snapshot_is_a_problem(self, partition: Path) -> None:
        path = partition / "00000000000000000019.snapshot"
        path.write_bytes(b"\x00" * 20)
        assert asides(path) == [f"{path}: version 0 instead of 1"]

    def test_checkpoints(self, partition: Path) -> None:
        assert texts(partition / "leader-epoch-checkpoint")[1:] == ["epoch: 0 startOffset: 0"]
        assert texts(partition.parent / "recovery-point-offset-checkpoint")[1:] == [
            "topic: topic partition: 0 offset: 20"
        ]

    def test_properties(self, partition: Path) -> None:
        assert texts(partition / "partition.metadata")[1] == "version: 0 topic_id: AAECAwQFBgcICQoLDA0ODw"
        assert texts(partition.parent / "meta.properties")[1].startswith("version: 1 node.id: 1")

    def test_other_files_are_passed_over(self, tmp_path: Path) -> None:
        assert asides(tmp_path / "notes.txt") == [f"Ignoring unknown file {tmp_path}/notes.txt"]

    def test_a_missing_file_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(DiskFault, match="No such file"):
            lines(tmp_path / f"{FIRST}.log")


# -- side by side with Apache Kafka ----------------------------------------------------------------

TOOL = "org.apache.kafka.tools.DumpLogSegments"


def kafka_prints(*arguments: str) -> list[str]:
    done = _kafka.run_tool(TOOL, *arguments)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.slow
class TestAgainstApacheKafka:
    @pytest.fixture(autouse=True)
    def needs_kafka(self) -> None:
        if reason := _kafka.why_missing():
            pytest.skip(reason)

    @pytest.mark.parametrize("cleaned", [False, True], ids=["as written", "compacted"])
    def test_every_line_is_the_same(self, tmp_path: Path, cleaned: bool) -> None:
        partition = sample_folder(tmp_path, cleaned=cleaned)
        paths = sorted(
            path
            for path in partition.iterdir()
            if path.suffix not in (".metadata", "") and path.stat().st_size
        )
        ours = [text for path in paths for text in texts(path, print_data_log=True)]
        theirs = kafka_prints("--print-data-log", "--files", ",".join(map(str, paths)))
        assert ours == theirs

    def test_group_records_are_the_same(self, tmp_path: Path) -> None:
        subscription = ConsumerProtocolSubscription(topics=["t"]).encode_versioned(3)
        assignment = ConsumerProtocolAssignment(assigned_partitions=[]).encode_versioned(0)
        member = MemberMetadata(
            member_id="m", client_id="c", client_host="h", subscription=subscription, assignment=assignment
        )
        group = GroupMetadataValue(protocol_type="consumer", generation=1, members=[member])
        offset = OffsetCommitValue(offset=42, metadata="", commit_timestamp=1)
        rows = [
            (
                OffsetCommitKey(group="g", topic="t", partition=3).encode_versioned(1),
                offset.encode_versioned(3),
            ),
            (OffsetCommitKey(group="g", topic="t", partition=3).encode_versioned(1), None),
            (GroupMetadataKey(group="g").encode_versioned(2), group.encode_versioned(3)),
            (
                ConsumerGroupMetadataKey(group_id="g").encode_versioned(3),
                ConsumerGroupMetadataValue(epoch=10).encode_versioned(0),
            ),
        ]
        path = tmp_path / f"{FIRST}.log"
        path.write_bytes(build_batch([(0, key, value, ()) for key, value in rows], leader_epoch=0))
        ours = texts(path, print_data_log=True, decoder=decode_offsets)
        assert ours == kafka_prints("--offsets-decoder", "--files", str(path))

    def test_transaction_records_are_the_same(self, tmp_path: Path) -> None:
        value = TransactionLogValue(
            producer_id=9,
            producer_epoch=1,
            transaction_timeout_ms=60,
            transaction_status=1,
            transaction_partitions=[PartitionsSchema(topic="t", partition_ids=[0, 1])],
        )
        rows = [
            (0, TransactionLogKey(transactional_id="tx").encode_versioned(0), value.encode_versioned(0), ()),
            (0, TransactionLogKey(transactional_id="tx").encode_versioned(0), None, ()),
        ]
        path = tmp_path / f"{FIRST}.log"
        path.write_bytes(build_batch(rows, leader_epoch=0))
        ours = texts(path, print_data_log=True, decoder=decode_transactions)
        assert ours == kafka_prints("--transaction-log-decoder", "--files", str(path))

    def test_a_damaged_batch_is_marked_alike(self, tmp_path: Path) -> None:
        path = tmp_path / f"{FIRST}.log"
        data = bytearray(batch(3))
        data[-1] ^= 1
        path.write_bytes(data + b"tail of a torn batch")
        assert texts(path) == kafka_prints("--files", str(path))
