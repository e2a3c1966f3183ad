"""Why a partition does not serve a request; the broker maps each class to its wire code."""

from barnabas.base.errors import BarnabasError

__all__ = [
    "FencedLeaderEpoch",
    "NotEnoughReplicas",
    "NotLeader",
    "OffsetNotAvailable",
    "ReplicationError",
    "UnknownLeaderEpoch",
]


class ReplicationError(BarnabasError):
    """Root of the reasons; each passes once the cluster has settled."""

    retriable = True


class NotLeader(ReplicationError):
    """This broker does not lead the partition; its metadata is old."""


class FencedLeaderEpoch(ReplicationError):
    """The caller knows an older leader epoch than we do."""


class UnknownLeaderEpoch(ReplicationError):
    """The caller knows a newer leader epoch than we do; we will hear of it."""


class NotEnoughReplicas(ReplicationError):
    """Fewer replicas are in sync than min.insync.replicas asks for; nothing was appended."""


class OffsetNotAvailable(ReplicationError):
    """A new leader's high watermark has not yet reached the start of its epoch."""
