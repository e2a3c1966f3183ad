"""The fakes keep the promises of the ports, so that tests on them mean something."""

from barnabas.base.clock import ManualClock
from barnabas.coordinator.ports import KeyValue, OffsetsLog, Timers, Topics
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._fakes import FakeLog, FakeTopics, ManualTimers, World


def test_fakes_have_the_shape_of_the_ports() -> None:
    timers: Timers = ManualTimers(ManualClock())
    log: OffsetsLog = FakeLog()
    topics: Topics = FakeTopics()
    assert timers
    assert log
    assert topics


def test_a_timer_never_fires_inside_call_after_and_never_after_cancel() -> None:
    timers, fired = ManualTimers(ManualClock()), list[str]()
    timers.call_after(0, lambda: fired.append("now"))
    cancelled = timers.call_after(0, lambda: fired.append("never"))
    cancelled.cancel()
    assert fired == []
    timers.advance(0)
    assert fired == ["now"]


def test_held_writes_end_once_and_in_order() -> None:
    log, ended = FakeLog(holds=True), list[str]()
    log.append(0, [KeyValue(b"k", b"1")], lambda error: ended.append(f"first {error.name}"))
    log.append(0, [KeyValue(b"k", b"2")], lambda error: ended.append(f"second {error.name}"))
    log.release(ErrorCode.REQUEST_TIMED_OUT, 1)
    log.release()
    assert ended == ["first REQUEST_TIMED_OUT", "second NONE"]
    assert log.records(0) == [KeyValue(b"k", b"2")]


def test_new_settings_hold_from_the_next_decision_on() -> None:
    world = World().own_all()
    assert world.join(session_timeout_ms=6_000).waits
    world.around.settings = World(group_min_session_timeout_ms=7_000).around.settings
    assert world.join(session_timeout_ms=6_000).result.error is ErrorCode.INVALID_SESSION_TIMEOUT
