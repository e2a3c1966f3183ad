"""Kafka's own tools for transactions: what is open, how to end it, and a copier that aborts at random."""

import re
from collections.abc import Iterator

import pytest

from tests.broker._transactions import TransactionalProducer
from tests.broker._wire import WireClient
from tests.conformance._client import Client
from tests.conformance._servers import Server, make_server
from tests.conformance._setup import ClientMissing, start_client
from tests.conformance._transactions import SETTINGS, Scene, start_driver
from tests.conformance.test_java_tools import Tools

TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
COPIED = 300
TRANSACTION_VERSION = "transaction.version"


@pytest.fixture(scope="module")
def running(kind: str) -> Iterator[Server]:
    # So that a transaction can be made to hang: without the check any batch is taken.
    server = make_server(kind, {**SETTINGS, "transaction.partition.verification.enable": "false"})
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def driver(running: Server) -> Iterator[Client]:
    try:
        driver = start_driver("confluent-kafka", running.bootstrap_servers)
    except ClientMissing as missing:
        pytest.skip(str(missing))
    with driver:
        yield driver


@pytest.fixture
def tools(running: Server) -> Iterator[Tools]:
    try:
        client = start_client("java", running.bootstrap_servers)
    except ClientMissing as missing:
        pytest.skip(str(missing))
    with client:
        yield Tools(client, running)


def test_an_open_transaction_is_listed_described_and_aborted(
    running: Server, driver: Client, tools: Tools
) -> None:
    scene = Scene(running, driver)
    topic, producer = scene.topic(), scene.producer("hanging")
    producer.begin()
    producer.send(topic, "x")

    listed = tools.at(TRANSACTIONS, "list")
    assert "hanging" in listed
    assert "Ongoing" in listed
    described = tools.at(TRANSACTIONS, "describe", "--transactional-id", "hanging")
    assert f"{topic}-0" in described
    producers = tools.at(TRANSACTIONS, "describe-producers", "--topic", topic, "--partition", "0")
    assert producers.splitlines()[-1].split()[-1] == "0", "the transaction began at offset 0"

    files = ",".join(str(path) for path in running.data_dir.glob("__transaction_state-*/*.log"))
    stored = tools.run(DUMP, "--transaction-log-decoder", "--files", files)
    assert re.search(r'"transactionalId":"hanging".*"transactionStatus":1', stored)

    tools.at(TRANSACTIONS, "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    after = tools.at(TRANSACTIONS, "describe-producers", "--topic", topic, "--partition", "0")
    assert after.splitlines()[-1].split()[-1] == "None"
    scene.producer().write(topic, "end")
    assert scene.read(topic, 1) == ["end"]


def test_a_transaction_that_nobody_will_end_is_found_and_aborted(
    running: Server, driver: Client, tools: Tools
) -> None:
    scene = Scene(running, driver)
    topic = scene.topic()
    with WireClient(running.bootstrap_servers) as client:
        owner = TransactionalProducer(client, f"owner-{topic}")
        assert owner.produce(topic, b"late") == 0  # its coordinator was not told of the partition
    found = tools.at(TRANSACTIONS, "find-hanging", "--topic", topic, "--max-transaction-timeout", "0")
    assert found.splitlines()[-1].split()[:3] == [topic, "0", str(owner.producer_id)]
    tools.at(TRANSACTIONS, "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    left = tools.at(TRANSACTIONS, "find-hanging", "--topic", topic, "--max-transaction-timeout", "0")
    assert topic not in left
    scene.producer().write(topic, "end")
    assert scene.read(topic, 1) == ["end"]


def test_a_copier_that_aborts_at_random_copies_everything_once(
    running: Server, driver: Client, tools: Tools
) -> None:
    scene = Scene(running, driver)
    source, target = scene.topic(), scene.topic()
    numbers = [str(number) for number in range(COPIED)]
    scene.producer().write(source, *numbers)
    options = {
        "--transactional-id": "copier",
        "--input-topic": source,
        "--input-partition": "0",
        "--output-topic": target,
        "--broker-list": running.bootstrap_servers,
        "--max-messages": str(COPIED),
        "--transaction-size": "17",
        "--consumer-group": "copiers",
    }
    tools.run(COPIER, *(word for pair in options.items() for word in pair), "--enable-random-aborts")
    scene.producer().write(target, "end")
    assert scene.read(target, COPIED + 1) == [*numbers, "end"]


def test_the_version_of_transactions_is_switched_and_shown(running: Server, tools: Tools) -> None:
    def level() -> str:
        (line,) = [
            each for each in tools.at(FEATURES, "describe").splitlines() if TRANSACTION_VERSION in each
        ]
        found = re.search(r"FinalizedVersionLevel: (\d+)", line)
        assert found is not None, line
        return found[1]

    assert level() == "2"
    done = tools.at(FEATURES, "downgrade", "--feature", f"{TRANSACTION_VERSION}=1")
    assert "was downgraded to 1" in done
    assert level() == "1"
    tools.at(FEATURES, "upgrade", "--feature", f"{TRANSACTION_VERSION}=2")
    assert level() == "2"
    refused = tools.at(FEATURES, "disable", "--feature", "nonsense", status=1)
    assert "Could not disable nonsense" in refused
