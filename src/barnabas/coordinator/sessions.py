"""Deadlines of members, watched lazily.

A heartbeat only moves the deadline (one clock reading, no timer).  The member's one timer, when it fires
early, is set again for the rest.  So a live member costs one timer a session timeout, however often it beats.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.base.clock import Clock
from barnabas.coordinator.member import Member
from barnabas.coordinator.ports import Timers

if TYPE_CHECKING:
    from barnabas.coordinator.group import Group

__all__ = ["Sessions"]


class Sessions:
    """Says `expire(group, member)` when a member's deadline passed and nothing moved it."""

    __slots__ = ("_clock", "_expire", "_timers")

    def __init__(self, clock: Clock, timers: Timers, expire: "Callable[[Group, Member], None]") -> None:
        self._clock = clock
        self._timers = timers
        self._expire = expire

    def prolong(self, group: "Group", member: Member) -> None:
        """The member gave a sign of life."""
        self.expect_within(group, member, member.session_timeout_ms)

    def expect_within(self, group: "Group", member: Member, timeout_ms: int) -> None:
        """The member must give a sign of life within `timeout_ms`."""
        member.deadline_ms = deadline_ms = self._clock.monotonic_ms() + timeout_ms
        if member.timer is None:
            self._arm(group, member, timeout_ms)
        elif deadline_ms < member.timer_due_ms:
            member.timer.cancel()
            self._arm(group, member, timeout_ms)

    def end(self, member: Member) -> None:
        """The member is no longer watched."""
        if member.timer is not None:
            member.timer.cancel()
            member.timer = None

    def _arm(self, group: "Group", member: Member, timeout_ms: int) -> None:
        member.timer = self._timers.call_after(timeout_ms, partial(self._fired, group, member))
        member.timer_due_ms = member.deadline_ms

    def _fired(self, group: "Group", member: Member) -> None:
        member.timer = None
        left_ms = member.deadline_ms - self._clock.monotonic_ms()
        if left_ms > 0:
            self._arm(group, member, left_ms)
        elif not member.is_excused:
            self._expire(group, member)
        # An excused member is watched again from the moment it gets its answer.
