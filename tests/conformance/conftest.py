"""Fixtures of the conformance tests: the broker under test, a client of it, fresh names.

The broker is Barnabas.  BARNABAS_CONFORMANCE=kafka runs the same tests against Apache Kafka, and
BARNABAS_CONFORMANCE=barnabas,kafka against both: what Kafka does is what the tests may ask for.
A test module names its client in `CLIENT`; a test marked `needs(feature)` is left out for clients of
compat/clients.toml that lack the feature.
"""

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import _kafka
from tests.conformance._client import Client
from tests.conformance._servers import Server, make_server
from tests.conformance._setup import ClientMissing, start_client, table

pytest.register_assert_rewrite("tests.conformance._scenarios")

HERE = Path(__file__).parent
KINDS = os.environ.get("BARNABAS_CONFORMANCE", "barnabas").split(",")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "needs(feature): a feature that a client of compat/clients.toml may lack"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = []
    for item in items:
        if not item.path.is_relative_to(HERE):
            continue
        item.add_marker(pytest.mark.slow)
        name = getattr(getattr(item, "module", None), "CLIENT", None)
        if name is not None:
            wanted = {mark.args[0] for mark in item.iter_markers("needs")}
            if wanted & set(table()[name]["cannot"]):
                left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "kafka" and (reason := _kafka.why_missing()) is not None:
        pytest.skip(reason)
    return name


@pytest.fixture(scope="session")
def cluster(kind: str) -> Iterator[Server]:
    """A running broker that the whole session shares."""
    server = make_server(kind)
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def own_server(kind: str) -> Iterator[Server]:
    """A running broker that the test may stop and start."""
    server = make_server(kind)
    try:
        server.start()
        yield server
    finally:
        # Shown when the test fails.
        print(server.log.read_text(errors="replace")[-3000:])
        server.close()


def start_or_skip(name: str, server: Server) -> Client:
    try:
        return start_client(name, server.bootstrap_servers)
    except ClientMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def shared_client(request: pytest.FixtureRequest, cluster: Server) -> Iterator[Client]:
    with start_or_skip(request.module.CLIENT, cluster) as running:
        yield running


@pytest.fixture
def client(shared_client: Client) -> Iterator[Client]:
    """The client of the test module; its group members end with the test."""
    yield shared_client
    shared_client.close_members()


@pytest.fixture
def second_client(request: pytest.FixtureRequest, cluster: Server) -> Iterator[Client]:
    """Another process of the client of the test module, which may die in the test."""
    with start_or_skip(request.module.CLIENT, cluster) as running:
        yield running


@pytest.fixture
def own_client(request: pytest.FixtureRequest, own_server: Server) -> Iterator[Client]:
    """The client of the test module, at the server of this test."""
    with start_or_skip(request.module.CLIENT, own_server) as running:
        yield running


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
