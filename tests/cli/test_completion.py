"""barnabas.cli.completion: names for the shell."""

import subprocess
from collections.abc import Callable

import pytest

from barnabas.cli.completion import groups, topics
from barnabas.cli.main import cli
from tests.cli._command import EXECUTABLE
from tests.cli.conftest import Tool


@pytest.fixture
def context() -> object:
    return cli.make_context("barnabas", ["topics", "list"])


def test_topics_and_groups_are_asked_of_the_broker(
    tool: Tool, topic: str, name: Callable[[str], str], bootstrap: str
) -> None:
    import click

    group = name("group")
    tool("groups", "reset-offsets", group, "--topic", topic, "--to-latest", "--execute").ok()
    context = click.Context(cli)
    context.params = {"bootstrap_server": bootstrap}
    parameter = click.Argument(["x"])
    assert topics(context, parameter, topic[:-1]) == [topic]
    assert groups(context, parameter, group) == [group]
    context.params = {"bootstrap_server": "localhost:1"}
    assert topics(context, parameter, "") == []


@pytest.mark.slow
def test_the_shell_completes_commands_and_topics(bootstrap: str, topic: str) -> None:
    def complete(*words: str) -> list[str]:
        done = subprocess.run(
            [EXECUTABLE],
            env={
                "_BARNABAS_COMPLETE": "bash_complete",
                "COMP_WORDS": " ".join(["barnabas", *words]),
                "COMP_CWORD": str(len(words)),
                "BARNABAS_BOOTSTRAP": bootstrap,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    assert complete("top") == ["topics"]
    assert complete("consume", topic[:-2]) == [topic]
