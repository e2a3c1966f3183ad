"""Transactions beside Apache Kafka: what exactly-once costs a producer, and how long a commit takes.

    python -m bench.macro.transactions [--seconds N] [--rounds N] [--barnabas-only]

`idempotent` and `transactions` send the same records with the same client, the second in transactions of
1,000: it waits for the broker twice per 1,000 records, the first never.  Between them stands an idempotent
producer that is flushed after every 1,000.  `share` is what is left of the rate.  Commit times are those of
the client's call after everything is acknowledged.  `raw` is one transaction of one ready-made batch of
1,000 records on a plain connection: AddPartitionsToTxn, Produce, EndTxn, asked again where the broker says
CONCURRENT_TRANSACTIONS.
Rounds alternate between the brokers; the first one warms up and is thrown away; medians are printed.
"""

import argparse
import statistics
import time
import uuid
from collections.abc import Callable
from typing import Protocol

import confluent_kafka

import barnabas
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


class Sender(Protocol):
    """A producer of a client; `flush` returns when everything is acknowledged."""

    def send(self, topic: str) -> None: ...
    def flush(self) -> None: ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def close(self) -> None: ...


class Confluent:
    def __init__(self, bootstrap_servers: str, transactional_id: str | None) -> None:
        settings: dict[str, object] = {
            "bootstrap.servers": bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "log_level": 0,
        }
        if transactional_id is not None:
            settings["transactional.id"] = transactional_id
        self._producer = confluent_kafka.Producer(settings)
        if transactional_id is not None:
            self._producer.init_transactions(TIMEOUT_S)
        self.begin = self._producer.begin_transaction

    def send(self, topic: str) -> None:
        while True:
            try:
                self._producer.produce(topic, VALUE, partition=0)
            except BufferError:
                self._producer.poll(0.01)
            else:
                return

    def flush(self) -> None:
        assert self._producer.flush(TIMEOUT_S) == 0, "everything is acknowledged"

    def commit(self) -> None:
        self._producer.commit_transaction(TIMEOUT_S)

    def close(self) -> None:
        self._producer.close()


class Own:
    def __init__(self, bootstrap_servers: str, transactional_id: str | None) -> None:
        settings: dict[str, object] = {"bootstrap.servers": bootstrap_servers, "linger.ms": 5}
        if transactional_id is not None:
            settings["transactional.id"] = transactional_id
        self._producer = barnabas.Producer(settings)
        if transactional_id is not None:
            self._producer.init_transactions()
        self.begin = self._producer.begin_transaction
        self.commit = self._producer.commit_transaction
        self.flush = self._producer.flush
        self.close = self._producer.close

    def send(self, topic: str) -> None:
        self._producer.send(topic, VALUE, partition=0)


CLIENTS: dict[str, Callable[[str, str | None], Sender]] = {"confluent-kafka": Confluent, "barnabas": Own}


def _rate(server: Server, client: str, seconds: float, after: Callable[[Sender], None] | None) -> float:
    """Records a second when `after` follows each 1,000 of them; transactional if that is a commit."""
    topic = _topic(server)
    is_transactional = after is _commit
    sender = CLIENTS[client](server.bootstrap_servers, topic if is_transactional else None)
    sent = 0
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        if is_transactional:
            sender.begin()
        for _ in range(RECORDS):
            sender.send(topic)
        if after is not None:
            after(sender)
        sent += RECORDS
    sender.flush()
    took = time.monotonic() - start
    sender.close()
    return sent / took


def _flush(sender: Sender) -> None:
    sender.flush()


def _commit(sender: Sender) -> None:
    sender.commit()


def _commit_times(server: Server, client: str, seconds: float) -> list[float]:
    """Milliseconds of the commit alone, everything being acknowledged before."""
    topic = _topic(server)
    sender = CLIENTS[client](server.bootstrap_servers, topic)
    times: list[float] = []
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        sender.begin()
        for _ in range(RECORDS):
            sender.send(topic)
        sender.flush()
        before = time.monotonic()
        sender.commit()
        times.append((time.monotonic() - before) * 1e3)
    sender.close()
    return times


def _topic(server: Server) -> str:
    topic = f"t{uuid.uuid4().hex[:8]}"
    create_topic(server, topic)
    await_leaders(server.bootstrap_servers, topic, 1)
    return topic


def client_row(server: Server, client: str, seconds: float) -> Metrics:
    plain = _rate(server, client, seconds, None)
    flushed = _rate(server, client, seconds, _flush)
    rate = _rate(server, client, seconds, _commit)
    commits = _commit_times(server, client, seconds)
    return {
        f"{client}: idempotent records/s": plain,
        f"{client}: idempotent, flushed every 1,000": flushed,
        f"{client}: transactions of 1,000": rate,
        f"{client}: share": rate / plain,
        f"{client}: share of flushed": rate / flushed,
        f"{client}: commit p50 ms": percentile(commits, 0.5),
        f"{client}: commit p99 ms": percentile(commits, 0.99),
    }


def _until_not_concurrent(call: Callable[[], int]) -> None:
    while (code := call()) == ErrorCode.CONCURRENT_TRANSACTIONS:
        pass
    assert code == 0, ErrorCode(code)


def raw_row(server: Server, seconds: float) -> Metrics:
    topic = _topic(server)
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
            measured: Metrics = {}
            for client in CLIENTS:
                measured |= client_row(server, client, seconds)
            measured |= raw_row(server, seconds)
            if number:
                found[name].append(measured)
    return {
        name: {key: statistics.median(each[key] for each in rows) for key in rows[0]}
        for name, rows in found.items()
    }


def _text(name: str, value: float) -> str:
    if "share" in name:
        return f"{value:.0%}"
    return f"{value:,.2f}" if name.endswith("ms") else f"{value:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=2.0)
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
        print(f"| {row} | {values} | {ratio} | {AIMS.get(row.rpartition(': ')[2], '')} |")


if __name__ == "__main__":
    main()
