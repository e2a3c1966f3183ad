"""The supervisor starts, starts again, gives up and stops; with jobs that do what a test tells them."""

import os
import subprocess
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.base.clock import ManualClock
from barnabas.spark.pipelines import build
from barnabas.spark.pipelines import supervisor as supervisor_module
from barnabas.spark.pipelines.driver import process_mark
from barnabas.spark.pipelines.errors import PipelineError, SpecError
from barnabas.spark.pipelines.jobs import BatchReport, Job
from barnabas.spark.pipelines.progress import Progress
from barnabas.spark.pipelines.spec import Pipeline
from barnabas.spark.pipelines.status import StatusFile, read_status
from barnabas.spark.pipelines.supervisor import Backoff, Outcome, Supervisor
from barnabas.spark.sessions import lock_checkpoint


class FakeJob:
    """Finishes a batch at every look until its steps are used up, then ends or fails."""

    def __init__(self, name: str, batches: int, failure: Exception | None = None) -> None:
        self._name = name
        self._left = batches
        self._batch = 0
        self._failure = failure
        self.stopped = 0

    @property
    def name(self) -> str:
        return self._name

    def reports(self) -> list[BatchReport]:
        if self._left <= 0:
            return []
        self._left -= 1
        self._batch += 1
        return [BatchReport(self._batch, 10, 5, 100, {("t", 0): 10 * self._batch}, {("t", 0): 100})]

    def is_active(self) -> bool:
        return self._left > 0 and not self.stopped

    def failure(self) -> BaseException | None:
        return None if self._left > 0 else self._failure

    def stop(self) -> None:
        self.stopped += 1


class FakeSession:
    """A session that no JVM stands behind."""

    class sparkContext:
        _gateway = None

    def newSession(self) -> "FakeSession":
        return self


class Stop(threading.Event):
    """Waiting is a step of the clock; after so many steps it is set."""

    def __init__(self, clock: ManualClock, steps: int = 1000) -> None:
        super().__init__()
        self._clock = clock
        self._steps = steps

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.advance(int((timeout or 0) * 1000))
        self._steps -= 1
        if self._steps <= 0:
            self.set()
        return self.is_set()


class World:
    """Runs pipelines whose starts give what a test has prepared."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.started: list[tuple[str, int]] = []
        self.seen: list[Progress] = []
        self.plans: dict[str, list[Callable[[], list[Any]]]] = {}
        self.outcomes: list[Outcome] = []
        monkeypatch.setattr(build, "check", lambda pipeline: None)

    def start(self, pipeline: Pipeline, run: build.Run) -> list[Job]:
        self.started.append((pipeline.name, self.clock.monotonic_ms()))
        steps = self.plans[pipeline.name]
        found: list[Job] = (steps.pop(0) if len(steps) > 1 else steps[0])()
        return found

    def run(self, *, steps: int = 1000, **more: Any) -> list[tuple[str, str, int, str | None]]:
        session: Any = FakeSession()
        supervisor = Supervisor(
            [Pipeline(name, "land", None) for name in self.plans],
            checkpoint=str(self.folder),
            spark=session,
            clock=self.clock,
            start=self.start,
            **more,
        )
        self.outcomes = supervisor.run(Stop(self.clock, steps), self.seen.append)
        return [(each.pipeline, each.state, each.rows, each.error) for each in self.outcomes]

    def states(self, part: str) -> list[str]:
        found = [each.state for each in self.seen if each.part == part]
        return [state for number, state in enumerate(found) if number == 0 or found[number - 1] != state]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def broken(text: str = "the broker is away") -> Exception:
    return PipelineError(text, retriable=True)


def test_a_pipeline_that_comes_to_its_end_is_done(world: World) -> None:
    world.plans["lake"] = [lambda: [FakeJob("lake", 3)]]
    assert world.run(once=True) == [("lake", "done", 30, None)]
    assert world.states("lake") == ["starting", "running", "done"]
    last = world.seen[-1]
    assert (last.batch_id, last.rows_total, last.lag_messages) == (3, 30, 70)


def test_one_that_fails_starts_again_and_goes_on(world: World) -> None:
    world.plans["lake"] = [lambda: [FakeJob("lake", 2, broken())], lambda: [FakeJob("lake", 1)]]
    assert world.run(once=True) == [("lake", "done", 30, None)]
    assert world.states("lake") == ["starting", "running", "waiting", "running", "done"]
    waiting = next(each for each in world.seen if each.state == "waiting")
    assert (waiting.last_error, waiting.restarts) == ("the broker is away", 1)
    assert world.seen[-1].last_error is None, "a finished batch takes the error back"


def test_waits_double_until_a_batch_is_finished(world: World) -> None:
    world.plans["lake"] = [
        *[lambda: [FakeJob("lake", 0, broken())]] * 4,
        lambda: [FakeJob("lake", 1, broken())],
        lambda: [FakeJob("lake", 1)],
    ]
    world.run(backoff=Backoff(first_ms=1_000, longest_ms=4_000))
    times = [at for _, at in world.started]
    waits = [after - before for before, after in pairwise(times)]
    assert [round(wait / 1000) for wait in waits] == [1, 2, 4, 4, 1]


def test_the_longest_wait_is_never_passed() -> None:
    backoff = Backoff(first_ms=1_000, longest_ms=60_000)
    assert [backoff.wait_ms(count) for count in (1, 2, 6, 7, 500)] == [1_000, 2_000, 32_000, 60_000, 60_000]


def test_what_only_a_person_can_mend_ends_it_at_once_and_the_others_go_on(world: World) -> None:
    world.plans["bad"] = [lambda: [FakeJob("bad", 1, SpecError("f.yaml: no"))]]
    world.plans["good"] = [lambda: [FakeJob("good", 5)]]
    assert world.run(once=True) == [("bad", "failed", 10, "f.yaml: no"), ("good", "done", 50, None)]
    assert [name for name, _ in world.started] == ["bad", "good"]


def test_a_start_that_fails_is_tried_again(world: World) -> None:
    def refuse() -> list[Any]:
        raise broken("no answer")

    world.plans["lake"] = [refuse, lambda: [FakeJob("lake", 1)]]
    assert world.run() == [("lake", "done", 10, None)]


def test_once_gives_up_after_a_few_tries(world: World) -> None:
    world.plans["lake"] = [lambda: [FakeJob("lake", 0, broken())]]
    assert world.run(once=True, restarts_max=2) == [("lake", "failed", 0, "the broker is away")]
    assert len(world.started) == 3


def test_a_part_that_fails_takes_the_whole_pipeline_with_it(world: World) -> None:
    other = FakeJob("lake.dead-letters", 1000)
    world.plans["lake"] = [
        lambda: [FakeJob("lake", 1, broken()), other],
        lambda: [FakeJob("lake", 1), FakeJob("lake.dead-letters", 1)],
    ]
    world.run()
    assert other.stopped == 1
    assert world.states("lake.dead-letters")[-1] == "done"


def test_the_parts_are_told_and_not_the_pipeline_once_they_run(world: World) -> None:
    world.plans["lake"] = [lambda: [FakeJob("lake.a", 1), FakeJob("lake.b", 1)]]
    world.run(once=True)
    assert world.states("lake") == ["starting"]
    assert world.states("lake.a") == world.states("lake.b") == ["running", "done"]
    found = read_status("lake", str(world.folder / "lake")).parts
    assert [(part["part"], part["state"]) for part in found] == [("lake.a", "done"), ("lake.b", "done")]


def test_stop_ends_what_runs(world: World) -> None:
    job = FakeJob("lake", 10_000)
    world.plans["lake"] = [lambda: [job]]
    assert world.run(steps=5)[0][1] == "stopped"
    assert job.stopped == 1


def test_a_job_that_does_not_stop_hides_no_other(world: World) -> None:
    class Stubborn(FakeJob):
        def stop(self) -> None:
            raise RuntimeError("no")

    other = FakeJob("b", 10_000)
    world.plans["a"] = [lambda: [Stubborn("a", 10_000)]]
    world.plans["b"] = [lambda: [other]]
    assert [state for _, state, *_ in world.run(steps=5)] == ["stopped", "stopped"]
    assert other.stopped == 1


def test_the_state_is_left_on_disk(world: World) -> None:
    world.plans["lake"] = [lambda: [FakeJob("lake", 1, SpecError("no"))]]
    world.run()
    assert '"state": "failed"' in (world.folder / "lake" / "status.json").read_text()


def test_two_pipelines_need_two_names(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="two pipelines are called 'x'"):
        Supervisor([Pipeline("x", "land", None)] * 2, checkpoint=str(tmp_path))
    with pytest.raises(PipelineError, match=r"^there is no pipeline to run$"):
        Supervisor([], checkpoint=str(tmp_path))


def test_the_checkpoint_is_held(world: World, tmp_path: Path) -> None:
    world.plans["lake"] = [lambda: [FakeJob("lake", 1)]]
    world.run()
    lock_checkpoint(tmp_path / "lake")  # ours already
    assert (tmp_path / "lake" / ".barnabas.lock").exists()


def test_a_checkpoint_that_cannot_be_written_is_said(world: World) -> None:
    (world.folder / "lake").touch()
    world.plans["lake"] = [list]
    with pytest.raises(PipelineError, match=r"^the checkpoint .*/lake cannot be written: File exists$"):
        world.run()


def test_a_session_that_does_not_come_about_is_the_state_that_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "check", lambda pipeline: None)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    supervisor = Supervisor([Pipeline("lake", "land", None)], checkpoint=str(world.folder))
    with pytest.raises(PipelineError, match="JAVA_HOME"):
        supervisor.run(threading.Event(), world.seen.append)
    assert [each.state for each in world.seen] == ["starting", "failed"]
    (part,) = read_status("lake", str(world.folder / "lake")).parts
    assert part["state"] == "failed"
    assert "JAVA_HOME" in part["last_error"]


def test_a_jvm_that_is_gone_is_what_all_pipelines_failed_of(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "is_gone", lambda spark: True)
    world.plans = {
        "lake": [lambda: [FakeJob("lake", 2, broken())]],
        "other": [lambda: [FakeJob("other", 99)]],
    }
    with pytest.raises(PipelineError, match=r"^the JVM of Spark ended by itself; its log tells more$"):
        world.run()
    ended = {each.part: (each.state, each.last_error) for each in world.seen}
    assert set(ended.values()) == {("failed", "the JVM of Spark ended by itself; its log tells more")}


class TestTheJvmOfAKilledRun:
    def test_one_that_ends_is_waited_for(self, world: World) -> None:
        with subprocess.Popen(["sleep", "60"]) as lingering:
            self._left_by(world, lingering.pid)
            world.plans["lake"] = [lambda: [FakeJob("lake", 1)]]
            timer = threading.Timer(0.3, lingering.kill)
            timer.start()
            supervisor = Supervisor(
                [Pipeline("lake", "land", None)],
                checkpoint=str(world.folder),
                spark=cast("Any", FakeSession()),
                start=world.start,
                once=True,
            )
            (outcome,) = supervisor.run(threading.Event(), world.seen.append)
            assert lingering.wait(10) != 0, "it was there until then"
            assert outcome.state == "done"

    def test_one_that_stays_is_named(self, world: World) -> None:
        self._left_by(world, os.getpid())
        world.plans["lake"] = [list]
        with pytest.raises(PipelineError, match=rf"^the JVM of an earlier run, process {os.getpid()}, still"):
            world.run()

    def test_another_process_of_its_number_is_none(self, world: World) -> None:
        self._left_by(world, os.getpid(), began="1")
        world.plans["lake"] = [lambda: [FakeJob("lake", 1)]]
        assert world.run(once=True) == [("lake", "done", 10, None)]

    def _left_by(self, world: World, pid: int, began: str | None = None) -> None:
        """The status of a run that was killed."""
        status = StatusFile(str(world.folder / "lake"))
        status.jvm = f"{pid} {began}" if began else process_mark(pid)
        status.take(Progress("lake", "lake", "running"))
