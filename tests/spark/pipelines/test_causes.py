"""Errors that crossed Spark become one sentence, and those that only a person can mend are known."""

import pytest

from barnabas.base.errors import ConfigFault
from barnabas.spark.pipelines.causes import explain, is_final
from barnabas.spark.pipelines.errors import PipelineError, SpecError


class StreamingQueryException(Exception):
    """As PySpark's, by its name and text."""


class AnalysisException(Exception):
    """As PySpark's."""


def failed(cause: str) -> StreamingQueryException:
    return StreamingQueryException(
        f"[STREAM_FAILED] Query [id = 1-2, runId = 3-4] terminated with exception: {cause} SQLSTATE: XXKST\n"
        "=== Streaming Query ===\nIdentifier: lake [id = 1-2, runId = 3-4]\nCurrent State: ACTIVE"
    )


@pytest.mark.parametrize(
    ("error", "sentence", "final"),
    [
        (PipelineError("a disk is full", retriable=True), "a disk is full", False),
        (PipelineError("the checkpoint is not yours"), "the checkpoint is not yours", True),
        (SpecError("f.yaml: x"), "f.yaml: x", True),
        (PipelineError("no broker:\n  a:1: refused"), "no broker: a:1: refused", True),
        (ConfigFault("no such setting"), "no such setting", True),
        (failed("Python worker failed to connect back."), "Python worker failed to connect back.", False),
        (
            failed(
                "[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed: Traceback (most recent call last):\n"
                '  File "x.py", line 1, in f\n'
                "barnabas.spark.errors.DataLoss: offsets 0 to 5 of t-0 are lost: x\n"
            ),
            "offsets 0 to 5 of t-0 are lost: x",
            True,
        ),
        (
            failed(
                "Failed: Traceback (most recent call last):\n"
                "barnabas.spark.errors.ReplayRefused: task 0 of batch 3 was to be written\n"
            ),
            "task 0 of batch 3 was to be written",
            True,
        ),
        (
            failed(
                "Failed: Traceback (most recent call last):\n"
                "barnabas.client.errors.NoBrokersAvailable: no broker could be reached:\n"
                "  a:1: refused\n  b:2: unknown host\n\n\tat org.apache.spark"
            ),
            "no broker could be reached: a:1: refused; b:2: unknown host",
            False,
        ),
        (
            failed("[USER_RAISED_EXCEPTION] orders-0 offset 17: the value is not JSON"),
            "orders-0 offset 17: the value is not JSON",
            True,
        ),
        (
            AnalysisException("[UNRESOLVED_COLUMN] A column `x` cannot be resolved. SQLSTATE: 42703"),
            "A column `x` cannot be resolved.",
            True,
        ),
        (
            failed("There are [2] sources in the checkpoint offsets and now there are [1] sources."),
            "the checkpoint was written by a pipeline with other sources; give this one a new checkpoint",
            True,
        ),
    ],
)
def test_an_error_is_one_sentence(error: Exception, sentence: str, final: bool) -> None:
    assert explain(error) == sentence
    assert is_final(error) is final


def test_the_cause_behind_an_error_is_found() -> None:
    outer = StreamingQueryException("it failed")
    outer.__cause__ = Exception("barnabas.spark.errors.OptionError: option topic: x")
    assert explain(outer) == "option topic: x"
    assert is_final(outer)
