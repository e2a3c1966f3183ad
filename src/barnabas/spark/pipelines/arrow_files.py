"""Files of any Hadoop file system for Arrow, read through a JVM.

Arrow reads local disks, s3:// and gs:// by itself, and HDFS only where a native library of Hadoop is
installed.  Spark brings all of Hadoop, so that everything else goes through its JVM: that of the session, or
one of its own where no session runs.  Reading only.  Failures are OSErrors, as Arrow's own are.
"""

import atexit
import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from weakref import WeakSet

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileSystemHandler, FileType, PyFileSystem

from barnabas.spark.pipelines.driver import check_environment, quiet
from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.landing_files import needs_hadoop, reason

__all__ = ["HadoopReading", "reading"]

_READ_BYTES_MAX: Final = 8 << 20
"""What one call into the JVM brings; its answers are texts in memory on both sides."""

_LET_GO_S: Final = 5.0
_open: "WeakSet[_Bytes]" = WeakSet()


def reading(path: str) -> tuple[FileSystem | None, str]:
    """The file system of a path, and the path on it; None when Arrow finds it by itself.

    Raises PipelineError when Hadoop does not know it either.
    """
    if not needs_hadoop(path):
        return None, path
    jvm, configuration = _hadoop()
    try:
        system = jvm.org.apache.hadoop.fs.Path(path).getFileSystem(configuration)
    except Exception as error:
        raise PipelineError(f"no file system can be had for {path}: {reason(error)}") from error
    return PyFileSystem(HadoopReading(jvm, system)), urlsplit(path).path.rstrip("/") or "/"


def _hadoop() -> tuple[Any, Any]:
    """A JVM with Hadoop, and the settings of its file systems."""
    from pyspark import SparkContext, java_gateway

    context: Any = SparkContext._active_spark_context
    if context is not None:
        return context._jvm, context._jsc.hadoopConfiguration()
    check_environment(None)
    with quiet(Path(os.devnull)):  # it ends with this process
        launch: Any = java_gateway.launch_gateway
        jvm = launch().jvm
    return jvm, jvm.org.apache.hadoop.conf.Configuration()


@contextmanager
def _calling(path: str) -> Iterator[None]:
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{path}: {reason(error)}") from error


class HadoopReading(FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """Answers Arrow's questions about one file system; from any thread."""

    def __init__(self, jvm: Any, system: Any) -> None:
        self._jvm = jvm
        self._system = system

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HadoopReading) and other._system.getUri() == self._system.getUri()

    def __hash__(self) -> int:
        return hash(HadoopReading)

    def get_type_name(self) -> str:
        return "hadoop"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> FileInfo:
        with _calling(path):
            at = self._jvm.org.apache.hadoop.fs.Path(path)
            if not self._system.exists(at):
                return FileInfo(path, FileType.NotFound)
            return _described(path, self._system.getFileStatus(at))

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        with _calling(selector.base_dir):
            at = self._jvm.org.apache.hadoop.fs.Path(selector.base_dir)
            if not self._system.exists(at):
                if selector.allow_not_found:
                    return []
                raise FileNotFoundError(f"{selector.base_dir} is not there")
            found = []
            for each in self._system.listStatus(at):
                info = _described(f"{selector.base_dir.rstrip('/')}/{each.getPath().getName()}", each)
                found.append(info)
                if selector.recursive and info.type == FileType.Directory:
                    found += self.get_file_info_selector(FileSelector(info.path, recursive=True))
            return found

    def open_input_file(self, path: str) -> pa.PythonFile:
        with _calling(path):
            at = self._jvm.org.apache.hadoop.fs.Path(path)
            size = int(self._system.getFileStatus(at).getLen())
            return pa.PythonFile(_Bytes(self._jvm, self._system.open(at), path, size), mode="r")

    open_input_stream = open_input_file

    def _refuse(self, *args: object) -> Any:
        raise OSError("this file system is only read")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refuse
    move = copy_file = open_output_stream = open_append_stream = _refuse


def _described(path: str, status: Any) -> FileInfo:
    kind = FileType.Directory if status.isDirectory() else FileType.File
    return FileInfo(path, kind, size=int(status.getLen()) if kind == FileType.File else None)


@atexit.register
def _let_go() -> None:
    """Waits until Arrow's threads have closed their files: to come back into a Python that ends is fatal."""
    until = time.monotonic() + _LET_GO_S
    while _open and time.monotonic() < until:
        gc.collect()
        time.sleep(0.01)


class _Bytes(RawIOBase):
    """A file that is open in the JVM."""

    def __init__(self, jvm: Any, stream: Any, path: str, size: int) -> None:
        _open.add(self)
        self._jvm = jvm
        self._stream = stream
        self._path = path
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        left = max(self._size - self._position, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        parts: list[bytes] = []
        with _calling(self._path):
            if wanted:
                self._stream.seek(self._position)
            while wanted:
                count = min(wanted, _READ_BYTES_MAX)
                parts.append(bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(self._stream, count)))
                self._position += count
                wanted -= count
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        if not self.closed:
            with _calling(self._path):
                self._stream.close()
        super().close()
