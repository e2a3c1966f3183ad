"""What goes wrong in the Spark part, and how an exception that crossed Spark becomes one sentence.

    SparkPartError (BarnabasError)
    ├── OptionError     an option of a reader or writer is wrong: which, why, and the way out
    ├── DataLoss        offsets that were to be read are gone: which of which partition
    └── ReplayRefused   a batch that is repeated does not go with what was written of it before

An error raised in a Python worker reaches the user as text inside a py4j, Python or query exception, under
a stack of both languages.  `one_sentence` finds the line that matters.
"""

import re
from typing import Final

from barnabas.base.errors import BarnabasError, ConfigFault

__all__ = ["DataLoss", "OptionError", "ReplayRefused", "SparkPartError", "one_sentence"]


class SparkPartError(BarnabasError):
    """Anything that the Spark part refuses or that failed in it; the text is one sentence."""


class OptionError(SparkPartError, ConfigFault):
    """An option is wrong.  `option` is its name as the user should write it."""

    def __init__(self, option: str, why: str, way_out: str = "") -> None:
        super().__init__(f"option {option}: {why}{f'; {way_out}' if way_out else ''}")
        self.option = option
        self.why = why
        self.way_out = way_out


class DataLoss(SparkPartError):
    """Offsets [start, end) of a partition were to be read and are not there any more.

    `end` is None when nobody can tell how many there were.
    """

    def __init__(self, topic: str, partition: int, start: int, end: int | None, why: str) -> None:
        which = f"from {start} on" if end is None else f"{start} to {end - 1}"
        super().__init__(
            f"offsets {which} of {topic}-{partition} are lost: {why}; "
            "set option failOnDataLoss=false to go on without them"
        )
        self.topic = topic
        self.partition = partition
        self.start = start
        self.end = end


class ReplayRefused(SparkPartError):
    """A batch does not go with what is written of its query already; only a person can mend that."""


# The line of a raised exception at the end of a Python traceback: "package.module.Name: text".
_OURS: Final = re.compile(r"^barnabas(?:\.\w+)+: (.+)$", re.M)
_PYTHON: Final = re.compile(r"^(?!java|org\.apache|Caused by)(?:[a-z_]\w*\.)*([A-Z]\w*): (.+)$", re.M)
_JAVA: Final = re.compile(r"^(?::|Caused by:) ((?:\w+\.)+)([\w$]+): (.+)$", re.M)
_TRACEBACK: Final = "Traceback (most recent call last)"
_SPARK_CLASS: Final = re.compile(r"^\[[A-Z_.0-9]+\]\s*")
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+;?.*$")
_QUERY: Final = re.compile(r"^Query .*?terminated with exception: ")
_NO_FORMAT: Final = (
    "Spark does not find the format barnabas: the Python of its workers must have this package "
    "(set PYSPARK_PYTHON), or call barnabas.spark.register(spark)"
)


def one_sentence(error: BaseException | str) -> str:
    """The cause of an exception that came through Spark, without any stack.  Never empty."""
    if isinstance(error, str):
        return _from_text(error) or "unknown error"
    texts: list[str] = []
    current: BaseException | None = error
    while current is not None:
        if isinstance(current, BarnabasError):
            return " ".join(str(current).split())
        java = getattr(current, "java_exception", None)
        texts.append(str(current) if java is None else f"{current}\n: {java}")
        current = current.__cause__
    return _from_text("\n".join(texts)) or type(error).__name__


def _from_text(text: str) -> str:
    if ours := _OURS.findall(text):
        return str(ours[-1]).strip()
    if "DATA_SOURCE_NOT_FOUND" in text and "barnabas" in text:
        return _NO_FORMAT
    if _TRACEBACK in text and (
        raised := [each for each in _PYTHON.findall(text) if _TRACEBACK not in each[1]]
    ):
        name, said = raised[-1]
        return f"{name}: {said.strip()}"
    head = next((line.strip() for line in text.splitlines() if line.strip()), "")
    java = [each for each in _JAVA.findall(text) if each[2].strip()]
    if java and not _SPARK_CLASS.match(head):
        package, name, said = java[-1]
        plain = _plain(said)
        return plain if package.startswith("org.apache.spark") else f"{name}: {plain}"
    return _plain(head)


def _plain(line: str) -> str:
    """A line of Spark without error class, query ids and SQL state."""
    without = _STATE.sub("", _SPARK_CLASS.sub("", line.strip()))
    return _SPARK_CLASS.sub("", _QUERY.sub("", without)).strip()
