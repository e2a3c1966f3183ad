"""Tests of which twin serves."""

import os
import subprocess
import sys

import pytest

from barnabas.client import hot
from barnabas.records import kernel

PROGRAM = "from barnabas.client import hot; print(hot.IMPLEMENTATION, hot.murmur2(b'21'))"


def run(choice: str) -> str:
    environment = {**os.environ, "BARNABAS_KERNEL": choice}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.slow
def test_the_switch_of_the_kernel_switches_both() -> None:
    assert run("plain") == f"plain {-973932308 & 0xFFFF_FFFF}"


def test_it_is_compiled_where_the_kernel_is() -> None:
    assert hot.IMPLEMENTATION == kernel.IMPLEMENTATION


def test_every_name_is_there() -> None:
    assert all(hasattr(hot, name) for name in hot.__all__)
