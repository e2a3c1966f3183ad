"""Log folders written by Apache Kafka itself: made live where Kafka can be had, else the stored ones.

    python -m tests.log._kafka_samples      # writes tests/data/kafka-logs anew

One topic, `sample`: plain and compressed batches of every codec, an idempotent producer, committed and
aborted transactions, small segments, and a restart in the middle, so that there are two leader epochs.
"""

import json
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported

from tests import _kafka

STORED = Path(__file__).parent.parent / "data" / "kafka-logs"
TOPIC = "sample"


class Sample(NamedTuple):
    """A data folder of a Kafka broker, and the values that were committed, in order."""

    folder: Path
    committed: list[str]
    aborted: list[str]


def make(target: Path) -> Sample:
    """Let a Kafka server write the sample and stop cleanly; its data folder becomes `target`."""
    committed: list[str] = []
    aborted: list[str] = []
    with _kafka.KafkaServer() as server:
        admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
        config = {"internal.segment.bytes": "6000", "index.interval.bytes": "512"}
        admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)])[TOPIC].result(30)
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            _produce(server, codec, committed)
        _transact(server, "commits", committed, commit=True)
        _transact(server, "aborts", aborted, commit=False)
        server.stop()
        server.start()
        _produce(server, "none", committed)
        _transact(server, "aborts", aborted, commit=False)
        _produce(server, "lz4", committed)
        server.stop()
        shutil.copytree(server.data_dir, target)
    (target / "values.json").write_text(json.dumps({"committed": committed, "aborted": aborted}))
    return read(target)


def _produce(server: _kafka.KafkaServer, codec: str, values: list[str]) -> None:
    producer = Producer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "compression.codec": codec,
            "enable.idempotence": True,
            "linger.ms": 5,
        }
    )
    for number in range(60):
        value = f"{codec}-{len(values)}-{'x' * 40}"
        producer.produce(TOPIC, value.encode(), str(number).encode(), partition=0, headers={"n": str(number)})
        values.append(value)
        if number % 10 == 9:
            producer.flush(30)
    assert producer.flush(30) == 0


def _transact(server: _kafka.KafkaServer, name: str, values: list[str], *, commit: bool) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(10):
        value = f"{name}-{len(values)}-{'y' * 40}"
        producer.produce(TOPIC, value.encode(), str(number).encode(), partition=0)
        values.append(value)
    assert producer.flush(30) == 0
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def read(folder: Path) -> Sample:
    values = json.loads((folder / "values.json").read_text())
    return Sample(folder, values["committed"], values["aborted"])


def unpack_stored(target: Path) -> Sample:
    """The sample that is kept in the repository, unpacked to `target`."""
    with tarfile.open(STORED / "sample.tar.xz") as archive:
        archive.extractall(target, filter="data")
    return read(target)


def store() -> None:
    """Make the sample and keep what of it belongs to the topic."""
    STORED.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "data"
        make(folder)
        for path in folder.iterdir():
            if path.is_dir() and path.name != f"{TOPIC}-0":
                shutil.rmtree(path)
        (folder / ".lock").unlink(missing_ok=True)
        with tarfile.open(STORED / "sample.tar.xz", "w:xz") as archive:
            for path in sorted(folder.rglob("*")):
                archive.add(path, path.relative_to(folder), recursive=False)


if __name__ == "__main__":
    store()
