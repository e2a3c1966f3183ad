"""Two brokers for the tests of mirror and replay, shared by all that do not stop them."""

from collections.abc import Iterator

import pytest

from barnabas.testing import Broker


@pytest.fixture(scope="session")
def source() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def target() -> Iterator[Broker]:
    with Broker() as running:
        yield running
