"""One broker for all broker tests that can share it, a connection to it, and topics of one's own."""

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.broker._groups import find_coordinator, new_group
from tests.broker._wire import WireClient

_numbers = itertools.count(1)


def unique_name() -> str:
    """A topic name that no other test uses."""
    return f"t{next(_numbers)}"


MakeTopic = Callable[..., str]
MakeClient = Callable[[], WireClient]
StartBroker = Callable[..., Broker]


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder in memory where the system has room for that: the disk is not what is tested here."""
    memory = Path("/dev/shm")
    parent = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="barnabas-", dir=parent) as made:
        yield Path(made)


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        yield made


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with memory_folder() as made, Broker(data_dir=str(made)) as running:
        yield running


@pytest.fixture
def connect(broker: Broker) -> Iterator[MakeClient]:
    """Opens as many connections as a test wants; they are closed after it."""
    opened: list[WireClient] = []

    def open_one() -> WireClient:
        opened.append(WireClient(broker.bootstrap_servers))
        return opened[-1]

    yield open_one
    for client in opened:
        client.close()


@pytest.fixture
def client(connect: MakeClient) -> WireClient:
    return connect()


@pytest.fixture
def make_topic(broker: Broker) -> MakeTopic:
    def make(partitions: int = 1, **config: str) -> str:
        """A fresh topic; settings are given with _ for a dot."""
        name = unique_name()
        settings = {key.replace("_", "."): value for key, value in config.items()}
        broker.create_topic(name, partitions, config=settings)
        return name

    return make


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    return make_topic()


@pytest.fixture
def start_broker(folder: Path) -> Iterator[StartBroker]:
    """Starts brokers with settings of their own; they are stopped after the test."""
    started: list[Broker] = []

    def start(settings: Mapping[str, str] | None = None) -> Broker:
        started.append(Broker(settings, data_dir=str(folder / str(len(started)))).start())
        return started[-1]

    yield start
    for running in started:
        running.stop()


@pytest.fixture
def group(broker: Broker) -> str:
    """The id of a group that no other test uses; the broker is its coordinator."""
    with WireClient(broker.bootstrap_servers) as client:
        find_coordinator(client)
    return new_group()
