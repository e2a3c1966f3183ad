"""barnabas.spark.workers: what a Python worker does not look at again after every task."""

import gc
from collections.abc import Iterator

import pytest

from barnabas.spark import workers


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    monkeypatch.setattr(workers, "_tasks", 0)
    yield
    gc.unfreeze()


def test_a_single_task_changes_nothing() -> None:
    before = gc.get_freeze_count()
    workers.settle()
    assert gc.get_freeze_count() == before


def test_what_is_alive_at_the_second_task_is_not_collected_again() -> None:
    for _ in range(2):
        workers.settle()
    assert gc.get_freeze_count() > 1000
    assert len(gc.get_objects()) < 1000


def test_other_processes_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_REUSE_WORKER")
    before = gc.get_freeze_count()
    for _ in range(4):
        workers.settle()
    assert gc.get_freeze_count() == before


def test_it_happens_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(gc, "freeze", lambda: seen.append(workers._tasks))
    for _ in range(1000):
        workers.settle()
    assert seen == [2, 4, 8, 16, 32, 64, 128, 256, 512]
