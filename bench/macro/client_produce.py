"""Producing: our client beside confluent-kafka, aiokafka and kafka-python, one broker, one run.

    python -m bench.macro.client_produce [--quick] [--rounds N] [--only TEXT] [--server barnabas|kafka]

Each row is measured for every client in turn, several rounds; the median is printed.  Rates are records per
second from first send to last acknowledgement, in one process with one thread that sends.  All clients get
batches of up to 1 MB and 5 ms to fill them, which is what librdkafka does by itself; `defaults` gives each
the settings it comes with.  `ratio` is our client over confluent-kafka.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import aiokafka
import confluent_kafka
import kafka

from barnabas.client import aio
from barnabas.client.hot import IMPLEMENTATION
from barnabas.client.producer import Producer
from bench._brokers import create_topic, running

BATCH_BYTES = 1_000_000
LINGER_MS = 5
TIMEOUT_S = 120
SYNC_SENDS = 1_000


@dataclass(frozen=True, slots=True)
class Job:
    """What one measurement sends."""

    bootstrap_servers: str
    topic: str
    value: bytes
    count: int
    acks: str
    codec: str
    tuned: bool = True


Rate = Callable[[Job], float]


def ours(job: Job) -> float:
    settings: dict[str, object] = {"acks": job.acks, "compression.type": job.codec}
    if job.tuned:
        settings |= {"batch.size": BATCH_BYTES, "linger.ms": LINGER_MS}
    with Producer({"bootstrap.servers": job.bootstrap_servers, **settings}) as producer:
        producer.partitions_for(job.topic)
        send, topic, value = producer.send, job.topic, job.value
        start = time.perf_counter()
        for _ in range(job.count):
            send(topic, value)
        producer.flush(TIMEOUT_S)
        return job.count / (time.perf_counter() - start)


def ours_async(job: Job) -> float:
    settings: dict[str, object] = {"acks": job.acks, "compression.type": job.codec}
    if job.tuned:
        settings |= {"batch.size": BATCH_BYTES, "linger.ms": LINGER_MS}

    async def run() -> float:
        async with aio.Producer({"bootstrap.servers": job.bootstrap_servers, **settings}) as producer:
            await producer.partitions_for(job.topic)
            start = time.perf_counter()
            for number in range(job.count):
                await producer.send(job.topic, job.value)
                if number % 1000 == 0:
                    await asyncio.sleep(0)  # a program that never waits sends nothing
            await producer.flush(TIMEOUT_S)
            return job.count / (time.perf_counter() - start)

    return asyncio.run(run())


def confluent(job: Job) -> float:
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": job.bootstrap_servers,
        "acks": job.acks,
        "compression.type": job.codec,
        "queue.buffering.max.messages": 500_000,
    }
    if job.acks == "all":
        settings["enable.idempotence"] = True  # as ours
    if job.tuned:
        settings |= {"linger.ms": LINGER_MS, "batch.num.messages": 10_000, "batch.size": BATCH_BYTES}
    producer = confluent_kafka.Producer(settings)
    producer.list_topics(job.topic, TIMEOUT_S)
    start = time.perf_counter()
    for _ in range(job.count):
        while True:
            try:
                producer.produce(job.topic, job.value)
                break
            except BufferError:
                producer.poll(0.01)
    if left := producer.flush(TIMEOUT_S):
        raise RuntimeError(f"{left} records were not delivered")
    return job.count / (time.perf_counter() - start)


def kafka_python(job: Job) -> float:
    tuned = {"batch_size": BATCH_BYTES, "linger_ms": LINGER_MS} if job.tuned else {}
    producer = kafka.KafkaProducer(
        bootstrap_servers=job.bootstrap_servers,
        acks="all" if job.acks == "all" else int(job.acks),
        compression_type=None if job.codec == "none" else job.codec,
        **tuned,
    )
    count = max(job.count // 20, 1)  # it is some fifty times slower
    start = time.perf_counter()
    for _ in range(count):
        producer.send(job.topic, job.value)
    producer.flush(TIMEOUT_S)
    taken = time.perf_counter() - start
    producer.close()
    return count / taken


def aiokafka_async(job: Job) -> float:
    tuned = {"max_batch_size": BATCH_BYTES, "linger_ms": LINGER_MS} if job.tuned else {}
    count = max(job.count // 5, 1)

    async def run() -> float:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=job.bootstrap_servers,
            acks="all" if job.acks == "all" else int(job.acks),
            compression_type=None if job.codec == "none" else job.codec,
            **tuned,
        )
        await producer.start()
        start = time.perf_counter()
        for _ in range(count):
            await producer.send(job.topic, job.value)
        await producer.flush()
        taken = time.perf_counter() - start
        await producer.stop()
        return count / taken

    return asyncio.run(run())


CLIENTS: dict[str, Rate] = {
    "barnabas": ours,
    "barnabas.aio": ours_async,
    "confluent-kafka": confluent,
    "aiokafka": aiokafka_async,
    "kafka-python": kafka_python,
}
ROWS = {
    "100 B, acks=1": (100, "1", "none", True, 1),
    "100 B, acks=all, idempotent": (100, "all", "none", True, 1),
    "100 B, lz4": (100, "1", "lz4", True, 1),
    "100 B, 6 partitions": (100, "1", "none", True, 6),
    "100 B, defaults": (100, "1", "none", False, 6),
    "1 KB, acks=1": (1024, "1", "none", True, 1),
    "1 KB, lz4": (1024, "1", "lz4", True, 1),
}


def one_at_a_time(bootstrap_servers: str, topic: str, count: int) -> dict[str, list[float]]:
    """Seconds of each send with acks=1 that waits for its acknowledgement."""
    found: dict[str, list[float]] = {"barnabas": [], "confluent-kafka": []}
    with Producer(bootstrap_servers=bootstrap_servers, acks=1, linger_ms=0) as producer:
        for _ in range(count):
            start = time.perf_counter()
            producer.send(topic, b"x" * 100).result(TIMEOUT_S)
            found["barnabas"].append(time.perf_counter() - start)
    theirs = confluent_kafka.Producer({"bootstrap.servers": bootstrap_servers, "acks": 1, "linger.ms": 0})
    for _ in range(count):
        start = time.perf_counter()
        theirs.produce(topic, b"x" * 100)
        theirs.flush(TIMEOUT_S)
        found["confluent-kafka"].append(time.perf_counter() - start)
    return found


def print_rows(bootstrap_servers: str, found: dict[str, dict[str, list[float]]]) -> None:
    print(f"| thousand records/s | {' | '.join(CLIENTS)} | ratio |")
    print(f"|---|{'---|' * len(CLIENTS)}---|")
    for row, rates in found.items():
        medians = {name: statistics.median(values) for name, values in rates.items()}
        cells = [f"{medians[name] / 1000:.0f}" if name in medians else "" for name in CLIENTS]
        ratio = (
            f"{medians['barnabas'] / medians['confluent-kafka']:.2f}"
            if {"barnabas", "confluent-kafka"} <= medians.keys()
            else ""
        )
        print(f"| {row} | {' | '.join(cells)} | {ratio} |")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Producing, client beside client.")
    parser.add_argument("--quick", action="store_true", help="one round, fewer records")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--clients", default="", help="clients, separated by commas")
    parser.add_argument("--server", choices=("barnabas", "kafka"), default="barnabas")
    chosen = parser.parse_args(arguments)
    rounds = 1 if chosen.quick else chosen.rounds
    small = 200_000 if chosen.quick else 1_000_000
    clients = chosen.clients.split(",") if chosen.clients else list(CLIENTS)
    print(f"hot path: {IMPLEMENTATION}; broker: {chosen.server}; {rounds} rounds\n")
    found: dict[str, dict[str, list[float]]] = {}
    with running([chosen.server]) as servers:
        server = servers[chosen.server]
        for row, (size, acks, codec, tuned, partitions) in ROWS.items():
            if chosen.only not in row:
                continue
            topic = f"t{len(found)}"
            create_topic(server, topic, partitions)
            count = small if size < 1000 else small // 5
            value = (b"%010d" % 7 + b"the quick brown fox jumps over the lazy dog " * 30)[:size]
            rates: dict[str, list[float]] = {}
            for _ in range(rounds):
                for name in clients:
                    job = Job(server.bootstrap_servers, topic, value, count, acks, codec, tuned)
                    try:
                        rates.setdefault(name, []).append(CLIENTS[name](job))
                    except RuntimeError as error:  # kafka-python without the library of a codec
                        print(f"{name}, {row}: {error}")
                        rates.pop(name)
            found[row] = rates
        print_rows(server.bootstrap_servers, found)
        if chosen.only in "one at a time":
            create_topic(server, "single", 1)
            print("\n| one at a time, acks=1 | p50 ms | p99 ms |\n|---|---|---|")
            for name, taken in one_at_a_time(server.bootstrap_servers, "single", SYNC_SENDS).items():
                taken.sort()
                p50, p99 = taken[len(taken) // 2] * 1000, taken[len(taken) * 99 // 100] * 1000
                print(f"| {name} | {p50:.3f} | {p99:.3f} |")


if __name__ == "__main__":
    main()
