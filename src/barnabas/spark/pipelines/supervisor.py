"""Keeps pipelines going in one Spark driver: starts those that fail again, and tells how far each is.

    stop = threading.Event()
    outcomes = Supervisor(load(Path("lake.yaml")), checkpoint="/data/checkpoints").run(stop, print)

V1  a pipeline that fails is stopped as a whole before any part of it starts again
V2  waits between starts double from `first_ms` to `longest_ms`; a finished batch brings the first one back
V3  an error that only a person can mend ends its pipeline at once, and the others go on
V4  when `run` returns or raises, no query of it runs, and a session that it made is gone

One thread: `run` polls; queries run in the JVM.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.base.clock import Clock, SystemClock
from barnabas.base.errors import BarnabasError
from barnabas.spark.pipelines import build
from barnabas.spark.pipelines.causes import explain, is_final
from barnabas.spark.pipelines.driver import (
    check_environment,
    close_session,
    is_gone,
    jvm_mark,
    logging_to,
    open_session,
    process_mark,
)
from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.files import checkpoint_of
from barnabas.spark.pipelines.jobs import Job
from barnabas.spark.pipelines.progress import (
    DONE,
    FAILED,
    RUNNING,
    STARTING,
    STOPPED,
    WAITING,
    Meter,
    Progress,
)
from barnabas.spark.pipelines.spec import Pipeline, check_names
from barnabas.spark.pipelines.status import StatusFile, last_jvm, local_folder
from barnabas.spark.sessions import lock_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Backoff", "Outcome", "Supervisor"]

POLL_S: Final = 0.2
ORPHAN_S: Final = 30.0
OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before the next start."""

    first_ms: int = 1_000
    longest_ms: int = 60_000

    def wait_ms(self, failures: int) -> int:
        """After that many failures in a row."""
        assert failures > 0, failures
        return min(self.first_ms << min(failures - 1, 30), self.longest_ms)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a pipeline ended: done (all that was there, with once), stopped or failed."""

    pipeline: str
    state: str
    rows: int
    error: str | None = None


@dataclass(slots=True)
class _Member:
    """One pipeline and what runs of it."""

    pipeline: Pipeline
    checkpoint: str
    status: StatusFile
    state: str = STARTING
    jobs: list[Job] = field(default_factory=list)
    meters: dict[str, Meter] = field(default_factory=dict)
    last: dict[str, Progress] = field(default_factory=dict)
    failures: int = 0
    restarts: int = 0
    next_try_ms: int = 0
    error: str | None = None

    @property
    def is_over(self) -> bool:
        return self.state in (FAILED, DONE, STOPPED)


def _hold(checkpoint: str) -> None:
    try:
        lock_checkpoint(checkpoint)
    except OSError as error:
        raise PipelineError(f"the checkpoint {checkpoint} cannot be written: {error.strerror}") from error


def _outwait(checkpoint: str, stop: threading.Event) -> None:
    """Waits for the JVM of a driver that was killed: it ends by itself, but may write progress before."""
    mark = last_jvm(checkpoint)
    pid = mark.partition(" ")[0] if mark else ""
    waited_s = 0.0
    while mark and process_mark(pid) == mark and not stop.is_set():
        if waited_s >= ORPHAN_S:
            raise PipelineError(
                f"the JVM of an earlier run, process {pid}, still uses {checkpoint}; end it first"
            )
        stop.wait(POLL_S)
        waited_s += POLL_S


class Supervisor:
    """Runs pipelines until they are done, failed or stopped."""

    def __init__(
        self,
        pipelines: Sequence[Pipeline],
        *,
        checkpoint: str | None = None,
        master: str | None = None,
        once: bool = False,
        spark: "SparkSession | None" = None,
        conf: Mapping[str, str] | None = None,
        log_file: Path | None = None,
        write: Callable[[str, Mapping[str, object]], None] | None = None,
        backoff: Backoff = Backoff(),  # noqa: B008 -- a frozen value
        restarts_max: int | None = None,
        clock: Clock | None = None,
        start: Callable[[Pipeline, build.Run], list[Job]] = build.start,
    ) -> None:
        """`spark` is used and left alone; without it a session is made, with `conf`, and ended.

        Each pipeline keeps its progress in a folder of its name below `checkpoint`; without that, beside its
        file, below .barnabas.  The folder is held as long as this process lives.
        `restarts_max` in a row end a pipeline; None: 5 with `once`, otherwise never.
        """
        if not pipelines:
            raise PipelineError("there is no pipeline to run")
        check_names(pipelines)
        places = {each.name: checkpoint_of(each, checkpoint) for each in pipelines}
        self._members = [
            _Member(each, places[each.name], StatusFile(places[each.name])) for each in pipelines
        ]
        self._master = master
        self._once = once
        self._spark = spark
        self._conf = dict(conf or {})
        self._log_file = log_file
        self._write = write
        self._backoff = backoff
        self._restarts_max = restarts_max if restarts_max is not None else 5 if once else None
        self._clock = clock or SystemClock()
        self._start_pipeline = start
        self._tell: OnProgress = lambda progress: None

    def run(self, stop: threading.Event, on_progress: OnProgress) -> list[Outcome]:
        """Blocks until all pipelines are over, or `stop` is set.

        Raises BarnabasError when a pipeline cannot start for a reason that is known before Spark runs.
        """
        self._tell = on_progress
        made = self._spark is None
        for member in self._members:
            build.check(member.pipeline)
            _hold(member.checkpoint)
            _outwait(member.checkpoint, stop)
            self._say(member, STARTING)
        with logging_to(self._log_file):
            try:
                spark = self._spark or self._open()
            except BarnabasError as error:
                self._fail_all(error)
                raise
            if made:
                for member in self._members:
                    member.status.jvm = jvm_mark(spark)
            try:
                self._keep_going(spark, stop)
            finally:
                self._end(spark if made else None)
        return [
            Outcome(
                member.pipeline.name,
                member.state,
                sum(meter.rows_total for meter in member.meters.values()),
                member.error if member.state == FAILED else None,
            )
            for member in self._members
        ]

    def _open(self) -> "SparkSession":
        check_environment(self._master)
        names = ",".join(member.pipeline.name for member in self._members)
        remote = next((each.checkpoint for each in self._members if not local_folder(each.checkpoint)), None)
        return open_session(names, self._master, remote, self._conf, self._log_file)

    def _keep_going(self, spark: "SparkSession", stop: threading.Event) -> None:
        while not stop.is_set():
            for member in self._members:
                if not stop.is_set():
                    self._turn(member, spark, stop)
            if all(member.is_over for member in self._members):
                break
            stop.wait(POLL_S)

    def _turn(self, member: _Member, spark: "SparkSession", stop: threading.Event) -> None:
        """Whatever is due for one pipeline."""
        if member.is_over:
            return
        try:
            if member.jobs:
                self._watch(member)
            elif self._clock.monotonic_ms() >= member.next_try_ms:
                self._start(member, spark)
        except Exception as error:
            if stop.is_set():
                return  # the signal that stops us may have ended the JVM before
            if is_gone(spark):
                gone = PipelineError("the JVM of Spark ended by itself; its log tells more")
                self._fail_all(gone)
                raise gone from error
            self._failed(member, error)

    def _start(self, member: _Member, spark: "SparkSession") -> None:
        own = spark.newSession()
        for name, value in member.pipeline.spark.items():
            own.conf.set(name, value)
        run = build.Run(own, member.checkpoint, self._once, self._write)
        member.jobs = self._start_pipeline(member.pipeline, run)
        now_ms = self._clock.monotonic_ms()
        for job in member.jobs:
            member.meters.setdefault(job.name, Meter(now_ms))
        self._say(member, RUNNING)

    def _watch(self, member: _Member) -> None:
        for job in member.jobs:
            active = (
                job.is_active()
            )  # asked first: what it finished before it ended is then among the reports
            for report in job.reports():
                member.failures = 0
                member.error = None
                changed = member.meters[job.name].take(report, self._clock.monotonic_ms())
                self._emit(member, job.name, RUNNING, changed)
            if not active and (failure := job.failure()) is not None:
                raise failure
        if not any(job.is_active() for job in member.jobs):
            # Asked again behind the reports: a batch may have ended between the two.
            for job in member.jobs:
                for report in job.reports():
                    changed = member.meters[job.name].take(report, self._clock.monotonic_ms())
                    self._emit(member, job.name, RUNNING, changed)
                if (failure := job.failure()) is not None:
                    raise failure
            self._say(member, DONE)

    def _failed(self, member: _Member, error: Exception) -> None:
        self._stop_jobs(member)
        member.error = explain(error)
        member.failures += 1
        limit = self._restarts_max
        if is_final(error) or (limit is not None and member.failures > limit):
            self._say(member, FAILED)
            return
        member.restarts += 1
        member.next_try_ms = self._clock.monotonic_ms() + self._backoff.wait_ms(member.failures)
        self._say(member, WAITING)

    def _fail_all(self, error: BarnabasError) -> None:
        """Without a session nothing runs, and nothing is left to be stopped."""
        for member in self._members:
            if not member.is_over:
                member.jobs = []
                member.error = explain(error)
                self._say(member, FAILED)

    def _stop_jobs(self, member: _Member) -> None:
        jobs, member.jobs = member.jobs, []
        for job in jobs:
            try:
                job.stop()
            except Exception as error:
                # The reason of the failure matters more than that of a query that would not stop.
                member.error = member.error or explain(error)

    def _end(self, made: "SparkSession | None") -> None:
        for member in self._members:
            self._stop_jobs(member)
            if not member.is_over:
                self._say(member, STOPPED)
        if made is not None:
            close_session(made)

    def _say(self, member: _Member, state: str) -> None:
        """A new state of a pipeline, for every part that is known of it."""
        member.state = state
        parts = [job.name for job in member.jobs] or list(member.last) or [member.pipeline.name]
        member.last = {part: member.last[part] for part in parts if part in member.last}
        for part in parts:
            self._emit(member, part, state, {})

    def _emit(self, member: _Member, part: str, state: str, changed: Mapping[str, Any]) -> None:
        from dataclasses import replace

        before = member.last.get(part) or Progress(member.pipeline.name, part, state)
        progress = replace(before, state=state, restarts=member.restarts, last_error=member.error, **changed)
        member.last[part] = progress
        member.status.take(progress)
        self._tell(progress)
