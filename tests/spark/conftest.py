"""Fixtures of the Spark tests: one session and one broker per pytest worker, fresh names, records to read.

The cluster is Barnabas; BARNABAS_CONFORMANCE=kafka runs the tests that ask for `topics` against Apache Kafka.
Tests that ask for `spark` are slow by nature; mark them so.  What needs no session should not ask for one.
"""

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.spark.sessions import session
from barnabas.testing.broker import Broker
from tests import _kafka
from tests.spark._kit import Topics
from tests.spark._reads import Reads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """The one session of this worker, with the settings that `barnabas.spark.session` gives."""
    made = session(
        "barnabas-tests",
        "local[2,4]",
        **{
            "spark.driver.memory": "1g",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        },
    )
    yield made
    made.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A Barnabas broker that the whole worker shares."""
    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    """bootstrap.servers of the cluster under test."""
    if os.environ.get("BARNABAS_CONFORMANCE") != "kafka":
        running: Broker = request.getfixturevalue("broker")
        yield running.bootstrap_servers
    elif (reason := _kafka.why_missing()) is not None:
        pytest.skip(reason)
    else:
        with _kafka.KafkaServer() as server:
            yield server.bootstrap_servers


@pytest.fixture(scope="session")
def topics(bootstrap: str) -> Iterator[Topics]:
    """Makes topics and records on the shared cluster."""
    with Topics(bootstrap) as made:
        yield made


@pytest.fixture
def name() -> Callable[[str], str]:
    """Makes names nobody used before."""
    return lambda stem: f"{stem}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def topic(name: Callable[[str], str]) -> str:
    """The name of a topic that does not exist yet."""
    return name("topic")


@pytest.fixture
def reads(spark: "SparkSession", topics: Topics, topic: str, tmp_path: Path) -> Reads:
    """Reads of that topic, streams of it on one checkpoint."""
    return Reads(spark, topics, topic, tmp_path / "checkpoint")
