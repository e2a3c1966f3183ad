"""barnabas.cli.main: the command's entry."""

import subprocess
import sys

import pytest

from barnabas.cli.main import COMMANDS, cli, run
from tests.cli._command import EXECUTABLE, barnabas


@pytest.mark.slow
def test_help_lists_every_command_with_its_line() -> None:
    done = barnabas("--help")
    assert done.returncode == 0
    for name, line in COMMANDS.items():
        assert name in done.stdout
        assert line.split(".")[0].split(",")[0] in done.stdout


@pytest.mark.slow
def test_python_dash_m_is_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", "version"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout == barnabas("version").stdout


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verison"]) == 2
    assert "No such command 'verison'" in capsys.readouterr().err


def test_every_command_can_be_loaded_and_documents_itself() -> None:
    context = cli.make_context("barnabas", ["version"])
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        assert command.help, f"{name} has no help"


@pytest.mark.slow
def test_a_reader_that_goes_away_is_not_an_error() -> None:
    piped = subprocess.run(
        ["/bin/sh", "-c", f"{EXECUTABLE} --help | true"], capture_output=True, text=True, check=False
    )
    assert piped.stderr == ""


@pytest.mark.slow
def test_a_reader_that_goes_away_does_not_fail_the_command() -> None:
    shell = f"{EXECUTABLE} version | true; exit ${{PIPESTATUS[0]}}"
    piped = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert (piped.returncode, piped.stderr) == (0, "")


@pytest.mark.slow
def test_help_does_not_pay_for_the_client() -> None:
    code = "import sys; from barnabas.cli.main import run; run(['groups', '--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"asyncio", "uvloop", "rich", "barnabas.client.cluster", "barnabas.broker.node", "pyarrow"}
    assert heavy & set(done.stdout.splitlines()[-1].split()) == set()
