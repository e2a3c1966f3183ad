"""barnabas.cli.demo.run: the course of the demo, and that nothing of it is left."""

import socket
import threading
from pathlib import Path

import pytest

from barnabas.cli.demo.child import ChildFailed
from barnabas.cli.demo.facts import Facts
from barnabas.cli.demo.jobs import JobProgress, PythonJob
from barnabas.cli.demo.run import ORDERS, SALES, Demo, Plan, _is_free
from barnabas.cli.demo.show import Quiet
from tests.cli.demo._moments import outcome

PLAN = Plan(seconds=0.5, rate=1000, port=0)


class Seen(Quiet):
    """Keeps what was shown."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.moments: list[Facts] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def update(self, facts: Facts) -> None:
        self.moments.append(facts)


class Broken:
    """A job that fails at once."""

    title = "broken"

    def __init__(self) -> None:
        self.stopped = False

    def start(self) -> None: ...

    def progress(self) -> JobProgress:
        return JobProgress()

    def check(self) -> None:
        raise ValueError("it broke")

    def stop(self) -> None:
        self.stopped = True


def python_job(address: str, folder: Path) -> PythonJob:
    return PythonJob(address, ORDERS, SALES)


@pytest.mark.slow
class TestRuns:
    def test_all_orders_are_sold_once_and_it_is_told_on_the_way(self, tmp_path: Path) -> None:
        show = Seen()
        ended = Demo(PLAN, tmp_path, python_job, show, threading.Event()).run()
        assert ended is not None
        assert (ended.is_exact, ended.was_stopped, ended.repeated) == (True, False, 0)
        assert ended.counted == ended.facts.orders > 100
        assert [note.split()[0] for note in show.notes] == ["broker", "topics", "job"]
        assert show.moments[-1].state == "draining"
        assert {thread.name for thread in threading.enumerate() if thread.name.startswith("demo-")} == set()

    def test_one_that_is_stopped_before_it_began_has_nothing_to_tell(self, tmp_path: Path) -> None:
        stopping = threading.Event()
        stopping.set()
        assert Demo(PLAN, tmp_path, python_job, Quiet(), stopping).run() is None

    def test_a_job_that_fails_ends_it_and_is_stopped(self, tmp_path: Path) -> None:
        job = Broken()
        with pytest.raises(ValueError, match="it broke"):
            Demo(PLAN, tmp_path, lambda address, folder: job, Quiet(), threading.Event()).run()
        assert job.stopped

    def test_a_port_that_is_taken_is_said(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            plan = Plan(1, 1, taken.getsockname()[1])
            with pytest.raises(ChildFailed, match=r"the broker ended with exit code 1: .*in use"):
                Demo(plan, tmp_path, python_job, Quiet(), threading.Event()).run()


def test_a_port_is_free_when_nobody_listens_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert not _is_free(port)
    assert _is_free(port)


def test_the_outcome_as_json() -> None:
    told = outcome().json()
    assert (told["orders"], told["counted"], told["exact"], told["stopped"]) == (12_345, 12_345, True, False)
    assert outcome(rows=None).json()["parquet"] == {"files": 7, "bytes": 123_456, "rows": None}
