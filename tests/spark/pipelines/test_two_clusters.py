"""Two admins: both close, and the first does not outlive a failure of the second."""

import threading

import pytest

from barnabas.client.errors import NoBrokersAvailable
from barnabas.spark.pipelines.two_clusters import TwoClusters


def admins() -> int:
    return sum(thread.name == "barnabas-client-admin" for thread in threading.enumerate())


def test_closing_it_closes_both(bootstrap: str) -> None:
    before = admins()
    settings = {"bootstrap.servers": bootstrap, "fetch.max.bytes": "1"}
    with TwoClusters(settings, settings):
        assert admins() == before + 2
    assert admins() == before


def test_without_a_target_the_source_is_closed(bootstrap: str) -> None:
    before = admins()
    nobody = {"bootstrap.servers": "127.0.0.1:1", "bootstrap.timeout.ms": "0"}
    with pytest.raises(NoBrokersAvailable):
        TwoClusters({"bootstrap.servers": bootstrap}, nobody)
    assert admins() == before
