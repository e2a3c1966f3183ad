"""Consuming with the Python clients, side by side: one broker, one topic, the same records, one run.

    python -m bench.macro.client_consume [--quick] [--records N] [--only TEXT] [--kafka]

Every client reads a topic with four partitions from start to end in a process of its own; the clock
runs from the first record asked for to the last one in hand, connecting included.  Rounds alternate
between the clients and the median counts.  `ratio` is ours over the best of the others.

The second table has the CPU time of the client's process per record, which says more than the rate where the
machine is shared; its `ratio` is the best of the others over ours.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
import uuid
from importlib.util import find_spec
from typing import Any, NamedTuple

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


Taken = tuple[float, float]
"""Seconds by the clock, and of CPU in this process."""


class Stopwatch:
    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._cpu_start = time.process_time()

    def read(self) -> Taken:
        return time.perf_counter() - self._start, time.process_time() - self._cpu_start


# --- the clients


def barnabas(servers: str, topic: str, count: int) -> Taken:
    from barnabas.base.types import TopicPartition
    from barnabas.client.consumer import Consumer

    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        watch = Stopwatch()
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        seen = 0
        while seen < count:
            records = consumer.poll(WAIT_S)
            assert records, f"only {seen} of {count} records came"
            for record in records:
                record.value  # noqa: B018  # what every user does with it
            seen += len(records)
        return watch.read()


def barnabas_aio(servers: str, topic: str, count: int) -> Taken:
    from barnabas.base.types import TopicPartition
    from barnabas.client.aio_consumer import Consumer
    from barnabas.client.thread import new_event_loop

    async def main() -> Taken:
        async with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            watch = Stopwatch()
            await consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
            seen = 0
            while seen < count:
                records = await consumer.poll(WAIT_S)
                assert records, f"only {seen} of {count} records came"
                for record in records:
                    record.value  # noqa: B018  # as above
                seen += len(records)
            return watch.read()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main())


def barnabas_arrow(servers: str, topic: str, count: int) -> Taken:
    import pyarrow.compute  # noqa: F401  # its import is not what is measured

    from barnabas.base.types import TopicPartition
    from barnabas.client.consumer import Consumer

    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        watch = Stopwatch()
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        seen = 0
        while seen < count:
            batches = consumer.poll_batches(WAIT_S)
            assert batches, f"only {seen} of {count} records came"
            seen += sum(batch.num_rows for batch in batches)
        return watch.read()


def confluent(servers: str, topic: str, count: int) -> Taken:
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
    watch = Stopwatch()
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    seen = 0
    while seen < count:
        messages = consumer.consume(500, WAIT_S)
        assert messages, f"only {seen} of {count} records came"
        for message in messages:
            message.value()
        seen += len(messages)
    taken = watch.read()
    consumer.close()
    return taken


def aiokafka(servers: str, topic: str, count: int) -> Taken:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def main() -> Taken:
        consumer = AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
        await consumer.start()
        try:
            watch = Stopwatch()
            consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
            seen = 0
            while seen < count:
                found = await consumer.getmany(timeout_ms=WAIT_S * 1000, max_records=500)
                assert found, f"only {seen} of {count} records came"
                for records in found.values():
                    for record in records:
                        record.value  # noqa: B018  # as above
                    seen += len(records)
            return watch.read()
        finally:
            await consumer.stop()

    import uvloop

    return uvloop.run(main())


def kafka_python(servers: str, topic: str, count: int) -> Taken:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", enable_auto_commit=False
    )
    watch = Stopwatch()
    consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
    seen = 0
    while seen < count:
        found = consumer.poll(timeout_ms=WAIT_S * 1000, max_records=500)
        assert found, f"only {seen} of {count} records came"
        for records in found.values():
            for record in records:
                record.value  # noqa: B018  # as above
            seen += len(records)
    taken = watch.read()
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


class Measured(NamedTuple):
    rate: float  # records a second
    cpu_us: float  # of the client's process, per record


def measure(name: str, servers: str, topic: str, count: int) -> Measured:
    """One run of a client, in a process of its own."""
    wanted = count // SHARE.get(name, 1)
    command = [sys.executable, "-m", "bench.macro.client_consume", "--client", name]
    out = subprocess.run(
        [*command, "--servers", servers, "--topic", topic, "--records", str(wanted)],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    seconds, cpu_seconds = json.loads(out.stdout.splitlines()[-1])
    return Measured(wanted / seconds, cpu_seconds / wanted * 1e6)


def table(rows: dict[str, dict[str, Measured]], *, cpu: bool) -> str:
    names = list(CLIENTS)
    title = "CPU per record" if cpu else "records"
    lines = [f"| {title} | " + " | ".join(names) + " | ratio |", "|---" * (len(names) + 2) + "|"]
    for row, found in rows.items():
        rival = [1 / found[name].cpu_us if cpu else found[name].rate for name in OTHERS if name in found]
        ratio = ""
        if rival and "barnabas" in found:
            ours = 1 / found["barnabas"].cpu_us if cpu else found["barnabas"].rate
            ratio = f"{ours / max(rival):.1f}x"
        cells = [
            (f"{found[name].cpu_us:.2f} us" if cpu else f"{found[name].rate / 1000:,.0f} k/s")
            if name in found
            else ""
            for name in names
        ]
        lines.append(f"| {row} | " + " | ".join(cells) + f" | {ratio} |")
    return "\n".join(lines)


def compare(options: argparse.Namespace) -> None:
    rounds = 1 if options.quick else 3
    rows: dict[str, dict[str, Measured]] = {}
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
                found: dict[str, list[Measured]] = {}
                for _ in range(rounds):
                    for name in CLIENTS:
                        # Without the package lz4, kafka-python reads no lz4.
                        able = name != "kafka-python" or codec == "none" or find_spec("lz4") is not None
                        if able and (not options.clients or name in options.clients):
                            one = measure(name, server.bootstrap_servers, topic, count)
                            found.setdefault(name, []).append(one)
                rows[title] = {
                    name: Measured(*(statistics.median(column) for column in zip(*runs, strict=True)))
                    for name, runs in found.items()
                }
    print(table(rows, cpu=False))
    print()
    print(table(rows, cpu=True))


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
