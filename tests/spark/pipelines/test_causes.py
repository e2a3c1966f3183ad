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
            failed("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs"),
            "another process writes to the same checkpoint; stop it first",
            True,
        ),
        (
            failed("java.util.concurrent.TimeoutException: the stream took too long"),
            "java.util.concurrent.TimeoutException: the stream took too long",
            False,
        ),
        (
            failed("There are [2] sources in the checkpoint offsets and now there are [1] sources."),
            "the checkpoint was written by a pipeline with other sources; give this one a new checkpoint",
            True,
        ),
        (
            PipelineError(
                'hdfs://a/l: Permission denied: user=me, access=WRITE, inode="/l":hdfs:group:drwxr-xr-x',
                retriable=True,
            ),
            "/l is denied to the user me (WRITE); change its permissions, or name another",
            True,
        ),
        (
            failed(
                'End of File Exception between local host is: "vm/127.0.0.1"; destination host is: '
                '"name-1":8020; : java.io.EOFException; For more details see:  http://wiki.apache.org/x'
            ),
            "the Hadoop server at name-1:8020 does not answer",
            False,
        ),
        (
            failed(
                "Call From vm/127.0.0.1 to name-1:8020 failed on connection exception: "
                "java.net.ConnectException: Connection refused; For more details see: http://wiki"
            ),
            "the Hadoop server at name-1:8020 does not answer",
            False,
        ),
        (
            PipelineError("hdfs://a/m: Could not obtain block: BP-1:blk_1 file=/m No live", retriable=True),
            "no DataNode of HDFS gives /m",
            False,
        ),
        (
            failed("File /x could only be written to 0 of the 1 minReplication nodes. There are 1 "),
            "no DataNode of HDFS takes /x",
            False,
        ),
        (
            failed("Task 0 failed 4 times: java.io.IOException: No space left on device"),
            "a disk is full: that of the progress, of the table, or of Spark's temporary files",
            False,
        ),
        (
            failed("Cannot create file/x. Name node is in safe mode."),
            "HDFS is in safe mode, and takes no changes",
            False,
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
