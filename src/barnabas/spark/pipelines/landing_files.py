"""The few file operations that a landing needs, on the local disk and on any Hadoop file system.

F1  `put` makes a small file appear whole or not at all
F2  `move` replaces what stands at the target; on the local disk and on HDFS in one step

Paths are texts, relative to nothing; folders end without a slash.  Raises PipelineError.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from barnabas.spark.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Files", "Found", "HadoopFiles", "LocalFiles", "files_for", "sibling"]


class Found(NamedTuple):
    """A file: its path relative to the folder that was listed, and its bytes."""

    path: str
    size: int


class Files(Protocol):
    """One file system."""

    def read(self, path: str) -> str | None:
        """The text of a small file; None when there is none."""

    def put(self, path: str, text: str) -> None:
        """F1."""

    def move(self, source: str, target: str) -> None:
        """F2; makes the target's folder."""

    def exists(self, path: str) -> bool: ...

    def names(self, folder: str) -> list[str]:
        """What is directly in a folder, sorted; empty when there is no folder."""

    def walk(self, folder: str) -> list[Found]:
        """All files below a folder, sorted by path; empty when there is no folder."""

    def remove(self, path: str) -> None:
        """A file or a whole folder; nothing when there is none."""


def sibling(path: str, name: str) -> str:
    """A path beside another one."""
    head, slash, _ = path.rstrip("/").rpartition("/")
    return f"{head}{slash}{name}"


def files_for(spark: "SparkSession", path: str) -> Files:
    """The file system that a path is on, by Spark's own rules for paths without a scheme."""
    # Spark gives no public way to Hadoop's file systems; these two have been there since its first version.
    jvm: Any = spark._jvm
    configuration = spark._jsc.hadoopConfiguration()
    try:
        system = jvm.org.apache.hadoop.fs.Path(path).getFileSystem(configuration)
    except Exception as error:
        raise PipelineError(f"no file system can be had for {path}: {_reason(error)}") from error
    if system.getUri().getScheme() == "file":
        return LocalFiles()
    return HadoopFiles(jvm, configuration, system)


class LocalFiles:
    """The local disk; takes plain paths and file: addresses."""

    def read(self, path: str) -> str | None:
        try:
            return _local(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PipelineError(f"{path} cannot be read: {error.strerror}") from error

    def put(self, path: str, text: str) -> None:
        target = _local(path)
        fresh = target.with_name(f".{target.name}.new")
        with _writing(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            with fresh.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(target)
            _sync_folder(target.parent)

    def move(self, source: str, target: str) -> None:
        to = _local(target)
        with _writing(target):
            to.parent.mkdir(parents=True, exist_ok=True)
            _local(source).replace(to)
            _sync_folder(to.parent)

    def exists(self, path: str) -> bool:
        return _local(path).exists()

    def names(self, folder: str) -> list[str]:
        at = _local(folder)
        return sorted(each.name for each in at.iterdir()) if at.is_dir() else []

    def walk(self, folder: str) -> list[Found]:
        top = _local(folder)
        return sorted(
            Found(str((Path(where) / name).relative_to(top)), (Path(where) / name).stat().st_size)
            for where, _, names in os.walk(top)
            for name in names
        )

    def remove(self, path: str) -> None:
        at = _local(path)
        if at.is_dir():
            shutil.rmtree(at, ignore_errors=True)
        else:
            at.unlink(missing_ok=True)


def _local(path: str) -> Path:
    return Path(unquote(urlsplit(path).path)) if path.startswith("file:") else Path(path)


def _sync_folder(folder: Path) -> None:
    """Makes a rename last through a loss of power."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise PipelineError(
                f"{path} is on another disk than its staging folder; set `staging` to one on the same disk"
            ) from error
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise PipelineError(f"{path} cannot be written: {error.strerror}", retriable=full) from error


class HadoopFiles:
    """A file system of Hadoop, through the driver's JVM."""

    def __init__(self, jvm: Any, configuration: Any, system: Any) -> None:
        self._jvm = jvm
        self._configuration = configuration
        self._system = system

    def read(self, path: str) -> str | None:
        with _calling(path):
            if not self._system.exists(self._path(path)):
                return None
            stream = self._system.open(self._path(path))
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

    def put(self, path: str, text: str) -> None:
        fresh = sibling(path, f".{path.rpartition('/')[2]}.new")
        with _calling(path):
            stream = self._system.create(self._path(fresh), True)
            try:
                stream.write(bytearray(text.encode()))
                stream.hsync()
            finally:
                stream.close()
        self.move(fresh, path)

    def move(self, source: str, target: str) -> None:
        at, to = self._path(source), self._path(target)
        with _calling(target):
            self._system.mkdirs(to.getParent())
            if not self._system.exists(to):
                if not self._system.rename(at, to):
                    raise PipelineError(f"{source} could not be renamed to {target}", retriable=True)
                return
            # FileSystem.rename never replaces; FileContext does, and HDFS does it in one step.
            rename = self._jvm.org.apache.hadoop.fs.Options.Rename
            ways = self._jvm.java.lang.reflect.Array.newInstance(rename.OVERWRITE.getClass(), 1)
            ways[0] = rename.OVERWRITE
            context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
                self._system.getUri(), self._configuration
            )
            context.rename(self._system.makeQualified(at), self._system.makeQualified(to), ways)

    def exists(self, path: str) -> bool:
        with _calling(path):
            return bool(self._system.exists(self._path(path)))

    def names(self, folder: str) -> list[str]:
        with _calling(folder):
            if not self._system.exists(self._path(folder)):
                return []
            return sorted(each.getPath().getName() for each in self._system.listStatus(self._path(folder)))

    def walk(self, folder: str) -> list[Found]:
        with _calling(folder):
            top = self._path(folder)
            if not self._system.exists(top):
                return []
            base = self._system.makeQualified(top).toUri().getPath().rstrip("/")
            found = []
            listed = self._system.listFiles(top, True)
            while listed.hasNext():
                each = listed.next()
                found.append(Found(each.getPath().toUri().getPath()[len(base) + 1 :], int(each.getLen())))
            return sorted(found)

    def remove(self, path: str) -> None:
        with _calling(path):
            self._system.delete(self._path(path), True)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)


@contextmanager
def _calling(path: str) -> Iterator[None]:
    try:
        yield
    except PipelineError:
        raise
    except Exception as error:
        raise PipelineError(f"{path}: {_reason(error)}", retriable=True) from error


def _reason(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.getMessage() or java)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__
