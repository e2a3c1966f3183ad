"""Offsets in Redis, against a real server where there is one."""

import importlib.util
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.errors import Misuse
from barnabas.client.offset_stores.redis import RedisOffsets
from barnabas.client.subscription import OffsetAndMetadata
from tests.client.offset_stores._suite import A, StoreSuite


def why_missing() -> str | None:
    if importlib.util.find_spec("redis") is None:
        return "the package redis is not installed (extra `redis`)"
    if shutil.which("redis-server") is None:
        return "no redis-server on this machine (Debian package redis-server)"
    return None


def test_without_the_package_the_way_out_is_said() -> None:
    if importlib.util.find_spec("redis") is not None:
        pytest.skip("the package redis is installed")
    with pytest.raises(Misuse, match=r"pip install 'barnabas\[redis\]'"):
        RedisOffsets("redis://localhost")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a running server, on a socket of its own."""
    if (reason := why_missing()) is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("redis")
    path = folder / "redis.sock"
    process = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(folder)],
        stdout=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 10
        while not Path(path).exists():
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.01)
        yield f"unix://{path}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def client(server: str) -> Iterator[Any]:
    redis = importlib.import_module("redis")
    with redis.Redis.from_url(server) as opened:
        opened.flushall()
        yield opened


@pytest.fixture
def make(client: Any) -> Callable[[], RedisOffsets]:
    return lambda: RedisOffsets(client)


@pytest.mark.slow
class TestRedis(StoreSuite):
    def test_epoch_and_note_are_kept(self, make: Callable[[], RedisOffsets]) -> None:
        make().save("g", {A: OffsetAndMetadata(5, "note", 3)})
        assert make().load("g", [A]) == {A: OffsetAndMetadata(5, "note", 3)}

    def test_offsets_go_with_the_results_of_a_pipeline(
        self, make: Callable[[], RedisOffsets], client: Any
    ) -> None:
        store = make()
        with client.pipeline() as pipeline:
            pipeline.set("result", 1)
            store.save("g", {A: OffsetAndMetadata(5)}, pipeline=pipeline)
            assert make().load("g", [A]) == {}
            pipeline.execute()
        assert make().load("g", [A])[A].offset == 5

    def test_a_url_is_enough(self, server: str) -> None:
        store = RedisOffsets(server)
        store.save("url", {A: OffsetAndMetadata(1)})
        store.close()
