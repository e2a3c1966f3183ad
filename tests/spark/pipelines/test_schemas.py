"""The schema of JSON values is learnt from a sample."""

import json
from typing import Any

import pytest

from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.schemas import learn_ddl


def learnt(*values: Any) -> str:
    return learn_ddl([json.dumps(value).encode() for value in values], "orders")


@pytest.mark.parametrize(
    ("values", "ddl"),
    [
        ([{"a": 1, "b": 1.5, "c": "x", "d": True}], "a BIGINT, b DOUBLE, c STRING, d BOOLEAN"),
        ([{"a": 1}, {"a": 2.5}], "a DOUBLE"),
        ([{"a": 1}, {"a": "x"}], "a STRING"),
        ([{"a": None}], "a STRING"),
        ([{"a": None}, {"a": 3}], "a BIGINT"),
        ([{"a": 1}, {"b": 2}], "a BIGINT, b BIGINT"),
        ([{"a": {"x": 1}}, {"a": {"y": "z"}}], "a STRUCT<x: BIGINT, y: STRING>"),
        ([{"a": [1, 2.5]}, {"a": []}], "a ARRAY<DOUBLE>"),
        ([{"a": []}], "a ARRAY<STRING>"),
        ([{"a": {}}], "a STRING"),
        ([{"a": [{"x": 1}]}], "a ARRAY<STRUCT<x: BIGINT>>"),
        ([{"a": [1]}, {"a": {"x": 1}}], "a STRING"),
        ([{"a b": 1, "c`d": 2}], "`a b` BIGINT, `c``d` BIGINT"),
        ([{"a": 2**70}], "a DOUBLE"),
        ([[1], 7, {"a": 1}], "a BIGINT"),
    ],
)
def test_types_are_learnt(values: list[Any], ddl: str) -> None:
    assert learnt(*values) == ddl


def test_what_is_no_object_is_passed_over() -> None:
    assert learn_ddl([None, b"rubbish", b"\xff", b'{"a": 1}'], "orders") == "a BIGINT"


@pytest.mark.parametrize("values", [[], [None], [b"rubbish"], [b"[1]"]])
def test_nothing_to_learn_from_is_said(values: list[bytes | None]) -> None:
    with pytest.raises(
        PipelineError, match=r"^the schema of orders cannot be learnt: there is no JSON object"
    ):
        learn_ddl(values, "orders")
