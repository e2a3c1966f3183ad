"""The few file operations that a landing needs, on the local disk and on any Hadoop file system.

F1  `put` makes a small file appear whole or not at all
F2  `move` replaces what stands at the target; on the local disk and on HDFS in one step
F3  of several who `put_new` the same file one is told that it did; on the local disk and on HDFS

Paths are texts, relative to nothing; folders end without a slash.  Raises PipelineError.
"""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from barnabas.spark.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "NEW",
    "Files",
    "Found",
    "HadoopFiles",
    "LocalFiles",
    "files_for",
    "needs_hadoop",
    "reason",
    "sibling",
]

NEW: Final = ".new"
"""How the names of files end that `put` and `put_new` had no time to give their own."""


_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)


class Found(NamedTuple):
    """A file: its path relative to the folder that was listed, and its bytes."""

    path: str
    size: int


class Files(Protocol):
    """One file system."""

    def read(self, path: str) -> str | None:
        """The text of a small file; None when there is none."""

    def put(self, path: str, text: str) -> None:
        """F1; replaces what is there."""

    def put_new(self, path: str, text: str) -> bool:
        """F1, F3; False, and nothing changed, when a file is there."""

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


def needs_hadoop(path: str) -> bool:
    """Whether only Hadoop knows the file system of a path; Arrow knows the others by itself."""
    scheme = urlsplit(path).scheme
    return len(scheme) > 1 and scheme not in ("file", "s3", "gs")


def files_for(spark: "SparkSession", path: str) -> Files:
    """The file system that a path is on, by Spark's own rules for paths without a scheme."""
    # Spark gives no public way to Hadoop's file systems; these two have been there since its first version.
    jvm: Any = spark._jvm
    configuration = spark._jsc.hadoopConfiguration()
    try:
        system = jvm.org.apache.hadoop.fs.Path(path).getFileSystem(configuration)
    except Exception as error:
        raise PipelineError(f"no file system can be had for {path}: {reason(error)}") from error
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
        with _writing(path):
            _write_beside(_local(path), text).replace(_local(path))
            _sync_folder(_local(path).parent)

    def put_new(self, path: str, text: str) -> bool:
        target = _local(path)
        with _writing(path):
            fresh = _write_beside(target, text)
            try:
                os.link(fresh, target)  # unlike a rename, it never replaces
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                # The lock of the checkpoint keeps others away, as long as that is local, too.
                if target.exists():
                    return False
                fresh.replace(target)
            finally:
                fresh.unlink(missing_ok=True)
            _sync_folder(target.parent)
        return True

    def move(self, source: str, target: str) -> None:
        to = _local(target)
        with _writing(target):
            to.parent.mkdir(parents=True, exist_ok=True)
            # Spark does not, and after a loss of power a name without its rows is worse than none.
            _sync(_local(source), os.O_RDONLY)
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


def _write_beside(target: Path, text: str) -> Path:
    """A whole file beside the one that it will be, under a name that nobody else uses."""
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(_fresh_name(target.name))
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    return fresh


def _fresh_name(name: str) -> str:
    return f".{name}.{uuid.uuid4().hex[:12]}{NEW}"


def _sync_folder(folder: Path) -> None:
    """Makes a rename last through a loss of power."""
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    number = os.open(path, flags)
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
        self.move(self._write_beside(path, text), path)

    def put_new(self, path: str, text: str) -> bool:
        fresh = self._write_beside(path, text)
        with _calling(path):
            try:
                self._rename(fresh, path)
            except Exception:
                found = self.read(path)
                if found is None:
                    raise
                self._system.delete(self._path(fresh), False)
                return found == text  # ours, when only the answer was lost
        return True

    def _write_beside(self, path: str, text: str) -> str:
        """A whole file beside the one that it will be, under a name that nobody else uses."""
        fresh = sibling(path, _fresh_name(path.rpartition("/")[2]))
        with _calling(path):
            stream = self._system.create(self._path(fresh), True)
            try:
                stream.write(bytearray(text.encode()))
                stream.hsync()
            finally:
                stream.close()
        return fresh

    def move(self, source: str, target: str) -> None:
        with _calling(target):
            self._system.mkdirs(self._path(target).getParent())
            self._rename(source, target, self._jvm.org.apache.hadoop.fs.Options.Rename.OVERWRITE)

    def _rename(self, source: str, target: str, *ways: Any) -> None:
        """By FileContext: unlike FileSystem it replaces if told to, on HDFS in one step, and says why not."""
        kind = self._jvm.org.apache.hadoop.fs.Options.Rename.OVERWRITE.getClass()
        given = self._jvm.java.lang.reflect.Array.newInstance(kind, len(ways))
        for number, way in enumerate(ways):
            given[number] = way
        context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._system.getUri(), self._configuration
        )
        at, to = (self._system.makeQualified(self._path(each)) for each in (source, target))
        context.rename(at, to, given)

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
        raise PipelineError(f"{path}: {reason(error)}", retriable=True) from error


def reason(error: Exception) -> str:
    """What an exception of the JVM says, without its stack."""
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.getMessage() or java)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__
