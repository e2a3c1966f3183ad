"""What a worker does not give back to the system."""

import subprocess
import sys

import pytest

from barnabas.spark.memory import keep_freed_memory

FAULTS = """
import resource
import sys

from barnabas.spark.memory import keep_freed_memory

if sys.argv[1] == "keep":
    assert keep_freed_memory()
blocks = [bytes(b"x" * (4 << 20)) for _ in range(6)]
del blocks
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    blocks = [b"x" * (4 << 20) for _ in range(6)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(mode: str) -> int:
    found = subprocess.run([sys.executable, "-c", FAULTS, mode], check=True, capture_output=True, text=True)
    return int(found.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not keep_freed_memory(), reason="the C library has no mallopt")
def test_blocks_of_megabytes_are_used_again() -> None:
    assert faults("keep") < faults("give back") / 10


def test_it_is_done_once() -> None:
    assert keep_freed_memory() is keep_freed_memory()
