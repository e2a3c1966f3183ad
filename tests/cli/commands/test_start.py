"""barnabas.cli.commands.start: the real command, from its first line to its exit code."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.log.layout import CLEAN_SHUTDOWN
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.broker._calls import batch, produce
from tests.broker._configs import BROKER, value_and_source
from tests.broker._wire import ConnectionEnded, WireClient
from tests.cli._command import EXECUTABLE, barnabas

pytestmark = pytest.mark.slow

DEADLINE_S = 30


class Started:
    """A running `barnabas start`; its lines come as they are printed."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[str] = []

    def line(self) -> str:
        assert self.process.stdout is not None
        text = self.process.stdout.readline().rstrip("\n")
        self.lines.append(text)
        return text

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """The exit code and what stood on stderr."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, errors


@contextmanager
def start(folder: Path, *arguments: str, port: bool = True) -> Iterator[Started]:
    """Starts a broker that is ready once its first line can be read; it does not outlive the test."""
    command = [EXECUTABLE, "start", "--data-dir", str(folder / "data"), *arguments]
    if port:
        command += ["--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env={**os.environ}
    )
    watchdog = threading.Timer(DEADLINE_S, process.kill)
    watchdog.start()
    try:
        yield Started(process)
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


def address_in(line: str) -> str:
    found = re.fullmatch(r"Barnabas is ready: broker \d+ listens on (\S+:\d+)", line)
    assert found, line
    return found[1]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def test_it_says_where_it_listens_where_data_is_and_how_to_stop(tmp_path: Path) -> None:
    with start(tmp_path) as broker:
        address = address_in(broker.line())
        assert broker.line() == f"  data     {tmp_path / 'data'}"
        assert broker.line() == f'  connect  bootstrap.servers="{address}" in any Kafka client'
        assert broker.line() == "  stop     Ctrl-C"
        with WireClient(address) as client:
            assert client.call(MetadataRequest(topics=[]), 9, MetadataResponse).brokers[0].node_id == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with start(tmp_path) as broker:
        address = address_in(broker.line())
        with WireClient(address) as client:
            client.call(MetadataRequest(topics=[]), 9, MetadataResponse)
            assert broker.stop(number) == (0, "Stopping …\n")
            with pytest.raises((ConnectionEnded, ConnectionResetError, BrokenPipeError)):
                client.call(MetadataRequest(topics=[]), 9, MetadataResponse)
    assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists()


def test_json_is_one_object_for_programs(tmp_path: Path) -> None:
    with start(tmp_path, "--json", "--node-id", "4") as broker:
        told = json.loads(broker.line())
        assert set(told) == {"node_id", "listeners", "data"}
        assert (told["node_id"], told["data"]) == (4, [str(tmp_path / "data")])
        with WireClient(told["listeners"]["PLAINTEXT"]) as client:
            assert client.call(MetadataRequest(topics=[]), 9, MetadataResponse).controller_id == 4
        assert broker.stop() == (0, "")


def test_the_port_can_be_chosen(tmp_path: Path) -> None:
    port = free_port()
    with start(tmp_path, "--host", "127.0.0.1", "--port", str(port), port=False) as broker:
        assert address_in(broker.line()) == f"127.0.0.1:{port}"


def test_clients_are_told_the_advertised_address(tmp_path: Path) -> None:
    with start(
        tmp_path, "--host", "127.0.0.1", "--advertised-host", "kafka.example", "--advertised-port", "1234"
    ) as broker:
        assert address_in(broker.line()) == "kafka.example:1234"
    port = free_port()
    with start(
        tmp_path, "--host", "127.0.0.1", "--port", str(port), "--advertised-host", "other.example", port=False
    ) as broker:
        assert address_in(broker.line()) == f"other.example:{port}"
        with WireClient(f"127.0.0.1:{port}") as client:
            (node,) = client.call(MetadataRequest(topics=[]), 9, MetadataResponse).brokers
            assert (node.host, node.port) == ("other.example", port)


def test_settings_come_from_a_file_and_from_the_command_line_which_wins(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(
        "# made for Apache Kafka\nnum.partitions=3\nlog.retention.hours=5\nnum.io.threads=8\nbroker.id=6\n"
    )
    with start(tmp_path, "--config", str(properties), "--set", "num.partitions=7", "--json") as broker:
        told = json.loads(broker.line())
        with WireClient(told["listeners"]["PLAINTEXT"]) as client:
            assert value_and_source(client, BROKER, "6", "num.partitions")[0] == "7"
            assert value_and_source(client, BROKER, "6", "log.retention.hours")[0] == "5"


def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    for expected in (0, 1):
        with start(tmp_path, "--json") as broker:
            told = json.loads(broker.line())
            with WireClient(told["listeners"]["PLAINTEXT"]) as client:
                assert client.call(wanted, 9, MetadataResponse).topics[0].error_code == 0
                assert produce(client, "t", batch(b"x")).base_offset == expected
            assert broker.stop()[0] == 0


class TestOneSentenceAndAnExitCode:
    def test_an_unknown_setting_with_the_nearest_name(self, tmp_path: Path) -> None:
        done = barnabas("start", "--data-dir", str(tmp_path), "--set", "num.partition=3")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(
            "barnabas: num.partition: there is no such setting; did you mean num.part"
        )

    def test_a_wrong_value(self, tmp_path: Path) -> None:
        done = barnabas("start", "--data-dir", str(tmp_path), "--set", "num.partitions=few")
        assert done.returncode == 1
        assert done.stderr == "barnabas: num.partitions: 'few' is not a whole number\n"

    def test_several_at_once(self, tmp_path: Path) -> None:
        done = barnabas(
            "start", "--data-dir", str(tmp_path), "--set", "num.partitions=0", "--set", "log.dir.s=x"
        )
        assert len(done.stderr.splitlines()) == 2

    def test_half_an_assignment_is_wrong_usage(self) -> None:
        done = barnabas("start", "--set", "num.partitions")
        assert done.returncode == 2
        assert "--set takes KEY=VALUE, not 'num.partitions'" in done.stderr

    def test_a_file_that_is_no_properties_file(self, tmp_path: Path) -> None:
        wrong = tmp_path / "server.properties"
        wrong.write_text("num.partitions=1\nnonsense\n")
        done = barnabas("start", "--config", str(wrong))
        assert done.returncode == 1
        assert done.stderr == f"barnabas: {wrong}: line 2: 'nonsense' is not of the form key=value\n"

    def test_a_port_in_use(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            done = barnabas("start", "--data-dir", str(tmp_path), "--host", "127.0.0.1", "--port", port)
        assert done.returncode == 1
        assert done.stderr == (
            f"barnabas: listener PLAINTEXT cannot listen on 127.0.0.1:{port}: the port is in use; stop the "
            "program that has it, or choose another port\n"
        )

    def test_a_second_broker_on_the_same_folder(self, tmp_path: Path) -> None:
        with start(tmp_path) as broker:
            broker.line()
            done = barnabas("start", "--data-dir", str(tmp_path / "data"), "--port", "0")
            assert done.returncode == 1
            assert done.stderr == (
                f"barnabas: {tmp_path / 'data' / 'metadata.db'} is in use by another process; stop that one "
                "or use another data folder\n"
            )

    def test_a_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        blocked = tmp_path / "file"
        blocked.write_text("")
        done = barnabas("start", "--data-dir", str(blocked / "data"))
        assert done.returncode == 1
        assert done.stderr == (
            f"barnabas: the data folder {blocked / 'data'} cannot be made: Not a directory\n"
        )
