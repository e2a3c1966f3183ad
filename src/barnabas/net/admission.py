"""Who may connect: totals, counts per address, and the rate of new connections.

A1  every admitted connection is counted once in the total, for its address and for its listener
    until it is released
"""

from collections import Counter

from barnabas.net.limits import ServerLimits

__all__ = ["Admission"]


class Admission:
    """One caller at a time; knows addresses as text, and time only as it is told."""

    def __init__(self, limits: ServerLimits) -> None:
        self.limits = limits  # may be replaced while in use
        self.total = 0
        self._by_host: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._second = -1
        self._in_second = 0

    def admit(self, host: str, listener: str, listener_max: int) -> str | None:
        """Counts a connection in, or says why not."""
        limits = self.limits
        if self.total >= limits.connections_max:
            return f"there are {self.total} connections already (max.connections)"
        if self._by_listener[listener] >= listener_max:
            return f"the listener has {self._by_listener[listener]} connections already (max.connections)"
        allowed = limits.connections_per_host.get(host, limits.connections_per_host_max)
        if self._by_host[host] >= allowed:
            return f"{host} has {self._by_host[host]} connections already (max.connections.per.ip)"
        self.total += 1
        self._by_host[host] += 1
        self._by_listener[listener] += 1
        return None

    def release(self, host: str, listener: str) -> None:
        """Counts a connection out that `admit` let in."""
        self.total -= 1
        self._by_listener[listener] -= 1
        self._by_host[host] -= 1
        assert self._by_host[host] >= 0, f"A1: {host} was released too often"
        if not self._by_host[host]:
            del self._by_host[host]

    def wait_ms(self, now_ms: int) -> int:
        """How long to leave the backlog alone, because this second has had its share."""
        second = now_ms // 1000
        if second != self._second:
            self._second, self._in_second = second, 0
        if self._in_second < self.limits.connections_per_second_max:
            return 0
        return (second + 1) * 1000 - now_ms

    def count_accepted(self) -> None:
        """Counts one connection taken from the backlog into the second of the last `wait_ms`."""
        self._in_second += 1
