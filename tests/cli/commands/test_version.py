"""barnabas version."""

import json
import platform

import pytest

from barnabas._version import __version__
from tests.cli._command import barnabas

pytestmark = pytest.mark.slow


def test_it_names_version_kernel_and_python() -> None:
    done = barnabas("version", env={"BARNABAS_KERNEL": "plain"})
    assert done.returncode == 0
    assert (
        done.stdout == f"barnabas {__version__} (record kernel: plain, Python {platform.python_version()})\n"
    )


def test_json_is_one_object() -> None:
    facts = json.loads(barnabas("version", "--json", env={"BARNABAS_KERNEL": "plain"}).stdout)
    assert facts == {"version": __version__, "kernel": "plain", "python": platform.python_version()}


def test_a_kernel_that_does_not_exist_is_named() -> None:
    done = barnabas("version", env={"BARNABAS_KERNEL": "quantum"})
    assert done.returncode != 0
    assert "BARNABAS_KERNEL" in done.stderr
