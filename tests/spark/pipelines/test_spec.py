"""Pipelines are read from mappings into typed values, and wrong ones are refused by name."""

from typing import Any

import pytest

from barnabas.spark.pipelines.errors import SpecError
from barnabas.spark.pipelines.files import parse_document
from barnabas.spark.pipelines.spec import (
    Cluster,
    ConsoleSink,
    FileSink,
    Flow,
    Pipeline,
    TopicSink,
    Watermark,
    check_names,
)

AVRO = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}'


def land(**more: Any) -> dict[str, Any]:
    return {
        "name": "lake",
        "kind": "land",
        "bootstrap": "b:1",
        "source": {"topic": "orders"},
        "sink": {"parquet": "/lake"},
        **more,
    }


def transform(**more: Any) -> dict[str, Any]:
    return {**land(kind="transform", sink={"topic": "out"}), **more}


def one(document: dict[str, Any]) -> Pipeline:
    (found,) = parse_document(document, "f.yaml")
    return found


def flow(document: dict[str, Any]) -> Flow:
    plan = one(document).plan
    assert isinstance(plan, Flow)
    return plan


def test_a_landing_is_read() -> None:
    found = one(
        land(
            trigger="30s",
            dead_letters="dead",
            spark={"spark.sql.shuffle.partitions": 8},
            sink={
                "parquet": "/lake",
                "partition_by": ["date"],
                "file_size": "1mb",
                "metadata": False,
                "staging": "/stage",
            },
        )
    )
    assert (found.name, found.kind, found.trigger_ms) == ("lake", "land", 30_000)
    assert found.spark == {"spark.sql.shuffle.partitions": "8"}
    assert found.plan.dead_letters == "dead"
    assert found.plan.sinks == (
        FileSink("/lake", "parquet", ("date",), 2**20, "/stage", False, {}, "parquet"),
    )


def test_a_transformation_is_read() -> None:
    found = flow(
        transform(
            source=None,
            sources=[
                {"topic": "orders", "watermark": "at 10 minutes", "schema": "at TIMESTAMP"},
                {"topic": "pay-ments", "format": "string", "bootstrap": "other:2", "starting": "latest"},
                {"pattern": "x.*", "view": "xs", "watermark": {"column": "_timestamp", "delay": "1 hour"}},
            ],
            sink=None,
            sinks=[{"topic": "out", "key": "id"}, {"console": True}, {"console": 5}, {"delta": "/d"}],
            sql="SELECT 1",
        )
    )
    assert [source.view for source in found.sources] == ["orders", "pay_ments", "xs"]
    assert found.sources[0].watermark == Watermark("at", "10 minutes")
    assert found.sources[1].cluster == Cluster("other:2")
    assert found.sources[2].watermark == Watermark("_timestamp", "1 hour")
    assert found.sinks == (
        TopicSink("out", Cluster("b:1"), "id", {}, "topic"),
        ConsoleSink(20, "console"),
        ConsoleSink(5, "console-2"),
        FileSink("/d", "delta", label="delta"),
    )


def test_the_cluster_is_that_of_the_source_else_of_the_pipeline_else_of_the_document() -> None:
    document = {
        "bootstrap": "doc:1",
        "client": {"client.id": "x", "security.protocol": "PLAINTEXT"},
        "pipelines": [
            {**land(), "bootstrap": None},
            {**land(name="two", bootstrap="own:2", client={"client.id": "y"})},
            {**land(name="three", source={"topic": "t", "bootstrap": ["a:1", "b:2"]})},
        ],
    }
    sources = [each.plan.sources[0].cluster for each in parse_document(document, "f.yaml")]
    assert [each.bootstrap for each in sources] == ["doc:1", "own:2", "a:1,b:2"]
    assert [each.client["client.id"] for each in sources] == ["x", "y", "x"]
    assert sources[1].options()["kafka.bootstrap.servers"] == "own:2"
    assert sources[1].options()["kafka.client.id"] == "y"


def test_the_environment_names_the_cluster_when_nobody_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", "env:9")
    assert flow(land(bootstrap=None)).sources[0].cluster.bootstrap == "env:9"
    monkeypatch.delenv("BARNABAS_BOOTSTRAP")
    assert flow(land(bootstrap=None)).sources[0].cluster.bootstrap == "localhost:9092"


def test_client_settings_do_not_show() -> None:
    assert "secret" not in repr(one(land(client={"sasl.password": "secret"})))


def test_a_function_may_stand_where_yaml_names_one() -> None:
    assert flow(transform(python=len)).function is len
    assert flow(transform(python="clean.py:clean")).function_ref == "clean.py:clean"


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (land(name=None), "f.yaml: wants the key 'name'"),
        (land(name="a b"), "f.yaml: name may have letters, digits, '.', '_' and '-', and 'a b' has others"),
        (
            land(kind="lend"),
            "f.yaml: kind must be land, transform, mirror or replay, not 'lend'; did you mean land?",
        ),
        (land(source=None), "f.yaml: wants the key 'source'"),
        (land(sink=None), "f.yaml: wants the key 'sink'"),
        (land(sinks=[]), "f.yaml: sinks cannot stand beside sink; choose one"),
        (land(source={}), "f.yaml: source wants either topic (or topics) or pattern"),
        (
            land(source={"topic": "a", "pattern": "b"}),
            "f.yaml: source wants either topic (or topics) or pattern",
        ),
        (
            land(source={"topic": "a", "formt": "json"}),
            "f.yaml: source.formt is not known; did you mean format?",
        ),
        (land(sink={"path": "x"}), "f.yaml: sink wants one of topic, parquet, delta and console"),
        (
            land(sink={"topic": "x"}),
            "f.yaml: sink of kind land cannot be the topic x; take kind: transform",
        ),
        (land(sink={"console": 0}), "f.yaml: sink.console must be at least 1, not 0"),
        (
            land(source={"topic": "a", "view": "a-b"}),
            "f.yaml: source.view must be a name as SQL takes it, not 'a-b'",
        ),
        (
            land(source={"topic": "a", "starting": "sometime"}),
            "f.yaml: source.starting must be earliest, latest, a time as 2026-05-01T10:00:00 or "
            "milliseconds, not 'sometime'",
        ),
        (
            land(source={"topic": "a", "format": "raw", "schema": "x INT"}),
            "f.yaml: source.schema means nothing for format raw",
        ),
        (
            land(source={"topic": "a", "format": "avro"}),
            "f.yaml: source wants a schema: Avro values do not say what they are",
        ),
        (
            land(source={"topic": "a", "format": "avro", "schema": "{}"}),
            "f.yaml: source.schema is not understood: it must be a record",
        ),
        (
            land(source={"topic": "a", "watermark": "at sometime"}),
            "f.yaml: source.watermark must be a column and a delay as 'at 10 minutes', not 'at sometime'",
        ),
        (
            transform(source=[{"topic": "a"}, {"topic": "b"}]),
            "f.yaml: sources are several: say with sql or python how they become one result",
        ),
        (
            transform(source=[{"topic": "a"}, {"topic": "a"}], sql="x"),
            "f.yaml: sources has two views called 'a'; give one a `view`",
        ),
        (transform(sql="x", python="a.py:b"), "f.yaml: python cannot stand beside sql; choose one"),
        (
            transform(python="clean"),
            "f.yaml: python must name a file and a function as clean.py:clean, not 'clean'",
        ),
        (transform(output="all"), "f.yaml: output must be append, update or complete, not 'all'"),
        (land(output="update"), "f.yaml: output must be append for files, not update"),
        (
            transform(sink={"topic": "orders"}),
            "f.yaml: sink writes to orders, which is read: that would never end",
        ),
        (land(dead_letters="orders"), "f.yaml: dead_letters cannot be orders, which is read"),
        (land(triger="1s"), "f.yaml: triger is not known; did you mean trigger?"),
        ({"pipelines": []}, "f.yaml: pipelines is empty"),
        (
            {"pipelines": [land()], "names": 1},
            "f.yaml: names is not known; known are pipelines, bootstrap, client",
        ),
    ],
)
def test_a_wrong_document_is_one_sentence(document: dict[str, Any], text: str) -> None:
    with pytest.raises(SpecError) as raised:
        parse_document(document, "f.yaml")
    assert str(raised.value) == text


def test_avro_takes_a_schema_of_its_own() -> None:
    source = flow(land(source={"topic": "a", "format": "avro", "schema": AVRO})).sources[0]
    assert source.schema == AVRO


@pytest.mark.parametrize("text", ["earliest", "latest", "2026-05-01T10:00:00", "1767225600000"])
def test_where_a_source_starts(text: str) -> None:
    assert flow(land(source={"topic": "a", "starting": text})).sources[0].starting == text


def test_two_pipelines_of_one_run_need_two_names() -> None:
    one_, other = (Pipeline("x", "land", None, origin=file) for file in ("a.yaml", "b.yaml"))
    with pytest.raises(SpecError, match=r"^a.yaml and b.yaml: two pipelines are called 'x'; rename one$"):
        check_names([one_, other])
