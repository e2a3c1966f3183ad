"""Consuming with the Python clients, side by side: one broker, one topic, the same records, one run.

    python -m bench.macro.client_consume [--quick] [--records N] [--only TEXT] [--kafka]

Every client reads a topic with four partitions from start to end in a process of its own; the clock
runs from the first record asked for to the last one in hand, connecting included.  Rounds alternate
between the clients and the median counts.  `ratio` is ours over the best of the others.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
import uuid
from typing import Any

from bench import _brokers

PARTITIONS = 4
WAIT_S = 60
SIZES = {"100 B": (100, 1_000_000), "1 KB": (1000, 200_000)}
CODECS = ("none", "lz4")


def fill(bootstrap_servers: str, topic: str, value_bytes: int, count: int, codec: str) -> None:
    """Writes `count` records in batches as a busy producer makes them."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "compression.type": codec,
            "linger.ms": 20,
            "batch.size": 131_072,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 500_000,
            "log_level": 0,
        }
    )
    text = b"".join(b'{"id":%d,"name":"item-%d"}' % (n, n) for n in range(value_bytes))[:value_bytes]
    for number in range(count):
        while True:
            try:
                producer.produce(topic, text, key=b"%010d" % number, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.01)
    if left := producer.flush(WAIT_S):
        raise RuntimeError(f"{left} records were not delivered")


# --- the clients; each returns seconds


def barnabas(servers: str, topic: str, count: int) -> float:
    from barnabas.base.types import TopicPartition
    from barnabas.client.consumer import Consumer

    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        start = time.perf_counter()
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        seen = 0
        while seen < count:
            records = consumer.poll(WAIT_S)
            assert records, f"only {seen} of {count} records came"
            for record in records:
                record.value  # noqa: B018  # what every user does with it
            seen += len(records)
        return time.perf_counter() - start


def barnabas_aio(servers: str, topic: str, count: int) -> float:
    from barnabas.base.types import TopicPartition
    from barnabas.client.aio_consumer import Consumer
    from barnabas.client.thread import new_event_loop

    async def main() -> float:
        async with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            start = time.perf_counter()
            await consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
            seen = 0
            while seen < count:
                records = await consumer.poll(WAIT_S)
                assert records, f"only {seen} of {count} records came"
                for record in records:
                    record.value  # noqa: B018
                seen += len(records)
            return time.perf_counter() - start

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main())


def barnabas_arrow(servers: str, topic: str, count: int) -> float:
    import pyarrow  # noqa: F401  # its import is not what is measured

    from barnabas.base.types import TopicPartition
    from barnabas.client.consumer import Consumer

    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        start = time.perf_counter()
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        seen = 0
        while seen < count:
            batches = consumer.poll_batches(WAIT_S)
            assert batches, f"only {seen} of {count} records came"
            seen += sum(batch.num_rows for batch in batches)
        return time.perf_counter() - start


def confluent(servers: str, topic: str, count: int) -> float:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": uuid.uuid4().hex,
            "enable.auto.commit": False,
            "queued.min.messages": 1_000_000,
            "fetch.wait.max.ms": 20,
            "log_level": 0,
        }
    )
    start = time.perf_counter()
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    seen = 0
    while seen < count:
        messages = consumer.consume(500, WAIT_S)
        assert messages, f"only {seen} of {count} records came"
        for message in messages:
            message.value()
        seen += len(messages)
    taken = time.perf_counter() - start
    consumer.close()
    return taken


def aiokafka(servers: str, topic: str, count: int) -> float:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def main() -> float:
        consumer = AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
        await consumer.start()
        try:
            start = time.perf_counter()
            consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
            seen = 0
            while seen < count:
                found = await consumer.getmany(timeout_ms=WAIT_S * 1000, max_records=500)
                assert found, f"only {seen} of {count} records came"
                for records in found.values():
                    for record in records:
                        record.value  # noqa: B018
                    seen += len(records)
            return time.perf_counter() - start
        finally:
            await consumer.stop()

    import uvloop

    return uvloop.run(main())


def kafka_python(servers: str, topic: str, count: int) -> float:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", enable_auto_commit=False
    )
    start = time.perf_counter()
    consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
    seen = 0
    while seen < count:
        found = consumer.poll(timeout_ms=WAIT_S * 1000, max_records=500)
        assert found, f"only {seen} of {count} records came"
        for records in found.values():
            for record in records:
                record.value  # noqa: B018
            seen += len(records)
    taken = time.perf_counter() - start
    consumer.close()
    return taken


CLIENTS = {
    "barnabas": barnabas,
    "barnabas aio": barnabas_aio,
    "barnabas arrow": barnabas_arrow,
    "confluent-kafka": confluent,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
}
OTHERS = ("confluent-kafka", "aiokafka", "kafka-python")
SHARE = {"kafka-python": 10}  # reads a tenth: it would take a minute


def measure(name: str, servers: str, topic: str, count: int) -> float:
    """Records a second, from a process of its own."""
    wanted = count // SHARE.get(name, 1)
    command = [sys.executable, "-m", "bench.macro.client_consume", "--client", name]
    out = subprocess.run(
        [*command, "--servers", servers, "--topic", topic, "--records", str(wanted)],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return wanted / float(json.loads(out.stdout.splitlines()[-1]))


def table(rows: dict[str, dict[str, float]]) -> str:
    names = list(CLIENTS)
    lines = ["| records | " + " | ".join(names) + " | ratio |", "|---" * (len(names) + 2) + "|"]
    for title, rates in rows.items():
        best = max((rates[name] for name in OTHERS if name in rates), default=0.0)
        ratio = f"{rates['barnabas'] / best:.1f}x" if best and "barnabas" in rates else ""
        cells = [f"{rates[name] / 1000:,.0f} k/s" if name in rates else "" for name in names]
        lines.append(f"| {title} | " + " | ".join(cells) + f" | {ratio} |")
    return "\n".join(lines)


def compare(options: argparse.Namespace) -> None:
    rounds = 1 if options.quick else 3
    rows: dict[str, dict[str, float]] = {}
    with _brokers.running(["kafka" if options.kafka else "barnabas"]) as servers:
        (server,) = servers.values()
        for size, (value_bytes, full) in SIZES.items():
            for codec in CODECS:
                title = f"{size}, {codec}"
                if options.only and options.only not in title:
                    continue
                count = full // 4 if options.quick else full
                topic = f"consume-{value_bytes}-{codec}"
                _brokers.create_topic(server, topic, PARTITIONS)
                fill(server.bootstrap_servers, topic, value_bytes, count, codec)
                found: dict[str, list[float]] = {}
                for _ in range(rounds):
                    for name in CLIENTS:
                        if not options.clients or name in options.clients:
                            rate = measure(name, server.bootstrap_servers, topic, count)
                            found.setdefault(name, []).append(rate)
                rows[title] = {name: statistics.median(rates) for name, rates in found.items()}
    print(table(rows))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a quarter of the records, one round")
    parser.add_argument("--kafka", action="store_true", help="against Apache Kafka")
    parser.add_argument("--only", help="rows whose title contains this, as '1 KB'")
    parser.add_argument("--clients", nargs="*", choices=CLIENTS, help="only these clients")
    parser.add_argument("--client", choices=CLIENTS, help=argparse.SUPPRESS)
    parser.add_argument("--servers", help=argparse.SUPPRESS)
    parser.add_argument("--topic", help=argparse.SUPPRESS)
    parser.add_argument("--records", type=int, help=argparse.SUPPRESS)
    options: Any = parser.parse_args()
    if options.client:
        print(json.dumps(CLIENTS[options.client](options.servers, options.topic, options.records)))
    else:
        compare(options)


if __name__ == "__main__":
    main()
