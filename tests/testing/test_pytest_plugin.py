"""barnabas.testing.pytest_plugin: fixtures that a user's tests only have to name."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import socket

seen = []

def test_a_broker_and_a_topic(barnabas_broker, barnabas_topic):
    host, _, port = barnabas_broker.bootstrap_servers.rpartition(":")
    socket.create_connection((host, int(port))).close()
    assert barnabas_topic in barnabas_broker.node.services.image.topics
    seen.append((barnabas_broker, barnabas_topic))

def test_the_same_broker_and_another_topic(barnabas_broker, barnabas_topic):
    (broker, topic), = seen
    assert broker is barnabas_broker
    assert topic != barnabas_topic
"""

SETTINGS = """
import pytest

@pytest.fixture(scope="session")
def barnabas_settings():
    return {"num.partitions": "7"}
"""

USES_SETTINGS = """
def test_settings(barnabas_broker):
    assert barnabas_broker.node.settings.integer("num.partitions") == 7
"""


def run_pytest(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(folder),
            str(folder),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


@pytest.mark.slow
def test_a_test_names_the_fixtures_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(TESTS)
    done = run_pytest(tmp_path)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_settings_are_changed_by_overriding_a_fixture(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(SETTINGS)
    (tmp_path / "test_user.py").write_text(USES_SETTINGS)
    done = run_pytest(tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_who_does_not_ask_pays_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(
        "import sys\n\ndef test_nothing_is_loaded():\n    assert 'barnabas.broker.node' not in sys.modules\n"
    )
    done = run_pytest(tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_here_too(barnabas_topic: str) -> None:
    assert barnabas_topic.startswith("topic-")
