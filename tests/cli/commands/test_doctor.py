"""barnabas doctor."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from barnabas.testing import Broker
from tests.cli._command import barnabas
from tests.cli.conftest import Tool


@contextmanager
def server(answer: bytes) -> Iterator[str]:
    """Something that is no broker: says `answer` to whoever connects."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1000)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_all_is_well(tool: Tool, bootstrap: str) -> None:
    lines = tool("doctor", bootstrap, "--no-spark").ok().lines
    stages = [line[2:14].strip() for line in lines if line[:1] in "✓-" and line]
    assert stages == [
        "DNS",
        "connect",
        "TLS, SASL",
        "ApiVersions",
        "metadata",
        "advertised",
        "topics",
        "write",
    ]
    assert lines[-1] == f"{bootstrap} is well."


def test_a_record_goes_through_a_scratch_topic_that_is_deleted(tool: Tool) -> None:
    found = tool("doctor", "--write", "--json", "--no-spark").ok().json
    assert found["healthy"] is True
    assert found["first_problem"] is None
    stages = [check["stage"] for check in found["checks"]]
    assert stages[-4:] == ["create topic", "produce", "fetch", "delete topic"]
    assert not [name for name in tool("topics", "list").ok().lines if name.startswith("barnabas-doctor")]


class TestTheFirstThingThatIsWrong:
    def test_a_name_that_is_not_known(self, tool: Tool) -> None:
        done = tool("doctor", "nosuch.invalid:9092", "--json")
        problem = done.json["first_problem"]
        assert (done.code, problem["stage"]) == (1, "DNS")
        assert "nosuch.invalid is not known on this machine" in problem["fix"]

    def test_nothing_listens(self, tool: Tool) -> None:
        done = tool("doctor", "localhost:1")
        assert done.code == 1
        assert "Problem: connect of localhost:1: 127.0.0.1: Connection refused" in done.out
        assert "start the broker (`barnabas start --port 1`)" in done.out

    def test_a_web_server(self, tool: Tool) -> None:
        with server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
            problem = tool("doctor", address, "--json").json["first_problem"]
        assert (problem["stage"], problem["detail"]) == (
            "ApiVersions", "a web server (HTTP) answers there, not a Kafka broker"
        )  # fmt: skip
        assert problem["fix"] == "connect to the port of a Kafka listener"

    def test_an_advertised_address_that_cannot_be_reached(self, tool: Tool) -> None:
        with Broker({"advertised.listeners": "PLAINTEXT://localhost:1"}) as broker:
            assert broker.node is not None
            (port,) = broker.node.bound_ports.values()
            done = tool("doctor", f"127.0.0.1:{port}", "--json")
        problem = done.json["first_problem"]
        assert (done.code, problem["stage"], problem["subject"]) == (1, "connect", "broker 1 at localhost:1")
        assert "set advertised.listeners of that broker" in problem["fix"]
        assert f"PLAINTEXT://127.0.0.1:{port}" in problem["fix"]

    def test_wrong_usage(self, tool: Tool) -> None:
        assert tool("doctor", "no-port").code == 1
        assert tool("doctor", "a:1", "b:1").code == 2


@pytest.mark.slow
def test_the_real_command(bootstrap: str) -> None:
    well = barnabas("doctor", bootstrap)
    assert well.returncode == 0
    assert "Spark" in well.stdout
    done = barnabas("doctor", "localhost:1")
    assert done.returncode == 1
    assert "Fix: " in done.stdout
