"""Records have Kafka's bytes, and every version of them is read."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.types import TopicPartition
from barnabas.coordinator.group_records import (
    CorruptGroupRecord,
    GroupKey,
    OffsetKey,
    can_be_stored,
    decode_group,
    decode_key,
    decode_offset,
    group_record,
    group_tombstone,
    offset_record,
    offset_tombstone,
    subscribed_topics,
)
from barnabas.coordinator.offsets import CommittedOffset
from barnabas.protocol.storage.offsets import GroupMetadataValue, MemberMetadata
from tests.coordinator._fakes import World, subscription

P3 = TopicPartition("t", 3)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


class TestBytesOnDisk:
    def test_of_an_offset(self) -> None:
        record = offset_record("g", P3, CommittedOffset(42, 7, "note", 1_000, -1, sequence=0))
        assert record.key == struct.pack(">h", 1) + text("g") + text("t") + struct.pack(">i", 3)
        assert record.value == struct.pack(">hqi", 3, 42, 7) + text("note") + struct.pack(">q", 1_000)

    def test_of_an_offset_with_its_own_expiry(self) -> None:
        record = offset_record("g", P3, CommittedOffset(42, 7, "", 1_000, 2_000, sequence=0))
        assert record.value == struct.pack(">hq", 1, 42) + text("") + struct.pack(">qq", 1_000, 2_000)

    def test_of_a_group(self) -> None:
        world = World().own_all()
        world.join(instance_id="box", client_id="app", protocols=[("range", b"sub")])
        world.timers.advance(0)
        group = world.group()
        record = group_record(group, {"box-id1": b"mine"})
        assert record.key == struct.pack(">h", 2) + text("g")
        assert record.value == (
            struct.pack(">h", 3)
            + text("consumer")
            + struct.pack(">i", 1)
            + text("range")
            + text("box-id1")
            + struct.pack(">qi", world.clock.now_ms(), 1)
            + text("box-id1")
            + text("box")
            + text("app")
            + text("/127.0.0.1")
            + struct.pack(">ii", 60_000, 10_000)
            + struct.pack(">i", 3)
            + b"sub"
            + struct.pack(">i", 4)
            + b"mine"
        )

    def test_of_tombstones(self) -> None:
        assert offset_tombstone("g", P3).value is None
        assert decode_key(offset_tombstone("g", P3).key) == OffsetKey("g", P3)
        assert group_tombstone("g") == (struct.pack(">h", 2) + text("g"), None)


class TestReading:
    @pytest.mark.parametrize("version", [0, 1])
    def test_both_kinds_of_offset_key(self, version: int) -> None:
        key = struct.pack(">h", version) + text("g") + text("t") + struct.pack(">i", 3)
        assert decode_key(key) == OffsetKey("g", P3)

    def test_a_group_key(self) -> None:
        assert decode_key(group_tombstone("g").key) == GroupKey("g")

    @pytest.mark.parametrize("kind", [3, 8, 15, 99, -1])
    def test_keys_of_other_kinds_are_passed_over(self, kind: int) -> None:
        assert decode_key(struct.pack(">h", kind) + text("g")) is None

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (struct.pack(">hq", 0, 9) + text("m") + struct.pack(">q", 5), (9, -1, "m", 5, -1)),
            (struct.pack(">hq", 1, 9) + text("m") + struct.pack(">qq", 5, 6), (9, -1, "m", 5, 6)),
            (struct.pack(">hq", 2, 9) + text("m") + struct.pack(">q", 5), (9, -1, "m", 5, -1)),
            (struct.pack(">hqi", 3, 9, 2) + text("m") + struct.pack(">q", 5), (9, 2, "m", 5, -1)),
            (struct.pack(">hqi", 4, 9, 2) + b"\x02m" + struct.pack(">q", 5) + b"\0", (9, 2, "m", 5, -1)),
        ],
    )
    def test_every_version_of_an_offset(self, value: bytes, expected: tuple[int, int, str, int, int]) -> None:
        assert decode_offset(value, sequence=8) == CommittedOffset(*expected, sequence=8)

    @pytest.mark.parametrize("version", range(5))
    def test_every_version_of_a_group(self, version: int) -> None:
        value = GroupMetadataValue(
            protocol_type="consumer",
            generation=4,
            protocol="range",
            leader="m",
            current_state_timestamp=99,
            members=[
                MemberMetadata(
                    member_id="m",
                    group_instance_id="i",
                    client_id="c",
                    client_host="h",
                    rebalance_timeout=2,
                    session_timeout=1,
                    subscription=b"s",
                    assignment=b"a",
                )
            ],
        )
        stored = decode_group(value.encode_versioned(version))
        assert (stored.protocol_type, stored.protocol_name, stored.generation_id) == ("consumer", "range", 4)
        assert stored.leader_id == "m"
        assert stored.state_since_ms == (99 if version >= 2 else None)
        [member] = stored.members
        assert (member.client_id, member.client_host, member.session_timeout_ms) == ("c", "h", 1)
        assert member.rebalance_timeout_ms == (2 if version >= 1 else 1)
        assert member.instance_id == ("i" if version >= 3 else None)
        assert (member.protocols, member.assignment) == ({"range": b"s"}, b"a")

    def test_what_is_kept_does_not_hang_on_the_read_buffer(self) -> None:
        world = World().own_all()
        world.stable(1)
        [member] = world.group().roster
        record = group_record(world.group(), {member.member_id: b"mine"})
        assert record.value is not None
        buffer = bytearray(record.value)
        stored = decode_group(memoryview(buffer))
        buffer[:] = bytes(len(buffer))
        assert stored.members[0].assignment == b"mine"


class TestCorruptRecords:
    @pytest.mark.parametrize("key", [b"", b"\0", b"\0\1", b"\0\1\0\5g", b"\0\2\0\1"])
    def test_a_cut_key_is_corrupt(self, key: bytes) -> None:
        with pytest.raises(CorruptGroupRecord, match="a key of __consumer_offsets cannot be read"):
            decode_key(key)

    @pytest.mark.parametrize("value", [b"", b"\0\3\0", struct.pack(">h", 99)])
    def test_a_cut_or_unknown_value_is_corrupt(self, value: bytes) -> None:
        with pytest.raises(CorruptGroupRecord, match="a committed offset cannot be read"):
            decode_offset(value, 0)
        with pytest.raises(CorruptGroupRecord, match="a group's metadata cannot be read"):
            decode_group(value)

    def test_members_without_a_protocol_are_corrupt(self) -> None:
        value = GroupMetadataValue(protocol=None, members=[MemberMetadata(member_id="m")])
        with pytest.raises(CorruptGroupRecord, match="a group has members but no protocol"):
            decode_group(value.encode_versioned(3))

    @given(st.binary(max_size=60))
    def test_rubbish_gives_this_error_and_no_other(self, rubbish: bytes) -> None:
        for read in (decode_key, decode_group, lambda value: decode_offset(value, 0)):
            try:
                read(rubbish)
            except CorruptGroupRecord:
                continue


class TestSubscribedTopics:
    def test_are_read_from_any_version_by_its_first_fields(self) -> None:
        newer = struct.pack(">h", 77) + subscription("a", "b")[2:] + b"fields to come"
        assert subscribed_topics([newer, subscription("c")]) == frozenset("abc")

    def test_are_unknown_for_other_bytes(self) -> None:
        assert subscribed_topics([subscription("a"), b"\1"]) is None


def test_text_fits_into_a_record_up_to_its_length_in_bytes() -> None:
    assert can_be_stored("x" * 32_703)
    assert not can_be_stored("x" * 32_704)
    assert not can_be_stored("é" * 16_352)
