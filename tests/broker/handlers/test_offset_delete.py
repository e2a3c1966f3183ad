"""barnabas.broker.handlers.offset_delete: offsets forgotten on request."""

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tests.broker._groups import Member, commit, committed
from tests.broker._wire import WireClient


def delete(client: WireClient, group: str, *partitions: tuple[str, int]) -> tuple[int, list[int]]:
    """The group's code and the partitions'."""
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
            )
            for topic, index in partitions
        ],
    )
    response = client.call(request, 0, OffsetDeleteResponse)
    return response.error_code, [part.error_code for topic in response.topics for part in topic.partitions]


def test_a_deleted_offset_is_gone(client: WireClient, group: str, topic: str) -> None:
    commit(client, group, topic, 5)
    assert delete(client, group, (topic, 0)) == (0, [0])
    assert committed(client, group, topic)[0] == -1


def test_an_unknown_partition_is_told_for_itself(client: WireClient, group: str, topic: str) -> None:
    commit(client, group, topic, 5)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(client, group, (topic, 9), (topic, 0), ("nowhere", 0)) == (0, [unknown, 0, unknown])


def test_an_unknown_group_is_told_at_the_top(client: WireClient, group: str, topic: str) -> None:
    assert delete(client, f"{group}-x", (topic, 0)) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


def test_a_group_without_an_id_is_refused(client: WireClient, group: str, topic: str) -> None:
    assert delete(client, "", (topic, 0)) == (ErrorCode.INVALID_GROUP_ID, [])


def test_a_live_group_keeps_what_its_members_may_read(client: WireClient, group: str, topic: str) -> None:
    # The subscription of this member cannot be read, so it may be to anything.
    commit(client, group, topic, 5)
    Member(client, group).start()
    assert delete(client, group, (topic, 0)) == (0, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC])
    assert committed(client, group, topic)[0] == 5
