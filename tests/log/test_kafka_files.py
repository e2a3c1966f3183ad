"""Our files in Apache Kafka's hands, and Kafka's files in ours.

The stored sample (written by Kafka 4.3.1) is always read; with Kafka at hand a fresh one is too, its dump
tool reads what we wrote, and its server serves a partition of ours.
"""

import re
import shutil
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported

from barnabas.base.clock import ManualClock
from barnabas.log.checkpoints import read_meta_properties, read_topic_id
from barnabas.log.config import LogConfig
from barnabas.log.directories import LogDirectories
from barnabas.log.files import OsFiles
from barnabas.log.partition_log import Origin, PartitionLog
from barnabas.records.codecs import Codec, decompress
from barnabas.records.kernel import decode
from tests import _kafka
from tests.log import _kafka_samples
from tests.log._make import NOW_MS, append, batch, fill, marker, open_log, read_batches

FILES = OsFiles()
CONFIG = LogConfig(index_interval_bytes=512, segment_bytes=6000)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> _kafka_samples.Sample:
    return _kafka_samples.unpack_stored(tmp_path_factory.mktemp("stored") / "data")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> _kafka_samples.Sample:
    if reason := _kafka.why_missing():
        pytest.skip(reason)
    return _kafka_samples.make(tmp_path_factory.mktemp("live") / "data")


@pytest.fixture
def sample(
    request: pytest.FixtureRequest, stored: _kafka_samples.Sample, tmp_path: Path
) -> _kafka_samples.Sample:
    """A copy that the test may change: of the stored sample, or of a fresh one."""
    found = request.getfixturevalue("live") if getattr(request, "param", "") == "live" else stored
    shutil.copytree(found.folder, tmp_path / "data")
    return _kafka_samples.read(tmp_path / "data")


both = pytest.mark.parametrize(
    "sample", ["stored", pytest.param("live", marks=pytest.mark.slow)], indirect=True
)


def values_of(log: PartitionLog) -> tuple[list[str], list[str]]:
    """(committed, aborted) values, told apart by the index of aborted transactions."""
    committed: list[str] = []
    aborted: list[str] = []
    dead = log.aborted_transactions(log.log_start_offset, log.log_end_offset)
    for each in read_batches(log):
        if each.is_control:
            continue
        payload = each.payload if each.codec is Codec.NONE else decompress(each.codec, each.payload, 1 << 20)
        records = decode(payload, each.record_count, each.base_offset, each.base_timestamp)
        hidden = any(
            txn.producer_id == each.producer_id and txn.first_offset <= each.base_offset <= txn.last_offset
            for txn in dead
        )
        target = aborted if hidden else committed
        target += [(record.value or b"").decode() for record in records]
    return committed, aborted


def open_folders(sample: _kafka_samples.Sample) -> LogDirectories:
    return LogDirectories.open(
        FILES,
        [str(sample.folder)],
        broker_id=1,
        config_of=lambda topic: CONFIG,
        clock=ManualClock(NOW_MS),
        new_id=lambda: bytes(16),
    )


def sample_log(directories: LogDirectories) -> PartitionLog:
    return next(log for log in directories if log.topic_partition.topic == _kafka_samples.TOPIC)


class TestKafkasFilesInOurs:
    @both
    def test_a_cleanly_stopped_folder_opens_without_a_scan(self, sample: _kafka_samples.Sample) -> None:
        directories = open_folders(sample)
        log = sample_log(directories)
        assert directories.offline == {}
        assert directories.folders[0].was_clean
        assert log.recovery is not None
        assert log.recovery.scanned_bytes == 0
        assert values_of(log) == (sample.committed, sample.aborted)
        assert log.log_end_offset == log.recovery_point == directories.high_watermarks[log.topic_partition]
        assert len(log.epochs.entries) == 2
        assert len(log.segments) > 2
        assert len(log.producers.producers) > 4
        assert log.topic_id is not None
        directories.close()

    @both
    def test_after_a_crash_the_indexes_we_build_are_kafkas(self, sample: _kafka_samples.Sample) -> None:
        indexes = {
            path.name: path.read_bytes()
            for suffix in ("index", "txnindex")
            for path in sample.folder.glob(f"sample-0/*.{suffix}")
        }
        (sample.folder / ".kafka_cleanshutdown").unlink()
        (sample.folder / "recovery-point-offset-checkpoint").unlink()
        directories = open_folders(sample)
        log = sample_log(directories)
        assert log.recovery is not None
        assert log.recovery.cut_bytes == 0
        assert log.recovery.scanned_bytes == log.size_bytes
        assert values_of(log) == (sample.committed, sample.aborted)
        log.close(now_ms=NOW_MS)
        for name, content in indexes.items():
            assert (sample.folder / "sample-0" / name).read_bytes() == content, name
        directories.release()

    @both
    def test_every_offset_and_every_time_is_found(self, sample: _kafka_samples.Sample) -> None:
        directories = open_folders(sample)
        log = sample_log(directories)
        for each in read_batches(log):
            for offset in (each.base_offset, each.last_offset):
                found = log.read(offset, max_bytes=1).slice
                assert found is not None
                assert found.length == each.size_bytes
            time = log.offset_for_timestamp(each.max_timestamp)
            assert time is not None
            assert time.offset <= each.last_offset
        directories.release()

    @both
    def test_the_snapshot_and_the_log_tell_the_same_producers(self, sample: _kafka_samples.Sample) -> None:
        by_snapshot = sample_log(open_folders(sample)).producers.producers
        for path in sample.folder.glob("sample-0/*.snapshot"):
            path.unlink()
        folder = str(sample.folder / "sample-0")
        replayed = open_log(folder, CONFIG, clean=True).producers.producers
        assert replayed.keys() == by_snapshot.keys()
        for producer_id, entry in by_snapshot.items():
            again = replayed[producer_id]
            assert (again.epoch, again.last_sequence, again.last_offset, again.coordinator_epoch) == (
                entry.epoch,
                entry.last_sequence,
                entry.last_offset,
                entry.coordinator_epoch,
            )

    def test_the_owner_is_read(self, stored: _kafka_samples.Sample) -> None:
        meta = read_meta_properties(FILES, str(stored.folder / "meta.properties"))
        assert meta is not None
        assert (meta.broker_id, meta.cluster_id, meta.version) == (1, _kafka.CLUSTER_ID, 1)


def write_ours(folder: Path, topic_id: bytes | None = None) -> list[str]:
    """A log of ours with every kind of file; returns the committed values, in order."""
    log = open_log(folder, CONFIG, topic_id=topic_id)
    values: list[str] = []
    for number, codec in enumerate(list(Codec) * 4):
        data = batch(5, codec=codec, value_bytes=120, fill=ord("a") + number, timestamp=NOW_MS + number)
        append(log, data, leader_epoch=number // 8)
        values += [chr(ord("a") + number) * 120] * 5
    for producer, committed in ((5, True), (6, False), (7, True)):
        sent = batch(
            3, producer_id=producer, epoch=0, sequence=0, transactional=True, fill=ord("A") + producer
        )
        append(log, sent, leader_epoch=3)
        end = marker(producer, 0, committed=committed, coordinator_epoch=2)
        log.append_as_leader(end, leader_epoch=3, now_ms=NOW_MS, origin=Origin.COORDINATOR)
        if committed:
            values += [chr(ord("A") + producer) * 20] * 3
    fill(log, 60, value_bytes=100)
    values += [chr(number) * 100 for number in range(60)]
    log.close(now_ms=NOW_MS)
    return values


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := _kafka.why_missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("ours") / "topic-0"
    write_ours(folder)
    return folder


@pytest.mark.slow
class TestOurFilesInKafkas:
    def dump(self, folder: Path, pattern: str, *options: str) -> str:
        files = ",".join(sorted(str(path) for path in folder.glob(pattern)))
        done = _kafka.run_tool("org.apache.kafka.tools.DumpLogSegments", "--files", files, *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def test_the_dump_tool_reads_every_record(self, ours: Path) -> None:
        out = self.dump(ours, "*.log", "--deep-iteration", "--print-data-log")
        offsets = [int(found) for found in re.findall(r"^\| offset: (\d+)", out, re.MULTILINE)]
        log = open_log(ours, CONFIG, clean=True)
        assert offsets == list(range(log.log_end_offset))
        assert "isvalid: false" not in out
        assert out.count("isvalid: true") == len(read_batches(log))
        assert "endTxnMarker: ABORT" in out

    def test_the_dump_tool_finds_no_fault_in_the_indexes(self, ours: Path) -> None:
        for pattern in ("*.index", "*.timeindex"):
            out = self.dump(ours, pattern, "--verify-index-only")
            assert "Mismatches" not in out
            assert "Found timestamp mismatch" not in out
            assert "out of order" not in out
            assert self.dump(ours, pattern, "--index-sanity-check").count("passed sanity check.") >= 3

    def test_the_dump_tool_reads_snapshots_and_transactions(self, ours: Path) -> None:
        out = self.dump(ours, "*.snapshot")
        assert re.search(r"producerId: 6 producerEpoch: 0 coordinatorEpoch: 2 .* lastSequence: 2 ", out)
        out = self.dump(ours, "*.txnindex")
        assert re.search(
            r"version: 0 producerId: 6 firstOffset: \d+ lastOffset: \d+ lastStableOffset: \d+", out
        )

    def test_a_kafka_server_serves_our_partition(self) -> None:
        if reason := _kafka.why_missing():
            pytest.skip(reason)
        with _kafka.KafkaServer() as server:
            admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
            admin.create_topics([NewTopic("ours", 1, 1)])["ours"].result(30)
            server.stop()
            folder = server.data_dir / "ours-0"
            topic_id = read_topic_id(FILES, str(folder / "partition.metadata"))
            shutil.rmtree(folder)
            values = write_ours(folder, topic_id)
            # Without its marker and checkpoints the server checks and indexes everything anew.
            (server.data_dir / ".kafka_cleanshutdown").unlink()
            (server.data_dir / "recovery-point-offset-checkpoint").unlink()
            (server.data_dir / "replication-offset-checkpoint").unlink()
            server.start()
            assert _consume(server.bootstrap_servers, len(values)) == values


def _consume(bootstrap_servers: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "g", "log_level": 0})
    consumer.assign([TopicPartition("ours", 0, 0)])
    values: list[str] = []
    for _ in range(60):
        for message in consumer.consume(count - len(values), 1):
            assert message.error() is None
            values.append((message.value() or b"").decode())
        if len(values) >= count:
            break
    consumer.close()
    return values
