"""pytest fixtures: a broker for the session and a fresh topic for a test.

Installed with the package as a pytest plugin, so a test only names them:

    def test_orders(barnabas_broker, barnabas_topic): ...

The broker starts with the first test that asks for it; settings can be changed by overriding the fixture
`barnabas_settings` in a conftest.py.
"""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def barnabas_settings() -> dict[str, str]:
    """Broker settings for `barnabas_broker`; override it to change them."""
    return {}


@pytest.fixture(scope="session")
def barnabas_broker(barnabas_settings: dict[str, str]) -> "Iterator[Broker]":
    """A running broker, one for the whole session."""
    from barnabas.testing.broker import Broker

    with Broker(barnabas_settings) as broker:
        yield broker


@pytest.fixture
def barnabas_topic(barnabas_broker: "Broker") -> str:
    """The name of a topic that no other test uses, with one partition."""
    name = f"topic-{next(_numbers)}"
    barnabas_broker.create_topic(name)
    return name
