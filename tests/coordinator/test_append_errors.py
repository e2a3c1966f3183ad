"""Log errors reach clients as coordinator errors."""

import pytest

from barnabas.coordinator.append_errors import commit_error, group_error
from barnabas.protocol.codes import ErrorCode


@pytest.mark.parametrize("translate", [commit_error, group_error])
def test_a_lost_leadership_sends_the_client_to_look_for_the_coordinator(translate: object) -> None:
    assert callable(translate)
    assert translate(ErrorCode.NOT_LEADER_OR_FOLLOWER) is ErrorCode.NOT_COORDINATOR
    assert translate(ErrorCode.KAFKA_STORAGE_ERROR) is ErrorCode.NOT_COORDINATOR
    assert translate(ErrorCode.NOT_ENOUGH_REPLICAS) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert translate(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_sizes_mean_different_things_to_commits_and_groups() -> None:
    assert commit_error(ErrorCode.MESSAGE_TOO_LARGE) is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert group_error(ErrorCode.MESSAGE_TOO_LARGE) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_timeout_makes_members_join_again_and_committers_try_again() -> None:
    assert group_error(ErrorCode.REQUEST_TIMED_OUT) is ErrorCode.REBALANCE_IN_PROGRESS
    assert commit_error(ErrorCode.REQUEST_TIMED_OUT) is ErrorCode.REQUEST_TIMED_OUT


def test_success_stays_success() -> None:
    assert commit_error(ErrorCode.NONE) is ErrorCode.NONE
    assert group_error(ErrorCode.NONE) is ErrorCode.NONE
