"""Transactions beside Apache Kafka: what exactly-once costs a producer, and how long a commit takes.

    python -m bench.macro.transactions [--seconds N] [--rounds N] [--barnabas-only]

`idempotent` and `transactional` send the same records with the same client (confluent-kafka); the second in
transactions of 1,000.  `share` is what is left of the rate.  Commit times are those of the client's call
after everything is sent.  `raw` is one transaction of one ready-made batch of 1,000 records on a plain
connection: AddPartitionsToTxn, Produce, EndTxn, asked again where the broker says CONCURRENT_TRANSACTIONS.
Rounds alternate between the brokers; the first one warms up and is thrown away; medians are printed.
"""

import argparse
import statistics
import time
import uuid
from collections.abc import Callable

from confluent_kafka import Producer

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.records.builder import build_batch
from bench._brokers import SETTINGS, Server, create_topic
from bench._raw import await_leaders, percentile
from tests._kafka import SERVER_JVM, KafkaServer, why_missing
from tests.broker._calls import now_ms, produce_request
from tests.broker._transactions import TransactionalProducer
from tests.broker._wire import WireClient
from tests.conformance._servers import BarnabasServer

Metrics = dict[str, float]
RECORDS = 1_000
VALUE = bytes(range(100))
TIMEOUT_S = 30
ONE_BROKER = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
AIMS = {"share": ">= 80 %", "commit p50 ms": "< 3"}
LESS_IS_BETTER = ("ms",)


def _rate(server: Server, seconds: float, transactional: bool) -> tuple[float, list[float]]:
    """Records a second, and the times of the commits."""
    topic = f"t{uuid.uuid4().hex[:8]}"
    create_topic(server, topic)
    await_leaders(server.bootstrap_servers, topic, 1)
    settings: dict[str, object] = {
        "bootstrap.servers": server.bootstrap_servers,
        "enable.idempotence": True,
        "linger.ms": 5,
        "log_level": 0,
    }
    if transactional:
        settings["transactional.id"] = topic
    producer = Producer(settings)
    if transactional:
        producer.init_transactions(TIMEOUT_S)
    commits: list[float] = []
    sent = 0
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        if transactional:
            producer.begin_transaction()
        for _ in range(RECORDS):
            producer.produce(topic, VALUE, partition=0)
        if transactional:
            producer.flush(TIMEOUT_S)
            before = time.monotonic()
            producer.commit_transaction(TIMEOUT_S)
            commits.append((time.monotonic() - before) * 1e3)
        else:
            producer.poll(0)
            while len(producer) > 50 * RECORDS:
                producer.poll(0.01)
        sent += RECORDS
    assert producer.flush(TIMEOUT_S) == 0, "everything is acknowledged"
    return sent / (time.monotonic() - start), commits


def client_row(server: Server, seconds: float) -> Metrics:
    plain, _ = _rate(server, seconds, False)
    rate, commits = _rate(server, seconds, True)
    return {
        "idempotent records/s": plain,
        "transactional records/s": rate,
        "share": rate / plain,
        "commit p50 ms": percentile(commits, 0.5),
        "commit p99 ms": percentile(commits, 0.99),
    }


def _until_not_concurrent(call: Callable[[], int]) -> None:
    while (code := call()) == ErrorCode.CONCURRENT_TRANSACTIONS:
        pass
    assert code == 0, ErrorCode(code)


def raw_row(server: Server, seconds: float) -> Metrics:
    topic = f"t{uuid.uuid4().hex[:8]}"
    create_topic(server, topic)
    await_leaders(server.bootstrap_servers, topic, 1)
    with WireClient(server.bootstrap_servers) as client:
        producer = TransactionalProducer(client, topic)
        whole: list[float] = []
        ends: list[float] = []
        sequence = 0
        stop = time.monotonic() + seconds
        while time.monotonic() < stop:
            records = build_batch(
                [(now_ms(), None, VALUE, ()) for _ in range(RECORDS)],
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                base_sequence=sequence,
                transactional=True,
            )
            sequence += RECORDS
            request = produce_request(topic, bytes(records))
            request.transactional_id = producer.transactional_id
            start = time.monotonic()
            _until_not_concurrent(lambda: producer.add(topic)[0])
            (answer,) = client.call(request, 9, ProduceResponse).responses
            code = answer.partition_responses[0].error_code
            assert code == 0, ErrorCode(code)
            before = time.monotonic()
            assert producer.end(commit=True) == 0
            done = time.monotonic()
            ends.append((done - before) * 1e3)
            whole.append((done - start) * 1e3)
    return {
        "raw transaction p50 ms": percentile(whole, 0.5),
        "raw transaction p99 ms": percentile(whole, 0.99),
        "raw EndTxn p50 ms": percentile(ends, 0.5),
        "raw EndTxn p99 ms": percentile(ends, 0.99),
    }


def _measure(servers: dict[str, Server], seconds: float, rounds: int) -> dict[str, Metrics]:
    found: dict[str, list[Metrics]] = {name: [] for name in servers}
    for number in range(rounds + 1):
        for name, server in servers.items():
            measured = {**client_row(server, seconds), **raw_row(server, seconds)}
            if number:
                found[name].append(measured)
    return {
        name: {key: statistics.median(each[key] for each in rows) for key in rows[0]}
        for name, rows in found.items()
    }


def _text(name: str, value: float) -> str:
    if name == "share":
        return f"{value:.0%}"
    return f"{value:,.2f}" if name.endswith(LESS_IS_BETTER) else f"{value:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--barnabas-only", action="store_true")
    options = parser.parse_args()
    settings = {**SETTINGS, **ONE_BROKER}
    servers: dict[str, Server] = {"barnabas": BarnabasServer(settings)}
    if not options.barnabas_only and why_missing() is None:
        servers["kafka"] = KafkaServer(settings, jvm=SERVER_JVM)
    try:
        for server in servers.values():
            server.start()
        found = _measure(servers, options.seconds, options.rounds)
    finally:
        for server in servers.values():
            server.close()
    print(f"| row | {' | '.join(found)} | ratio | aim |\n|---|{'---|' * len(found)}---|---|")
    for row, ours in found["barnabas"].items():
        theirs = found.get("kafka", {}).get(row)
        values = " | ".join(_text(row, metrics[row]) for metrics in found.values())
        ratio = f"{ours / theirs:.2f}" if theirs else ""
        print(f"| {row} | {values} | {ratio} | {AIMS.get(row, '')} |")


if __name__ == "__main__":
    main()
