"""barnabas.base.clock: where time comes from."""

import pytest

from barnabas.base.clock import Clock, ManualClock, SystemClock


def test_the_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(now_ms=1_000)
    assert (clock.now_ms(), clock.monotonic_ms()) == (1_000, 0)
    clock.advance(250)
    assert (clock.now_ms(), clock.monotonic_ms()) == (1_250, 250)


def test_the_manual_clock_never_goes_back() -> None:
    with pytest.raises(AssertionError, match="time went back by 1 ms"):
        ManualClock().advance(-1)


@pytest.mark.parametrize("clock", [SystemClock(), ManualClock()])
def test_every_clock_reads_whole_milliseconds_that_do_not_fall(clock: Clock) -> None:
    first = clock.monotonic_ms()
    assert clock.monotonic_ms() >= first
    assert clock.now_ms() > 1_600_000_000_000
