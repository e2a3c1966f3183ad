"""What a server grants its clients, as frozen values; each names the Kafka setting it serves."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["ConnectionLimits", "ServerLimits"]

_KIB = 1024
_MIB = 1024 * _KIB


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """For each connection of one listener.

    Memory per connection is at most request_bytes_max (a frame arriving) + its share of
    ServerLimits.held_bytes_max + unsent_bytes_max + one answer; an idle one costs about 3 KB.
    """

    request_bytes_max: int = 100 * _MIB  # socket.request.max.bytes
    requests_open_max: int = 500  # queued.max.requests, here per connection
    unsent_bytes_max: int = _MIB  # answers a client has not taken, before its requests are no longer read
    idle_ms_max: int = 600_000  # connections.max.idle.ms

    def __post_init__(self) -> None:
        assert self.request_bytes_max > 0, self
        assert self.requests_open_max > 0, self
        assert self.unsent_bytes_max > 0, self
        assert self.idle_ms_max > 0, self


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """For all connections together."""

    connections_max: int = 2**31 - 1  # max.connections
    connections_per_host_max: int = 2**31 - 1  # max.connections.per.ip
    connections_per_host: Mapping[str, int] = field(default_factory=dict)  # max.connections.per.ip.overrides
    connections_per_second_max: int = 2**31 - 1  # max.connection.creation.rate
    held_bytes_max: int = 256 * _MIB  # queued.max.request.bytes
    stalled_ms_max: int = 10_000  # a half-sent request may stand still for this long while memory is short

    def __post_init__(self) -> None:
        assert self.held_bytes_max > 0, self
        assert self.stalled_ms_max > 0, self
        assert self.connections_per_second_max > 0, self
