"""Workers that are told to end: what is open is closed first, then the signal has its way."""

import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from barnabas.spark.endings import Ending


@pytest.fixture
def seen() -> Iterator[list[int]]:
    """What came through to the handlers that were there before."""
    numbers: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        numbers.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGHUP, signal.SIGTERM)}
    yield numbers
    for number, handler in before.items():
        signal.signal(number, handler)


def work(steps: list[str], *, before: int = 0, during: int = 0, behind: int = 0, fails: bool = False) -> None:
    """Does something and cleans up; signals come before it, while it is at it, and in the clean-up."""
    with Ending() as ending:
        if before:
            signal.raise_signal(before)
        try:
            with ending.interrupts():
                steps.append("work")
                if fails:
                    raise EOFError
                if during:
                    signal.raise_signal(during)
                steps.append("result")
        finally:
            if behind:
                signal.raise_signal(behind)
            steps.append("cleaned")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_ends_the_work_and_has_its_way_behind_the_clean_up(
    seen: list[int], number: signal.Signals
) -> None:
    steps: list[str] = []
    with pytest.raises(SystemExit):
        work(steps, during=number, behind=number)  # whoever sends it may do so twice
    assert steps == ["work", "cleaned"]
    assert seen == [number]


def test_a_signal_during_the_clean_up_of_another_error_waits(seen: list[int]) -> None:
    steps: list[str] = []
    with pytest.raises(EOFError):
        work(steps, fails=True, behind=signal.SIGHUP)
    assert steps == ["work", "cleaned"]
    assert seen == [signal.SIGHUP]


def test_a_signal_before_the_work_keeps_it_from_beginning(seen: list[int]) -> None:
    steps: list[str] = []
    with pytest.raises(SystemExit):
        work(steps, before=signal.SIGHUP)
    assert steps == ["cleaned"]
    assert seen == [signal.SIGHUP]


def test_without_a_signal_nothing_changes(seen: list[int]) -> None:
    with Ending() as ending, ending.interrupts():
        pass
    signal.raise_signal(signal.SIGHUP)
    assert seen == [signal.SIGHUP]


def test_a_signal_that_is_ignored_stays_ignored(seen: list[int]) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    steps: list[str] = []
    work(steps, during=signal.SIGHUP)
    assert steps == ["work", "result", "cleaned"]
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_other_threads_have_no_signals_to_wait_for() -> None:
    before = signal.getsignal(signal.SIGHUP)
    found: list[object] = []

    def look() -> None:
        with Ending() as ending, ending.interrupts():
            found.append(signal.getsignal(signal.SIGHUP))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [before]
