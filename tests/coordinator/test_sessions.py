"""Deadlines move with every sign of life, timers do not."""

from barnabas.base.clock import ManualClock
from barnabas.coordinator.calls import SyncResult
from barnabas.coordinator.group import Group
from barnabas.coordinator.member import Member
from barnabas.coordinator.outbox import Outbox
from barnabas.coordinator.sessions import Sessions
from tests.coordinator._fakes import ManualTimers


class Watched:
    def __init__(self, session_timeout_ms: int = 10_000) -> None:
        self.clock = ManualClock()
        self.timers = ManualTimers(self.clock)
        self.expired: list[Member] = []
        self.sessions = Sessions(self.clock, self.timers, lambda _, member: self.expired.append(member))
        self.group = Group("g", 0, Outbox(), 0)
        self.member = Member(
            "m",
            instance_id=None,
            client_id="c",
            client_host="h",
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=1,
            protocols={},
        )

    def prolong(self) -> None:
        self.sessions.prolong(self.group, self.member)


def test_silence_for_the_session_timeout_ends_the_session() -> None:
    watched = Watched()
    watched.prolong()
    watched.timers.advance(9_999)
    assert watched.expired == []
    watched.timers.advance(1)
    assert watched.expired == [watched.member]


def test_each_heartbeat_starts_the_timeout_anew() -> None:
    watched = Watched()
    for _ in range(20):
        watched.prolong()
        watched.timers.advance(9_000)
    assert watched.expired == []
    watched.timers.advance(1_000)
    assert watched.expired == [watched.member]


def test_a_hundred_heartbeats_in_a_session_timeout_cost_one_timer() -> None:
    watched = Watched()
    for _ in range(100):
        watched.prolong()
        watched.timers.advance(99)
    assert watched.timers.made == 1


def test_a_shorter_timeout_holds_at_once() -> None:
    watched = Watched(60_000)
    watched.prolong()
    watched.member.session_timeout_ms = 6_000
    watched.prolong()
    watched.timers.advance(6_000)
    assert watched.expired == [watched.member]
    assert watched.timers.armed == 0


def test_a_member_that_waits_for_us_is_watched_again_after_its_answer() -> None:
    watched = Watched()
    watched.prolong()
    watched.member.awaiting_sync = _ignore
    watched.timers.advance(50_000)
    assert watched.expired == []
    watched.member.awaiting_sync = None
    watched.prolong()
    watched.timers.advance(10_000)
    assert watched.expired == [watched.member]


def test_an_ended_session_does_not_expire() -> None:
    watched = Watched()
    watched.prolong()
    watched.sessions.end(watched.member)
    watched.sessions.end(watched.member)
    watched.timers.advance(60_000)
    assert watched.expired == []


def _ignore(result: SyncResult) -> None:
    pass
