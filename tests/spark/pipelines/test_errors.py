"""The errors of pipelines say whether waiting helps."""

from barnabas.base.errors import ConfigFault
from barnabas.spark.errors import SparkPartError
from barnabas.spark.pipelines.errors import PipelineError, SpecError


def test_a_file_is_mended_by_a_person() -> None:
    assert isinstance(SpecError("x"), ConfigFault)
    assert isinstance(SpecError("x"), SparkPartError)


def test_a_run_may_be_worth_another_try() -> None:
    assert not PipelineError("x").retriable
    assert PipelineError("x", retriable=True).retriable
