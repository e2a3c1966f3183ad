"""kafka-transactions.sh against the broker: what is open, by whom, and how to end it."""

from collections.abc import Iterator

import pytest

from tests.conformance._client import Client
from tests.conformance._servers import Server, make_server
from tests.conformance._setup import ClientMissing, start_client
from tests.conformance._transactions import SETTINGS, Scene, start_driver
from tests.conformance.test_java_tools import Tools

TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"


@pytest.fixture(scope="module")
def running(kind: str) -> Iterator[Server]:
    server = make_server(kind, SETTINGS)
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

    tools.at(TRANSACTIONS, "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    after = tools.at(TRANSACTIONS, "describe-producers", "--topic", topic, "--partition", "0")
    assert after.splitlines()[-1].split()[-1] == "None"
    scene.producer().write(topic, "end")
    assert scene.read(topic, 1) == ["end"]
