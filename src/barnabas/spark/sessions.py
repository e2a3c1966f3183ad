"""A Spark session with the settings that a pipeline wants.

`local[*,4]` because `local[*]` never retries a failed task.  Unix sockets to the Python workers, and for a
checkpoint on a local disk Hadoop's plain file system: together they halve the time of a micro-batch.
The plain file system renames without checking first, so a checkpoint in use is held by a lock file.
"""

import fcntl
import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from barnabas.spark.errors import SparkPartError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "DEFAULT_MASTER",
    "local_path",
    "lock_checkpoint",
    "register",
    "session",
    "session_settings",
    "worker_python",
]

DEFAULT_MASTER: Final = "local[*,4]"
LOCK_NAME: Final = ".barnabas.lock"

_ALWAYS: Final = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # What Spark gathers for a Python writer, twice over, in memory that it takes anew for every task: with
    # 20 MB of it (20,000 rows of 1 KB) a fifth of the JVM's time goes into clearing pages.
    "spark.sql.execution.arrow.maxBytesPerBatch": "4m",
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.sql.session.timeZone": "UTC",
    # Which rows a task gets must not hang on how large shuffled blocks happen to be: a repeated batch would
    # differ, and what its tasks wrote before would not be found (see exactly_once).
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
}
_WORKER_SCRIPT: Final = """#!/bin/sh
set -f  # no file names for a * in the path
kept=
IFS=:
for each in $PYTHONPATH; do
    case $each in
    {folder}/*.zip | *.jar) ;;
    *) kept=${{kept:+$kept:}}$each ;;
    esac
done
PYTHONPATH=$kept exec {python} "$@"
"""
_locks: dict[Path, IO[str]] = {}


def session_settings(checkpoint: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """The settings of `session` for a checkpoint there (None: on the local disk, place not known yet)."""
    from barnabas.spark.versions import checkpoint_file_manager

    settings = dict(_ALWAYS)
    if checkpoint is None or local_path(checkpoint) is not None:
        settings["spark.sql.streaming.checkpointFileManagerClass"] = checkpoint_file_manager()
        settings["spark.hadoop.fs.file.impl"] = "org.apache.hadoop.fs.RawLocalFileSystem"
    return settings


def session(
    app_name: str = "barnabas",
    master: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    **conf: object,
) -> "SparkSession":
    """The session, made if there is none.  `conf` adds and overrides; underscores stand for dots.

    With a `checkpoint` on the local disk, that folder is held by this process until it ends, and becomes the
    default place of checkpoints.  Raises SparkPartError when another process holds it, or there is no Java.
    """
    from pyspark.sql import SparkSession

    if checkpoint is not None:
        lock_checkpoint(checkpoint)
    settings: dict[str, str] = session_settings(checkpoint)
    if checkpoint is not None:
        settings["spark.sql.streaming.checkpointLocation"] = str(checkpoint)
    settings.update({_conf_name(name): _conf_value(value) for name, value in conf.items()})
    if (master or DEFAULT_MASTER).startswith("local"):
        _point_at_this_machine()
    builder = SparkSession.builder.appName(app_name).master(master or DEFAULT_MASTER)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        raise SparkPartError(_why_no_session(error)) from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _point_at_this_machine() -> None:
    """Workers of a local master run this very Python, not the first python3 of the path, and stay local."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = worker_python()


def worker_python() -> str:
    """A command for the workers: this Python, with PySpark from its folder.

    Spark puts a zip of PySpark before everything else on the path of its workers.  A zip holds no compiled
    modules, so each of half a dozen processes would compile all of PySpark when a query starts: a second
    of work each, of the ten that Spark waits for them.  An installation of Spark's own is left alone.
    """
    import pyspark

    zipped = Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip"
    if "SPARK_HOME" in os.environ or not zipped.exists():
        return sys.executable
    text = _WORKER_SCRIPT.format(folder=shlex.quote(str(zipped.parent)), python=shlex.quote(sys.executable))
    name = f"barnabas-python-{os.getuid()}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    script = Path(tempfile.gettempdir()) / name
    try:
        if not script.exists():
            fresh = Path(f"{script}.{os.getpid()}")
            fresh.touch(mode=0o700)
            fresh.write_text(text)
            fresh.rename(script)
        ours = script.stat().st_uid == os.getuid() and script.read_text() == text
        runs = subprocess.run([script, "-c", ""], check=False).returncode == 0  # /tmp may forbid programs
    except OSError:
        return sys.executable
    return str(script) if ours and runs else sys.executable


def _conf_name(name: str) -> str:
    dotted = name if "." in name else name.replace("_", ".")
    return dotted if dotted.startswith("spark.") else f"spark.{dotted}"


def _conf_value(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _why_no_session(error: Exception) -> str:
    import shutil

    java_home = os.environ.get("JAVA_HOME")
    if java_home is None and shutil.which("java") is None:
        return "Spark needs Java 17 or newer, and no java is on the path; install it or set JAVA_HOME"
    from barnabas.spark.errors import one_sentence

    return f"no Spark session came about: {one_sentence(error)}"


def local_path(place: str | os.PathLike[str]) -> Path | None:
    """The folder that a path or a file: address means; None when it is somewhere else."""
    text = os.fspath(place)
    parts = urlsplit(text)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return Path(text) if not parts.scheme or len(parts.scheme) == 1 else None


def lock_checkpoint(checkpoint: str | os.PathLike[str]) -> None:
    """Hold a checkpoint on the local disk for this process; elsewhere Spark's own rules hold.

    The lock ends with the process, also when it is killed.  Raises SparkPartError when another holds it.
    """
    folder = local_path(checkpoint)
    if folder is None:
        return
    folder = folder.absolute()
    if folder in _locks:
        return
    folder.mkdir(parents=True, exist_ok=True)
    lock = (folder / LOCK_NAME).open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise SparkPartError(
            f"the checkpoint {folder} is in use by another process; stop it first"
        ) from error
    _locks[folder] = lock


def register(spark: "SparkSession", *, ship: bool = False) -> None:
    """Tell a session of the format "barnabas"; needed only where Spark does not find it by itself.

    With `ship` the code travels with every job, for clusters where the package is installed on the driver
    alone; executors then need pyspark, pyarrow and this package's dependencies.
    """
    if ship:
        from barnabas.spark.shipping import shipped_source

        spark.dataSource.register(shipped_source())
    else:
        from pyspark_barnabas import DefaultSource

        spark.dataSource.register(DefaultSource)
