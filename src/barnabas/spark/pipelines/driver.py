"""The one Spark driver of a run: its noise goes to a log file, and it leaves no process behind."""

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.spark.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "check_environment",
    "close_session",
    "is_gone",
    "jvm_mark",
    "logging_to",
    "open_callbacks",
    "open_session",
    "process_mark",
    "quiet",
]

_SETTINGS: Final = {
    "spark.sql.shuffle.partitions": "4",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # A NameNode whose machine is gone would be called for 15 minutes; the supervisor tries again anyway.
    "spark.hadoop.ipc.client.connect.max.retries.on.timeouts": "2",
}
_JVM_EXIT_S: Final = 20
_SELECT_MAX: Final = 1024
"""File numbers from here on are unknown to select()."""


def check_environment(master: str | None) -> None:
    """Raises PipelineError, in one sentence, when Spark cannot run here."""
    if master is not None and master.startswith("sc://"):
        raise PipelineError(
            "pipelines need a Spark master (local, spark://, yarn, k8s://), not Spark Connect"
        )
    try:
        from barnabas.spark.versions import why_no_pipelines
    except ImportError as error:
        raise PipelineError(
            "pipelines need PySpark; install it with: pip install 'barnabas[spark]'"
        ) from error
    if (reason := why_no_pipelines()) is not None:
        raise PipelineError(reason)
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else None
    if java is not None and not java.exists():
        raise PipelineError(f"JAVA_HOME is {home}, where no bin/java is; set it to a Java 17 or newer")
    if java is None and shutil.which("java") is None:
        raise PipelineError(
            "Spark needs Java 17 or newer, and no java is on the path; install it or set JAVA_HOME"
        )


def open_session(
    app_name: str, master: str | None, checkpoint: str | None, conf: Mapping[str, str], log_file: Path | None
) -> "SparkSession":
    """The session.  Everything that Spark and its workers print goes to `log_file`.

    `checkpoint` matters only when it is not on the local disk; local ones are locked by the caller.
    """
    from barnabas.spark.sessions import session

    if master is not None and not master.startswith("local"):
        # Executors elsewhere take the Python that the driver names, or else the first one of their path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with quiet(log_file), _own_interrupts():
        spark = session(app_name, master, checkpoint, **{**_SETTINGS, **conf})
        open_callbacks(spark)  # now, while few files are open
        return spark


def open_callbacks(spark: "SparkSession") -> None:
    """Lets the JVM call functions of this process, which foreachBatch does.  May be called again.

    PySpark waits for such calls with select().  With a file number that is too large for it the thread ends,
    nobody hears of it, and the query waits for ever; so that is refused here, with PipelineError.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    with socket.socket() as probe:
        number = probe.fileno()
    gateway: Any = spark.sparkContext._gateway
    server = gateway.__dict__.get("_callback_server")
    if server is None and number < _SELECT_MAX:
        start: Any = ensure_callback_server_started
        start(gateway)
        server = gateway._callback_server
    if server is None or not server.thread.is_alive():
        raise PipelineError(
            f"this process has {_SELECT_MAX:,} or more files open, and PySpark cannot bring a batch to it "
            "then; close some, or run the pipeline in a process of its own"
        )


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keeps the handler of Ctrl-C: a new session of Spark puts its own in place."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGINT, before)


@contextmanager
def quiet(log_file: Path | None) -> Iterator[None]:
    """Processes started inside write to `log_file` instead of the terminal, for as long as they live."""
    if log_file is None:
        yield
        return
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        log = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise PipelineError(f"the log file {log_file} cannot be written: {error.strerror}") from error
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        yield
    finally:
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for number in (*kept, log):
            os.close(number)


@contextmanager
def logging_to(log_file: Path | None) -> Iterator[None]:
    """What PySpark logs in this process goes to `log_file`, unless somebody listens to it already.

    Python would print it otherwise: stacks, when a JVM dies.
    """
    root = logging.getLogger()
    if log_file is None or root.handlers:
        yield
        return
    handler = logging.FileHandler(log_file, delay=True)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()


def is_gone(spark: "SparkSession") -> bool:
    """Whether the JVM of a session has ended by itself."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None


def jvm_mark(spark: "SparkSession") -> str | None:
    """Names the JVM of a session for later; None when it is not a child of this process."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    return None if process is None else process_mark(process.pid)


def process_mark(pid: int | str) -> str | None:
    """A name for a process that lives, which no later one gets; None when there is none, or no /proc."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in "ZX" else f"{pid} {rest[18]}"  # rest[18]: when it began


def close_session(spark: "SparkSession") -> None:
    """Stops the session and waits until its JVM is gone.  Never fails: there is nobody left to mend it."""
    from pyspark import SparkContext

    gateway: Any = spark.sparkContext._gateway
    process = getattr(gateway, "proc", None)
    # A signal to the whole process group ends the JVM before us; then every call into it fails.
    with suppress(Exception):
        spark.stop()
    with suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    if process is not None:
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_JVM_EXIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
