"""A killed process loses nothing it was told is done."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.store.embedded import open_embedded

WRITER = """
import asyncio, sys
from barnabas.store.embedded import open_embedded
from barnabas.store.tree import Create, SetData

async def main(path, start):
    store = await open_embedded(path)
    await store.ensure("/n")
    await store.create("/alive", ephemeral=True)
    async def one(number):
        await store.transact([Create(f"/n/{number}", b"0"), SetData(f"/n/{number}", b"x" * (number % 3000))])
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
    while True:
        await asyncio.gather(*(one(number) for number in range(start, start + 7)))
        start += 7

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def kill_after(path: str, start: int, lines: int) -> set[int]:
    """Runs the writer, kills it with SIGKILL once it acknowledged enough, returns all it acknowledged."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, path, str(start)], stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert writer.stdout is not None
    acknowledged = {int(writer.stdout.readline()) for _ in range(lines)}
    os.kill(writer.pid, signal.SIGKILL)
    rest, _ = writer.communicate()
    # The last line may have been cut by the kill.
    return acknowledged | {int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")}


async def check(path: str, acknowledged: set[int]) -> None:
    store = await open_embedded(path)
    found = {int(name) for name in await store.children("/n")}
    assert acknowledged <= found
    for number in sorted(acknowledged)[-50:]:
        assert (await store.get(f"/n/{number}"))[0] == b"x" * (number % 3000)
    assert await store.exists("/alive") is None
    await store.close()


def check_rounds(path: str, rounds: int, lines: int) -> None:
    acknowledged: set[int] = set()
    for turn in range(rounds):
        acknowledged |= kill_after(path, turn * 1_000_000, lines + turn * 17)
        asyncio.run(check(path, acknowledged))


@pytest.mark.slow
def test_every_acknowledged_write_is_there_after_kill_9(tmp_path: Path) -> None:
    check_rounds(str(tmp_path / "store.db"), rounds=3, lines=60)


@pytest.mark.soak
def test_every_acknowledged_write_is_there_after_many_kills(tmp_path: Path) -> None:
    check_rounds(str(tmp_path / "store.db"), rounds=30, lines=200)
