"""The word "kafka" taken for "barnabas" in this process."""

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from barnabas.spark import as_kafka

KINDS = [DataFrameReader, DataFrameWriter, DataStreamReader, DataStreamWriter]


class Java:
    """Stands where the reader or writer of the JVM stands: notes the format and mode it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def mode(self, name: str) -> "Java":
        self.told.append(name)
        return self

    def format(self, name: str) -> "Java":
        self.told.append(name)
        return self


@pytest.fixture
def alias() -> Iterator[None]:
    as_kafka()
    yield
    as_kafka(undo=True)


def told(kind: type, name: str) -> list[str]:
    made: object = object.__new__(kind)
    java = Java()
    for attribute in ("_jreader", "_jwrite"):
        setattr(made, attribute, java)
    assert kind.format(made, name) is made  # type: ignore[attr-defined]  # all four have it
    return java.told


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("alias")
def test_kafka_is_barnabas_and_all_else_stays(kind: type) -> None:
    as_kafka()  # a second time changes nothing
    wanted = ["barnabas", "append"] if kind is DataFrameWriter else ["barnabas"]
    assert told(kind, "kafka") == wanted
    assert told(kind, "Kafka") == wanted
    assert told(kind, "parquet") == ["parquet"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_can_be_undone(kind: type) -> None:
    as_kafka()
    as_kafka(undo=True)
    as_kafka(undo=True)
    assert told(kind, "kafka") == ["kafka"]


def test_readers_of_spark_connect_where_a_session_has_loaded_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reader:
        def format(self, source: str) -> str:
            return source

    loaded = SimpleNamespace(DataFrameReader=Reader, DataFrameWriter=Reader)
    monkeypatch.setitem(sys.modules, "pyspark.sql.connect.readwriter", loaded)
    as_kafka()
    try:
        assert Reader().format("kafka") == "barnabas"
    finally:
        as_kafka(undo=True)
    assert Reader().format("kafka") == "kafka"
