"""The leader's view of its replicas: who is in sync, how far each is, what is committed.

R1  The local replica is always in the in-sync set.
R2  high_watermark = the least end offset of the in-sync set, and never falls within a leader epoch.
R3  high_watermark <= the local end offset.
R4  A follower joins the in-sync set only once its end offset reached the high watermark.

Owns no log and no clock; end offsets and times are arguments.  One caller at a time.
"""

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["FollowerProgress", "LeaderState"]

UNKNOWN_OFFSET = -1


@dataclass(slots=True)
class FollowerProgress:
    """How far one follower is, by its last fetch."""

    end_offset: int = UNKNOWN_OFFSET
    last_fetch_ms: int = 0
    caught_up_ms: int = 0
    """When the follower last had everything the leader had at that moment."""
    leader_end_at_last_fetch: int = UNKNOWN_OFFSET


class LeaderState:
    """One leader epoch of one partition.  Made when the broker becomes leader, dropped when it stops."""

    __slots__ = ("_followers", "_local", "_local_end", "high_watermark", "in_sync", "replicas")

    def __init__(
        self,
        *,
        local: int,
        replicas: Iterable[int],
        in_sync: Iterable[int],
        log_end: int,
        high_watermark: int,
    ) -> None:
        self._local = local
        self._local_end = log_end
        self.replicas = tuple(replicas)
        self.in_sync = frozenset(in_sync)
        self.high_watermark = min(high_watermark, log_end)
        self._followers = {node: FollowerProgress() for node in self.replicas if node != local}
        assert local in self.in_sync, f"R1: {local} leads but is not in sync: {sorted(self.in_sync)}"
        self._advance()

    def log_grew(self, log_end: int) -> bool:
        """The local log now ends at `log_end`; says whether the high watermark moved."""
        self._local_end = log_end
        if len(self.in_sync) == 1:  # the common single-replica case, on the produce path
            moved = log_end > self.high_watermark
            if moved:
                self.high_watermark = log_end
            return moved
        return self._advance()

    def follower_fetched(self, node: int, end_offset: int, now_ms: int) -> bool:
        """Follower `node` asked for `end_offset`, so it has all before it; says whether the mark moved."""
        progress = self._followers.get(node)
        if progress is None:
            return False
        if end_offset >= self._local_end:
            progress.caught_up_ms = now_ms
        elif end_offset >= progress.leader_end_at_last_fetch >= 0:
            # It has what we had when it last asked: it keeps up, one round trip behind.
            progress.caught_up_ms = max(progress.caught_up_ms, progress.last_fetch_ms)
        progress.end_offset = end_offset
        progress.last_fetch_ms = now_ms
        progress.leader_end_at_last_fetch = self._local_end
        return self._advance()

    def lagging(self, now_ms: int, lag_ms_max: int) -> frozenset[int]:
        """In-sync followers that were not caught up for longer than `lag_ms_max`."""
        return frozenset(
            node
            for node, progress in self._followers.items()
            if node in self.in_sync
            and progress.end_offset != self._local_end
            and now_ms - progress.caught_up_ms > lag_ms_max
        )

    def ready_to_join(self) -> frozenset[int]:
        """Followers outside the in-sync set that reached the high watermark (R4)."""
        return frozenset(
            node
            for node, progress in self._followers.items()
            if node not in self.in_sync and progress.end_offset >= self.high_watermark
        )

    def in_sync_changed(self, in_sync: Iterable[int]) -> bool:
        """The controller recorded a new in-sync set; says whether the high watermark moved."""
        self.in_sync = frozenset(in_sync)
        assert self._local in self.in_sync, f"R1: {self._local} leads but is not in sync"
        return self._advance()

    def log_truncated(self, log_end: int) -> None:
        """The local log was cut below what it held (only before the epoch's first append)."""
        self._local_end = log_end
        self.high_watermark = min(self.high_watermark, log_end)

    def _advance(self) -> bool:
        ends = [self._followers[node].end_offset for node in self.in_sync if node != self._local]
        least = min([self._local_end, *ends])
        if least <= self.high_watermark:
            return False
        self.high_watermark = least
        assert self.high_watermark <= self._local_end, f"R3: {self.high_watermark} > {self._local_end}"
        return True
