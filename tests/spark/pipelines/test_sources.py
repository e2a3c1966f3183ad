"""Records become typed columns; a value that does not fit is told from one that does."""

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.spark.pipelines import clusters
from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.landing_files import LocalFiles
from barnabas.spark.pipelines.sources import BAD, pinned_schema, pinned_start, typed_rows, with_verdict
from barnabas.spark.pipelines.spec import Cluster, Source, Watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOBODY = Cluster("127.0.0.1:1")
RAW = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
AVRO = '{"type": "record", "name": "r", "fields": [{"name": "x", "type": "double"}]}'


def source(**more: Any) -> Source:
    return Source("v", NOBODY, ("t",), **more)


class TestWhatIsPinned:
    def test_the_start_of_latest_is_asked_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        answers = iter(['{"t":{"0":5}}', '{"t":{"0":9}}'])
        monkeypatch.setattr(clusters, "end_offsets", lambda source: next(answers))
        for _ in range(2):
            found = pinned_start(LocalFiles(), str(tmp_path), source(starting="latest"))
            assert found == '{"t":{"0":5}}'

    @pytest.mark.parametrize(
        ("starting", "found"),
        [
            ("earliest", "earliest"),
            ("1767225600000", "1767225600000"),
            ("2026-01-01T00:00:00", "1767225600000"),
            ("2026-01-01T01:00:00+01:00", "1767225600000"),
        ],
    )
    def test_other_starts_need_no_asking(self, starting: str, found: str, tmp_path: Path) -> None:
        assert pinned_start(LocalFiles(), str(tmp_path), source(starting=starting)) == found

    def test_a_schema_is_learnt_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        samples: Any = iter([[b'{"a": 1}'], [b'{"b": 1}']])
        monkeypatch.setattr(clusters, "sample", lambda source: next(samples))
        for _ in range(2):
            assert pinned_schema(LocalFiles(), str(tmp_path), source()) == "a BIGINT"

    def test_a_declared_schema_is_taken(self, tmp_path: Path) -> None:
        assert pinned_schema(LocalFiles(), str(tmp_path), source(schema="a INT")) == "a INT"
        assert pinned_schema(LocalFiles(), str(tmp_path), source(format="raw")) is None


def rows(spark: "SparkSession", *values: bytes | None) -> "DataFrame":
    return spark.createDataFrame(
        [(b"k", value, "t", 0, number, None) for number, value in enumerate(values)], RAW
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
class TestColumns:
    def test_json_is_judged_and_typed(self, spark: "SparkSession") -> None:
        given = rows(spark, b'{"a": 1}', b"rubbish", b'{"a": "x"}', b"", None, b"[1]")
        judged = with_verdict(given, source(), "a INT").select("offset", BAD).collect()
        assert [row[BAD] for row in judged] == [
            None,
            "the value is not JSON",
            "the value does not fit the schema a INT",
            "the value is not JSON",
            None,
            "the value does not fit the schema a INT",
        ]
        typed = typed_rows(given, source(), "a INT", keep_going=True)
        assert typed.columns == ["a", "_key", "_topic", "_partition", "_offset", "_timestamp"]
        assert [(row["a"], row["_key"], row["_offset"]) for row in typed.collect()] == [
            (1, "k", 0),
            (None, "k", 4),
        ]

    def test_avro_is_decoded(self, spark: "SparkSession") -> None:
        given = rows(spark, struct.pack("<d", 2.5), b"short", None)
        avro = source(format="avro", schema=AVRO)
        judged = with_verdict(given, avro, AVRO).select(BAD).collect()
        assert [row[BAD] for row in judged] == [
            None,
            "the value is not Avro of the schema: it ends too early",
            None,
        ]
        typed = typed_rows(given, avro, AVRO, keep_going=True).collect()
        assert [row["x"] for row in typed] == [2.5, None]

    def test_strings_are_texts_and_raw_is_raw(self, spark: "SparkSession") -> None:
        given = rows(spark, b"v")
        texts = typed_rows(given, source(format="string"), None, keep_going=False).first()
        raw = typed_rows(given, source(format="raw"), None, keep_going=False).first()
        assert texts is not None
        assert raw is not None
        assert (texts["key"], texts["value"]) == ("k", "v")
        assert (bytes(raw["key"]), bytes(raw["value"])) == (b"k", b"v")

    def test_names_that_cannot_be_are_said(self, spark: "SparkSession") -> None:
        given = rows(spark, b"{}")
        with pytest.raises(PipelineError, match=r"^watermark: t has no column at; it has a, _key, "):
            typed_rows(given, source(watermark=Watermark("at", "1 hour")), "a INT", keep_going=True)
        with pytest.raises(PipelineError, match="the column _offset has a name that the record's own"):
            typed_rows(given, source(), "_offset INT", keep_going=True)
