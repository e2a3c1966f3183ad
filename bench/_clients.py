"""Real clients as load: librdkafka from C through kcat, and confluent-kafka from Python.

kcat is a thin loop around librdkafka, so it stands for what a C client can do; its start-up of some 50 ms is
in the figure, the same for both brokers.
"""

import subprocess
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.conformance._setup import kcat

TIMEOUT_S = 120
PRODUCER = {"linger.ms": 5, "batch.num.messages": 10_000, "queue.buffering.max.messages": 500_000}
CONSUMER = {"fetch.wait.max.ms": 20, "queued.min.messages": 1_000_000}


def lines_file(record_bytes: int, count: int) -> Path:
    """A file of `count` lines, each a record of `record_bytes`; the caller removes it."""
    alphabet = b"abcdefghijklmnopqrstuvwxyz0123456789"
    with tempfile.NamedTemporaryFile(prefix="barnabas-lines-", delete=False) as out:
        for number in range(count):
            line = b"%010d" % number + alphabet * (record_bytes // len(alphabet) + 1)
            out.write(line[:record_bytes] + b"\n")
    return Path(out.name)


def _options(settings: dict[str, int]) -> list[str]:
    return [part for key, value in settings.items() for part in ("-X", f"{key}={value}")]


def kcat_produce(bootstrap_servers: str, topic: str, lines: Path) -> float:
    """Seconds to send every line of the file with acks=1."""
    command = [kcat(), "-P", "-b", bootstrap_servers, "-t", topic, "-p", "0", "-X", "acks=1", "-l"]
    start = time.perf_counter()
    subprocess.run([*command, *_options(PRODUCER), str(lines)], check=True, timeout=TIMEOUT_S)
    return time.perf_counter() - start


def kcat_consume(bootstrap_servers: str, topic: str, count: int) -> float:
    """Seconds to read `count` records from the start."""
    command = [kcat(), "-C", "-b", bootstrap_servers, "-t", topic, "-p", "0", "-o", "beginning", "-q"]
    start = time.perf_counter()
    subprocess.run(
        [*command, "-c", str(count), *_options(CONSUMER)],
        check=True,
        timeout=TIMEOUT_S,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - start


def confluent_produce(bootstrap_servers: str, topic: str, value: bytes, count: int) -> float:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": 1, **PRODUCER})
    start = time.perf_counter()
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=0)
                break
            except BufferError:
                producer.poll(0.01)
    if left := producer.flush(TIMEOUT_S):
        raise RuntimeError(f"{left} records were not delivered")
    return time.perf_counter() - start


def confluent_consume(bootstrap_servers: str, topic: str, count: int) -> float:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "bench",
            "enable.auto.commit": False,
            **CONSUMER,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    start = time.perf_counter()
    deadline = start + TIMEOUT_S
    seen = 0
    while seen < count:
        seen += len(consumer.consume(min(10_000, count - seen), 1.0))
        if time.perf_counter() > deadline:
            raise RuntimeError(f"only {seen} of {count} records came")
    taken = time.perf_counter() - start
    consumer.close()
    return taken
