"""Defaults of the calls and results that handlers rely on."""

from barnabas.base.types import TopicPartition
from barnabas.coordinator.calls import FetchedOffset, JoinResult, SyncResult
from barnabas.protocol.codes import ErrorCode


def test_a_failed_join_has_no_generation_protocol_leader_or_members() -> None:
    failed = JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, "m")
    assert (failed.generation_id, failed.protocol_type, failed.protocol_name) == (-1, None, None)
    assert (failed.leader_id, failed.skip_assignment, list(failed.members)) == ("", False, [])


def test_a_failed_sync_assigns_nothing() -> None:
    assert SyncResult(ErrorCode.ILLEGAL_GENERATION).assignment == b""


def test_a_partition_without_commit_answers_offset_minus_one_without_error() -> None:
    partition = TopicPartition("t", 1)
    assert FetchedOffset(partition) == (partition, -1, -1, "", ErrorCode.NONE)
