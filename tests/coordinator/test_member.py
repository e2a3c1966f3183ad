"""What a member is and when a missed heartbeat counts."""

from barnabas.coordinator.calls import JoinResult, SyncResult
from barnabas.coordinator.member import Member, protocol_table


def member(**protocols: bytes) -> Member:
    return Member(
        "m",
        instance_id=None,
        client_id="c",
        client_host="h",
        session_timeout_ms=1,
        rebalance_timeout_ms=2,
        protocols=protocols,
    )


def ignore(result: JoinResult | SyncResult) -> None:
    pass


def test_of_a_protocol_named_twice_the_first_counts() -> None:
    assert protocol_table([("a", b"1"), ("b", b"2"), ("a", b"3")]) == {"a": b"1", "b": b"2"}


def test_metadata_is_copied_out_of_the_request_buffer() -> None:
    buffer = bytearray(b"topics")
    table = protocol_table([("range", memoryview(buffer))])
    buffer[:] = b"XXXXXX"
    assert table == {"range": b"topics"}


def test_the_order_of_protocols_is_part_of_what_a_member_says() -> None:
    assert member(a=b"1", b=b"2").lists([("a", b"1"), ("b", b"2")])
    assert not member(a=b"1", b=b"2").lists([("b", b"2"), ("a", b"1")])
    assert not member(a=b"1").lists([("a", b"2")])


def test_a_member_votes_for_the_first_of_its_protocols_that_all_have() -> None:
    assert member(a=b"", b=b"", c=b"").vote({"c", "b"}) == "b"


def test_a_member_that_waits_for_us_is_excused_from_heartbeats() -> None:
    assert not member(a=b"").is_excused
    for_sync, for_join = member(a=b""), member(a=b"")
    for_sync.awaiting_sync = ignore
    for_join.awaiting_join = ignore
    assert for_sync.is_excused
    assert for_join.is_excused


def test_a_newcomer_is_not_excused_while_it_waits_for_its_first_generation() -> None:
    newcomer = member(a=b"")
    newcomer.is_new, newcomer.awaiting_join = True, ignore
    assert not newcomer.is_excused
