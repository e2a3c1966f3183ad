"""Why a query failed, in one sentence, and whether starting it again can help.

An error of a Python worker arrives as text inside exceptions of Spark, so that both are decided by text.
What only a person can mend is listed; everything else is worth another try.
"""

import re
from itertools import takewhile
from typing import Final

from barnabas.base.errors import BarnabasError, ConfigFault, Misuse
from barnabas.spark.errors import one_sentence

__all__ = ["explain", "is_final"]

_FINAL_CLASSES: Final = re.compile(
    r"\bbarnabas(?:\.\w+)+\.(?:OptionError|ColumnError|DataLoss|ReplayRefused|SpecError|ConfigFault|Misuse"
    r"|LostAtSource|BrokenAtSource|TopicEnded)\b"
)
_FINAL_SPARK: Final = (
    "AnalysisException",
    "ParseException",
    "IllegalArgumentException",
    "UnsupportedOperationException",
)
_PREAMBLE: Final = re.compile(r"\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: ")
# What raise_error of a value that does not fit says; see sources.py.
_RAISED_BY_SQL: Final = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: \w+)?$", re.M)
_DENIED: Final = re.compile(r'Permission denied: user=([^,]+), access=(\w+), inode="([^"]*)"')
# What Hadoop's file systems say of themselves, at length.
_HADOOP: Final = (
    (_DENIED, r"\3 is denied to the user \1 (\2); change its permissions, or name another"),
    (
        re.compile(r'(?:Call From \S+ to |destination host is: \(?"?)([\w.-]+)"?:(\d+)'),
        r"the Hadoop server at \1:\2 does not answer",
    ),
    (re.compile(r"Could not obtain block: \S+ file=(\S+)"), r"no DataNode of HDFS gives \1"),
    (re.compile(r"File (\S+) could only be (?:written|replicated) to 0"), r"no DataNode of HDFS takes \1"),
    (re.compile(r"All datanodes \S+ are bad"), "the DataNode of HDFS that took a file is gone"),
    (re.compile(r"Name ?node is in safe mode", re.I), "HDFS is in safe mode, and takes no changes"),
)
_NO_ROOM: Final = re.compile(r"No space left on device|Disk quota exceeded")
_SENTENCES: Final = (
    (
        re.compile(r"STREAMING_STATEFUL_OPERATOR|STATE_STORE_\w*SCHEMA"),
        "the query keeps other state than the one that wrote the checkpoint; start it with a new checkpoint",
    ),
    (
        re.compile(r"There are \[\d+\] sources in the checkpoint offsets"),
        "the checkpoint was written by a pipeline with other sources; give this one a new checkpoint",
    ),
    (
        re.compile(r"CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY|Multiple streaming jobs detected"),
        "another process writes to the same checkpoint; stop it first",
    ),
)


def explain(error: BaseException) -> str:
    """One sentence, without a stack."""
    text = _text(error)
    for pattern, template in _HADOOP:
        if found := pattern.search(text):
            return found.expand(template)
    if isinstance(error, BarnabasError):
        return " ".join(str(error).split())  # some list addresses on lines of their own
    if _NO_ROOM.search(text):
        return "a disk is full: that of the progress, of the table, or of Spark's temporary files"
    for pattern, sentence in _SENTENCES:
        if pattern.search(text):
            return sentence
    if found := _RAISED_BY_SQL.search(text):
        return found[1].strip()
    sentence = one_sentence(_PREAMBLE.sub("", text))
    if not sentence.endswith(":"):
        return sentence
    # What belongs to it stands on the lines below, indented: one for each address that was tried.
    below = text.rpartition(sentence)[2].lstrip("\n").splitlines()
    items = takewhile(lambda line: line.startswith("  "), below)
    return " ".join([sentence, "; ".join(line.strip() for line in items)]).strip()


def is_final(error: BaseException) -> bool:
    """Whether the same would happen again however often it is tried."""
    text = _text(error)
    if isinstance(error, ConfigFault | Misuse) or _DENIED.search(text):
        return True
    if isinstance(error, BarnabasError):
        return not error.retriable
    if type(error).__name__ in _FINAL_SPARK:
        return True
    if _RAISED_BY_SQL.search(text) or _FINAL_CLASSES.search(text):
        return True
    return any(pattern.search(text) for pattern, _ in _SENTENCES)


def _text(error: BaseException) -> str:
    """All that is said of an error and its causes, without the query's plan and offsets."""
    said: list[str] = []
    current: BaseException | None = error
    while current is not None:
        both = (current, getattr(current, "java_exception", None))
        said += [_said(each).partition("=== Streaming Query ===")[0] for each in both if each is not None]
        current = current.__cause__
    return "\n".join(said)


def _said(error: object) -> str:
    try:
        return str(error)
    except Exception:  # py4j asks the JVM for the text, and the JVM may be gone
        return "the JVM of Spark does not answer"
