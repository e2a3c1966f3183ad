"""barnabas.cli.demo.facts."""

from collections import deque
from pathlib import Path

from barnabas.cli.demo.facts import Backlog, Facts, Flow, Landing, landed, remember


def test_a_flow_is_the_growth_per_second_over_the_last_seconds() -> None:
    flow = Flow()
    assert flow.add(0.0, 0) == 0
    assert flow.add(1.0, 100) == 100
    assert flow.add(2.0, 300) == 150
    assert flow.add(10.0, 300) == 0


def test_a_moment_that_does_not_pass_has_no_rate() -> None:
    flow = Flow()
    flow.add(1.0, 5)
    assert flow.add(1.0, 9) == 0


class TestBacklog:
    def test_the_oldest_order_that_was_not_taken_has_the_age(self) -> None:
        backlog = Backlog()
        assert backlog.age(0.0, 0, 0) == 0
        assert backlog.age(1.0, 100, 0) == 1.0
        assert backlog.age(2.0, 200, 0) == 2.0
        assert backlog.age(3.0, 300, 100) == 2.0
        assert backlog.age(4.0, 400, 250) == 2.0
        assert backlog.age(5.0, 400, 400) == 0

    def test_what_was_taken_is_not_kept(self) -> None:
        backlog = Backlog()
        for second in range(1000):
            backlog.age(second, second * 10, second * 10)
        assert len(backlog._points) <= 2


def test_the_history_is_bounded() -> None:
    history: deque[tuple[float, int]] = deque()
    for number in range(100):
        remember(history, Facts("a", "e", "running", 0, None, 1, orders_per_s=number, lag_messages=number))
    assert len(history) == 28
    assert history[-1] == (99, 99)


def test_only_finished_parquet_files_count(tmp_path: Path) -> None:
    for name in ("region=Asia/a.parquet", "b.parquet", "_temporary/c.parquet", ".staging/d.parquet", "e.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"12345")
    assert landed(tmp_path) == Landing(2, 10)
    assert landed(tmp_path / "nowhere") == Landing()
