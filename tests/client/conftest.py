"""Fixtures of the client's tests: a cluster to talk to, fresh names, and proof that nothing is left behind.

The cluster is Barnabas.  BARNABAS_CONFORMANCE=kafka runs the same tests against Apache Kafka, and
BARNABAS_CONFORMANCE=barnabas,kafka against both.
"""

import os
import threading
import uuid
from collections.abc import Callable, Iterator

import pytest

from barnabas.client.admin import Admin
from tests import _kafka
from tests.client._kit import settings_for
from tests.client._servers import ClientServer, make_server

KINDS = os.environ.get("BARNABAS_CONFORMANCE", "barnabas").split(",")


@pytest.fixture(scope="session", params=KINDS)
def server_kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "kafka" and (reason := _kafka.why_missing()) is not None:
        pytest.skip(reason)
    return name


@pytest.fixture(scope="session")
def cluster_server(server_kind: str) -> Iterator[ClientServer]:
    """A running broker that the whole session shares."""
    server = make_server(server_kind)
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def own_server(server_kind: str) -> Iterator[ClientServer]:
    """A running broker that the test may stop and start."""
    server = make_server(server_kind)
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def bootstrap(cluster_server: ClientServer) -> str:
    """bootstrap.servers of the shared broker."""
    return cluster_server.bootstrap_servers


@pytest.fixture
def name() -> Callable[[str], str]:
    """Makes names nobody used before."""
    return lambda stem: f"{stem}-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def topic(name: Callable[[str], str]) -> str:
    """The name of a topic that does not exist yet."""
    return name("topic")


@pytest.fixture
def group(name: Callable[[str], str]) -> str:
    return name("group")


@pytest.fixture
def admin(bootstrap: str) -> Iterator[Admin]:
    """An open admin of the shared broker."""
    with Admin(settings_for(bootstrap)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Every client thread that a test starts ends with it; other suites of the run may have their own."""
    before = set(threading.enumerate())
    yield
    new = set(threading.enumerate()) - before
    left = [thread.name for thread in new if thread.name.startswith("barnabas-client")]
    assert left == [], "a client was not closed"
