"""The brokers that the client's tests talk to, behind one interface.

Barnabas runs inside the test process, because it starts in milliseconds; Apache Kafka as a process.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from barnabas.testing import Broker
from tests._kafka import KafkaServer, free_ports
from tests.conformance._servers import SETTINGS


class ClientServer(Protocol):
    """A broker that can be stopped and started again on the same port with its data."""

    bootstrap_servers: str
    kind: str

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


class InProcess:
    kind = "barnabas"

    def __init__(self, settings: Mapping[str, str]) -> None:
        port = free_ports(1)[0]
        self._folder = tempfile.TemporaryDirectory(prefix="barnabas-")
        self._broker = Broker(
            {**settings, "listeners": f"PLAINTEXT://127.0.0.1:{port}"},
            data_dir=str(Path(self._folder.name) / "data"),
        )
        self.bootstrap_servers = f"127.0.0.1:{port}"

    def start(self) -> None:
        self._broker.start()

    def stop(self) -> None:
        self._broker.stop()

    def close(self) -> None:
        self._broker.stop()
        self._folder.cleanup()


class Kafka:
    kind = "kafka"

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._server = KafkaServer(settings)
        self.bootstrap_servers = self._server.bootstrap_servers

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def close(self) -> None:
        self._server.close()


def make_server(kind: str, settings: Mapping[str, str] | None = None) -> ClientServer:
    """A stopped server: "barnabas" or "kafka"."""
    merged = {**SETTINGS, **(settings or {})}
    return Kafka(merged) if kind == "kafka" else InProcess(merged)
