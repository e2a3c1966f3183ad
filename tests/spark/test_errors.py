"""One sentence for whatever comes out of Spark."""

from barnabas.base.errors import ConfigFault
from barnabas.spark.errors import DataLoss, OptionError, one_sentence

WORKER = """[STREAM_FAILED] Query [id = 5c, runId = 9f] terminated with exception: Job aborted due to stage
failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3 in stage 3.0 (TID 7):
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/worker.py", line 3, in read
    raise DataLoss(topic, partition, start, end, why)
barnabas.spark.errors.DataLoss: offsets 0 to 4 of t-0 are lost: the log begins at 5

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
Caused by: java.lang.Exception: x SQLSTATE: XXKST"""


def test_our_own_words_come_without_the_stack() -> None:
    assert one_sentence(WORKER) == "offsets 0 to 4 of t-0 are lost: the log begins at 5"
    assert one_sentence(RuntimeError(WORKER)) == one_sentence(WORKER)


def test_an_error_of_user_code_keeps_its_kind() -> None:
    text = 'Traceback (most recent call last):\n  File "x", line 1\nValueError: no such thing\n'
    assert one_sentence(RuntimeError(text)) == "ValueError: no such thing"


def test_sparks_own_errors_lose_class_and_state() -> None:
    text = "[TABLE_OR_VIEW_NOT_FOUND] The table or view `x` cannot be found. SQLSTATE: 42P01;\n'Project [*]"
    assert one_sentence(text) == "The table or view `x` cannot be found."


def test_a_format_that_was_not_found_says_what_to_look_for() -> None:
    text = "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: barnabas. Make sure … SQLSTATE: 42K02"
    said = one_sentence(text)
    assert said.startswith("Spark does not find the format barnabas")
    assert "PYSPARK_PYTHON" in said


def test_an_error_of_java_is_found_below_py4j() -> None:
    text = "An error occurred while calling o45.load.\n: java.io.IOException: disk is full\n\tat x.y(z)\n"
    assert one_sentence(text) == "IOException: disk is full"


def test_an_error_of_our_own_that_never_left() -> None:
    error = OptionError("subscribe", "no topics are named", "name one")
    assert one_sentence(error) == "option subscribe: no topics are named; name one"
    assert isinstance(error, ConfigFault)
    assert (error.option, error.why, error.way_out) == ("subscribe", "no topics are named", "name one")


def test_never_empty() -> None:
    assert one_sentence(RuntimeError()) == "RuntimeError"
    assert one_sentence("") == "unknown error"


def test_a_cause_is_followed() -> None:
    error = RuntimeError("wrapped")
    error.__cause__ = DataLoss("t", 1, 3, None, "gone")
    assert one_sentence(error).startswith("offsets from 3 on of t-1 are lost: gone")


def test_a_query_that_failed_in_java_loses_its_ids() -> None:
    text = (
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: no worker came. SQLSTATE: XXKST"
    )
    assert one_sentence(text) == "no worker came."
