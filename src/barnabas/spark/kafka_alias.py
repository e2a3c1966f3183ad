"""Scripts that say `.format("kafka")` run unchanged: the word is read as "barnabas" in this process.

Spark keeps the name "kafka" for its own connector, so the word is changed on the way to it, in Python.
"""

import sys
from typing import Any, Final

from barnabas.spark.errors import SparkPartError

__all__ = ["as_kafka"]

_KEPT: Final = "_barnabas_format"
_CONNECT: Final = {
    "pyspark.sql.connect.readwriter": ("DataFrameReader", "DataFrameWriter"),
    "pyspark.sql.connect.streaming.readwriter": ("DataStreamReader", "DataStreamWriter"),
}


def as_kafka(*, undo: bool = False) -> None:
    """Let readers and writers of this Python process take format "kafka" for "barnabas".

    May be called again, and must be after a session of Spark Connect is made; `undo` gives the word back to
    Spark's connector.
    """
    for kind in _readers_and_writers():
        kept = getattr(kind, _KEPT, None)
        if undo:
            if kept is not None:
                kind.format = kept
                delattr(kind, _KEPT)
        elif kept is None:
            setattr(kind, _KEPT, kind.format)
            kind.format = _translating(kind.format)


def _readers_and_writers() -> list[Any]:
    try:
        from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
        from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter
    except ImportError as error:
        raise SparkPartError("PySpark is not installed: pip install 'barnabas[spark]'") from error
    return [DataFrameReader, DataFrameWriter, DataStreamReader, DataStreamWriter, *_of_connect()]


def _of_connect() -> list[Any]:
    """Those of Spark Connect, if this process has a session of it: their import may end one that has not."""
    loaded = ((sys.modules.get(module), names) for module, names in _CONNECT.items())
    return [getattr(module, name) for module, names in loaded if module is not None for name in names]


def _translating(original: Any) -> Any:
    def format(self: Any, source: str) -> Any:  # the name shows in a stack: it stands for `format`
        if source.lower() != "kafka":
            return original(self, source)
        told = original(self, "barnabas")
        # Spark's connector takes the default mode for append; it lets a Python source have append alone.
        return told.mode("append") if hasattr(told, "mode") else told

    format.__doc__ = original.__doc__
    return format
