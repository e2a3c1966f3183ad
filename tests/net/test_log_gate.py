"""Complaints about clients come at a bounded rate."""

import logging

import pytest

from barnabas.base.clock import ManualClock
from barnabas.net.log_gate import LogGate


def test_lines_over_the_rate_are_counted_and_mentioned_later(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    gate = LogGate(logging.getLogger("test"), clock)
    for number in range(50):
        gate.warning("line %d", number)
    assert caplog.messages == [f"line {number}" for number in range(20)]
    caplog.clear()
    clock.advance(10_000)
    gate.warning("again")
    assert caplog.messages == ["30 more lines like these were left out", "again"]
