"""What members tell each other, as bytes that other clients read."""

from barnabas.base.types import TopicPartition
from barnabas.client.assignors import ASSIGNORS
from barnabas.client.group_protocol import join_request, members_of, read_assignment, sync_request
from barnabas.client.offsets import GroupIdentity
from barnabas.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember

WHO = GroupIdentity("g", 4, "m1", "i1")
A = [TopicPartition("a", 0), TopicPartition("a", 2)]


def test_a_member_joins_with_a_subscription_per_assignor() -> None:
    request = join_request(
        WHO, ["b", "a"], A, ASSIGNORS.values(), session_ms=6000, rebalance_ms=60_000, rack="r1"
    )
    assert [protocol.name for protocol in request.protocols] == list(ASSIGNORS)
    assert (request.protocol_type, request.member_id, request.group_instance_id) == ("consumer", "m1", "i1")
    # version 3: topics, user data (null), owned partitions, generation, rack
    assert bytes(request.protocols[0].metadata) == bytes.fromhex(
        "0003 00000002 0001 61 0001 62 ffffffff00000001 0001 61 00000002 00000000 00000002 00000004 0002 7231"
    )


def test_what_was_told_is_what_the_leader_reads() -> None:
    request = join_request(
        WHO, ["a"], A, [ASSIGNORS["cooperative-sticky"]], session_ms=1, rebalance_ms=1, rack=None
    )
    joined = JoinGroupResponse(
        members=[JoinGroupResponseMember(member_id="m1", metadata=request.protocols[0].metadata)]
    )
    (member,) = members_of(joined)
    assert (member.member_id, member.topics, member.owned, member.generation) == (
        "m1",
        frozenset({"a"}),
        frozenset(A),
        4,
    )


def test_an_old_member_tells_no_more_than_its_topics() -> None:
    old = bytes.fromhex("0000 00000001 0001 61 00000002 6869")
    (member,) = members_of(JoinGroupResponse(members=[JoinGroupResponseMember(member_id="m", metadata=old)]))
    assert member.topics == {"a"}
    assert member.owned == set()
    assert (member.generation, member.user_data) == (-1, b"hi")


def test_a_member_that_sends_rubbish_reads_nothing() -> None:
    joined = JoinGroupResponse(members=[JoinGroupResponseMember(member_id="m", metadata=b"\x00\x01\xff")])
    assert members_of(joined)[0].topics == frozenset()


def test_an_assignment_survives_the_way_through_the_broker() -> None:
    request = sync_request(WHO, "range", {"m1": A, "m2": []})
    assert (request.protocol_type, request.protocol_name) == ("consumer", "range")
    assert [read_assignment(bytes(one.assignment)) for one in request.assignments] == [A, []]


def test_no_assignment_is_no_partitions() -> None:
    assert read_assignment(b"") == []
