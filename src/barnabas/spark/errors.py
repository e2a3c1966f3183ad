"""What goes wrong in the Spark part, and how an exception that crossed Spark becomes one sentence.

    SparkPartError (BarnabasError)
    ├── OptionError     an option of a reader or writer is wrong: which, why, and the way out
    └── DataLoss        offsets that were to be read are gone: which of which partition

An error raised in a Python worker reaches the user as text inside a py4j, Python or query exception, under
a stack of both languages.  `one_sentence` finds the line that matters.
"""

import re
from typing import Final

from barnabas.base.errors import BarnabasError, ConfigFault

__all__ = ["DataLoss", "OptionError", "SparkPartError", "one_sentence"]


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


# A raised exception at the end of a Python traceback: "package.module.Name: text", at the start of a line.
_RAISED: Final = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Loss|Fault)?): (.+)$", re.M)
_OURS: Final = re.compile(r"^barnabas(?:\.\w+)+\.(\w+): (.+)$", re.M)
_SPARK_CLASS: Final = re.compile(r"^\[[A-Z_.0-9]+\]\s*")
_NOISE: Final = ("Traceback (most", "at org.apache", "at java.", 'File "', "SQLSTATE:")


def one_sentence(error: BaseException | str) -> str:
    """The cause of an exception that came through Spark, without any stack.  Never empty."""
    text = error if isinstance(error, str) else _full_text(error)
    for pattern in (_OURS, _RAISED):
        found = pattern.findall(text)
        if found:
            name, said = found[-1]
            return said.strip() if pattern is _OURS else f"{name}: {said.strip()}"
    for line in text.splitlines():
        plain = _SPARK_CLASS.sub("", line.strip())
        if plain and not plain.startswith(_NOISE):
            return re.sub(r"\s*SQLSTATE: \w+$", "", plain)
    return text.strip() or (type(error).__name__ if isinstance(error, BaseException) else "unknown error")


def _full_text(error: BaseException) -> str:
    """Everything that is known of an error and its causes, innermost last."""
    seen: list[str] = []
    current: BaseException | None = error
    while current is not None:
        java = getattr(current, "java_exception", None)
        seen.append(str(current) if java is None else f"{current}\n{java}")
        current = current.__cause__
    return "\n".join(seen)
