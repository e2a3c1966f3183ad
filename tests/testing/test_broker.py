"""barnabas.testing.broker: a real broker inside the test process."""

import socket
import threading
from pathlib import Path

import pytest

from barnabas.base.errors import ConfigFault, Misuse
from barnabas.controller.changes import TopicExists
from barnabas.net.errors import ListenFault
from barnabas.testing import Broker
from tests.broker._calls import batch, fetch, produce, values
from tests.broker._wire import WireClient


def test_it_serves_between_start_and_stop() -> None:
    broker = Broker()
    assert broker.start() is broker
    host, _, port = broker.bootstrap_servers.rpartition(":")
    assert (host, int(port)) == ("127.0.0.1", broker.port)
    broker.create_topic("t", 2, config={"retention.ms": "5000"})
    with WireClient(broker.bootstrap_servers) as client:
        assert produce(client, "t", batch(b"x"), partition=1).error_code == 0
        assert values(fetch(client, "t", partition=1)) == [b"x"]
    broker.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))


def test_several_live_side_by_side() -> None:
    with Broker() as one, Broker() as two:
        assert one.port != two.port
        one.create_topic("only-here")
        assert two.node is not None
        assert two.node.services is not None
        assert "only-here" not in two.node.services.image.topics


def test_a_temporary_folder_goes_with_it_and_its_threads_do_too() -> None:
    before = set(threading.enumerate())
    with Broker() as broker:
        folder = Path(broker.data_dir)
        assert folder.is_dir()
        assert set(threading.enumerate()) > before
    assert not folder.exists()
    assert set(threading.enumerate()) <= before


def test_a_given_folder_stays_for_the_next_one(tmp_path: Path) -> None:
    for expected in (0, 1):
        with Broker(data_dir=str(tmp_path)) as broker, WireClient(broker.bootstrap_servers) as client:
            if not expected:
                broker.create_topic("t")
            assert produce(client, "t", batch(b"x")).base_offset == expected


def test_the_same_object_starts_again(tmp_path: Path) -> None:
    broker = Broker(data_dir=str(tmp_path))
    for _ in range(2):
        with broker:
            assert broker.port
    broker.stop()  # a second time does nothing


def test_settings_are_the_brokers_own() -> None:
    with Broker({"num.partitions": "3"}) as broker:
        assert broker.node is not None
        assert broker.node.settings.integer("num.partitions") == 3


class TestMisuse:
    def test_before_the_start_there_is_nothing_to_ask(self) -> None:
        broker = Broker()
        for ask in (
            lambda: broker.bootstrap_servers,
            lambda: broker.port,
            lambda: broker.create_topic("t"),
        ):
            with pytest.raises(Misuse, match=r"^the broker is not running$"):
                ask()

    def test_it_starts_once(self) -> None:
        with Broker() as broker, pytest.raises(Misuse, match=r"^the broker is running already$"):
            broker.start()


class TestFailures:
    def test_what_keeps_it_from_starting_is_raised_here(self) -> None:
        with pytest.raises(ConfigFault, match=r"^no\.such: there is no such setting$"):
            Broker({"no.such": "1"}).start()

    def test_a_failed_start_leaves_nothing_behind_and_can_be_tried_again(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            broker = Broker({"listeners": f"PLAINTEXT://127.0.0.1:{port}"}, data_dir=str(tmp_path))
            with pytest.raises(ListenFault):
                broker.start()
        with broker:
            assert broker.port == port

    def test_what_a_command_refuses_is_raised_at_the_caller(self) -> None:
        with Broker() as broker:
            broker.create_topic("t")
            with pytest.raises(TopicExists, match=r"^Topic 't' already exists\.$"):
                broker.create_topic("t")


def test_the_port_is_the_one_that_is_open_also_when_clients_are_told_another() -> None:
    with Broker({"advertised.listeners": "PLAINTEXT://127.0.0.1:1"}) as broker:
        assert broker.bootstrap_servers == "127.0.0.1:1"
        assert broker.port != 1
        socket.create_connection(("127.0.0.1", broker.port), 10).close()
