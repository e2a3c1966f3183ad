"""Offsets in ZooKeeper, against a real server where there is one.

BARNABAS_TEST_ZOOKEEPER names a running server as host:port; without it the jars of pyspark are used.
"""

import importlib.util
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.errors import PeerFault
from barnabas.client.offset_stores.zookeeper import ZooKeeperOffsets
from barnabas.client.subscription import OffsetAndMetadata
from tests._kafka import free_ports
from tests.client.offset_stores._suite import A, StoreSuite


def jars() -> Path | None:
    """The jars of pyspark, ZooKeeper's among them."""
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(next(iter(found.submodule_search_locations))) / "jars"
    return folder if any(folder.glob("zookeeper-*.jar")) else None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """host:port of a running server."""
    if given := os.environ.get("BARNABAS_TEST_ZOOKEEPER"):
        yield given
        return
    folder, port = jars(), free_ports(1)[0]
    if folder is None or shutil.which("java") is None:
        pytest.skip("no ZooKeeper: neither BARNABAS_TEST_ZOOKEEPER nor pyspark's jars with Java are here")
    data = tmp_path_factory.mktemp("zookeeper")
    settings = data / "zoo.cfg"
    settings.write_text(
        f"dataDir={data}\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
    )
    process = subprocess.Popen(
        ["java", "-cp", f"{folder}/*", "org.apache.zookeeper.server.ZooKeeperServerMain", str(settings)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def client(server: str) -> Iterator[Any]:
    from kazoo.client import KazooClient

    opened = KazooClient(server, connection_retry={"max_tries": -1, "max_delay": 0.2})
    opened.start(timeout=30)
    try:
        yield opened
    finally:
        opened.stop()
        opened.close()


@pytest.fixture
def make(client: Any) -> Callable[[], ZooKeeperOffsets]:
    root = f"/test-{uuid.uuid4().hex}"
    return lambda: ZooKeeperOffsets(client, root=root)


@pytest.mark.slow
class TestZooKeeper(StoreSuite):
    def test_offsets_lie_where_old_consumers_kept_them(self, client: Any) -> None:
        ZooKeeperOffsets(client).save("old", {A: OffsetAndMetadata(5)})
        assert client.get("/consumers/old/offsets/a/0")[0] == b"5"
        client.delete("/consumers", recursive=True)

    def test_a_node_that_holds_no_offset_is_named(self, client: Any) -> None:
        root = f"/test-{uuid.uuid4().hex}"
        client.create(f"{root}/g/offsets/a/0", b"rubbish", makepath=True)
        with pytest.raises(PeerFault, match="/g/offsets/a/0 holds b'rubbish', which is no offset"):
            ZooKeeperOffsets(client, root=root).load("g", [A])

    def test_hosts_are_enough(self, server: str) -> None:
        store = ZooKeeperOffsets(server, root=f"/test-{uuid.uuid4().hex}")
        store.save("g", {A: OffsetAndMetadata(1)})
        store.close()
