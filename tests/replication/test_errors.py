"""barnabas.replication.errors: the reasons why a partition does not serve."""

import pytest

from barnabas.base.errors import BarnabasError
from barnabas.replication import errors
from barnabas.replication.errors import ReplicationError

REASONS = [getattr(errors, name) for name in errors.__all__ if name != "ReplicationError"]


def test_the_root_is_one_of_ours() -> None:
    assert issubclass(ReplicationError, BarnabasError)


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_passes_once_the_cluster_has_settled(reason: type[ReplicationError]) -> None:
    assert issubclass(reason, ReplicationError)
    assert reason.retriable
    assert str(reason("why")) == "why"
