"""Fixtures of the command tests: one broker for all of them, and the command run in this process.

A process of its own costs a fifth of a second, so that most cases call `run`; a few per command go through
the executable.
"""

import io
import json
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import pytest

from barnabas.cli.main import run
from barnabas.testing import Broker


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]

    def ok(self) -> "Done":
        assert (self.code, self.err) == (0, "")
        return self


class Tool(Protocol):
    """Runs `barnabas` with these arguments in this process, against the shared broker."""

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Done: ...


@pytest.fixture(scope="session")
def shared_broker() -> Iterator[Broker]:
    """The broker of all command tests; it makes no topic by itself, so that a wrong name is an error."""
    with Broker({"auto.create.topics.enable": "false"}) as broker:
        yield broker


@pytest.fixture
def bootstrap(shared_broker: Broker) -> str:
    return shared_broker.bootstrap_servers


@pytest.fixture
def tool(bootstrap: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tool:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", bootstrap)

    def call(*arguments: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        code = run(arguments)
        shown = capfd.readouterr()
        return Done(code, shown.out, shown.err)

    return call


@pytest.fixture
def name() -> Callable[[str], str]:
    """Makes names nobody used before."""
    return lambda stem: f"{stem}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def topic(shared_broker: Broker, name: Callable[[str], str]) -> str:
    """A fresh topic with two partitions."""
    made = name("topic")
    shared_broker.create_topic(made, 2)
    return made
