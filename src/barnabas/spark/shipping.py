"""The format for clusters where this package is installed on the driver alone: the code travels in the jobs.

    ShippedSource           a class that Spark pickles by value; it carries the package as a zip
    shipped objects         readers and writers, pickled as "unpack the zip, then unpickle the rest"

S1  What this module's classes and functions do before `unpacked` uses PySpark and the standard library alone:
    they run where the package is not there yet.
S2  What Spark pickles by plain pickle (tasks, messages of writers) is of PySpark's own classes.

Compiled parts travel too; a Python that cannot load them uses their plain twins.
"""

import hashlib
import io
import os
import pickle
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from barnabas.spark import versions
from barnabas.spark.versions import DataSourceStreamArrowWriter, SupportsTriggerAvailableNow

__all__ = ["ShippedSource", "package_zip", "shipped_source"]

_NAMES = ("barnabas", "pyspark_barnabas")


def package_zip() -> bytes:
    """The package of this process as a zip: sources and compiled parts."""
    import barnabas

    root = Path(barnabas.__file__).parent.parent
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _NAMES:
            for path in sorted((root / name).rglob("*")):
                if path.suffix in (".py", ".so"):
                    # A fixed date: the same code has the same bytes, so that it is unpacked once.
                    entry = zipfile.ZipInfo(str(path.relative_to(root)))
                    archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def unpacked(code: bytes) -> None:
    """Make the package importable in this process, if it is not."""
    import importlib.util

    if importlib.util.find_spec("barnabas") is not None:
        return
    name = f"barnabas-{os.getuid()}-{hashlib.sha256(code).hexdigest()[:24]}"
    folder = Path(tempfile.gettempdir()) / name
    if not folder.exists():
        # Other workers do the same at this moment: the first rename wins.
        fresh = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        with zipfile.ZipFile(io.BytesIO(code)) as archive:
            archive.extractall(fresh)
        try:
            fresh.rename(folder)
        except OSError:
            folder = folder if folder.exists() else fresh
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else; remove it")
    sys.path.insert(0, str(folder))


def restored(code: bytes, kind: type, payload: bytes) -> Any:
    """What a shipped object is unpickled by, in a process that may have nothing of this package."""
    unpacked(code)
    return kind(code, pickle.loads(payload))


class _Shipped:
    """An object of the package and the code to understand it."""

    def __init__(self, code: bytes, inner: Any) -> None:
        self.code = code
        self.inner = inner

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return restored, (self.code, type(self), pickle.dumps(self.inner))


def _plain_tasks(tasks: Any) -> list[InputPartition]:
    return [InputPartition(([tuple(each) for each in task.ranges], task.token)) for task in tasks]


def _task(partition: InputPartition) -> Any:
    from barnabas.spark.planning import OffsetRange, ReadTask

    if not isinstance(getattr(partition, "value", None), tuple):
        return partition
    ranges, token = partition.value
    return ReadTask([OffsetRange(*each) for each in ranges], token)


def _message(inner: Any) -> WriterCommitMessage:
    plain = WriterCommitMessage()
    plain.payload = pickle.dumps(inner)  # type: ignore[attr-defined]  # PySpark keeps whatever it has
    return plain


def _inner_messages(messages: list[WriterCommitMessage | None]) -> list[Any]:
    return [None if each is None else pickle.loads(getattr(each, "payload")) for each in messages]  # noqa: B009 -- PySpark declares none


class ShippedReader(_Shipped, DataSourceReader):
    """A batch reader that travels with its code."""

    def partitions(self) -> list[InputPartition]:
        return _plain_tasks(self.inner.partitions())

    def read(self, partition: InputPartition) -> Iterator[Any]:
        found: Iterator[Any] = self.inner.read(_task(partition))
        return found


class ShippedStreamReader(_Shipped, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream reader that travels with its code."""

    def initialOffset(self) -> dict[str, Any]:
        found: dict[str, Any] = self.inner.initialOffset()
        return found

    def latestOffset(self, *asked: Any) -> dict[str, Any]:  # with arguments or without, by release
        found: dict[str, Any] = self.inner.latestOffset(*asked)
        return found

    def getDefaultReadLimit(self) -> Any:
        return self.inner.getDefaultReadLimit()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self.inner.reportLatestOffset()
        return found

    def prepareForTriggerAvailableNow(self) -> None:
        self.inner.prepareForTriggerAvailableNow()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return _plain_tasks(self.inner.partitions(start, end))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        found: Iterator[Any] = self.inner.read(_task(partition))
        return found

    def commit(self, end: dict[str, Any]) -> None:
        self.inner.commit(end)

    def stop(self) -> None:
        self.inner.stop()


class ShippedWriter(_Shipped, DataSourceArrowWriter):
    """A batch writer that travels with its code."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return _message(self.inner.write(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.inner.commit(_inner_messages(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self.inner.abort(_inner_messages(messages))


class ShippedStreamWriter(_Shipped, DataSourceStreamArrowWriter):
    """A stream writer that travels with its code."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return _message(self.inner.write(iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.inner.commit(_inner_messages(messages), batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.inner.abort(_inner_messages(messages), batchId)


class ShippedSource(DataSource):
    """The format "barnabas" with its code; made by `shipped_source`."""

    CODE: ClassVar[bytes] = b""

    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def _source(self) -> DataSource:
        unpacked(self.CODE)
        from pyspark_barnabas import DefaultSource

        return DefaultSource(self.options)

    def schema(self) -> StructType | str:
        return self._source().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        return ShippedReader(self.CODE, self._source().reader(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return ShippedStreamReader(self.CODE, self._source().streamReader(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return ShippedWriter(self.CODE, self._source().writer(schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        return ShippedStreamWriter(self.CODE, self._source().streamWriter(schema, overwrite))


def shipped_source() -> type[DataSource]:
    """The source to register; from here on this module, and what it stands on, is pickled by value."""
    from pyspark import cloudpickle

    by_value: Callable[[Any], None] = cloudpickle.register_pickle_by_value
    by_value(sys.modules[__name__])
    by_value(versions)
    return type("ShippedSource", (ShippedSource,), {"CODE": package_zip(), "__module__": __name__})
