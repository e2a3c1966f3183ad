"""What generated encoders do with messages."""

import os
from pathlib import Path

import pytest

from barnabas.base.buffers import FileSlice, SharedFile, join_buffers
from barnabas.protocol.errors import EncodeError, ProtocolError
from barnabas.protocol.generate_encode import BULK_BYTES, encoder_source
from barnabas.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from barnabas.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest


def fetched(*partitions: PartitionData) -> FetchResponse:
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=list(partitions))])


class TestBulkIsNotCopied:
    @pytest.mark.parametrize("version", [4, 12])
    def test_large_records_are_the_very_buffer_that_was_given(self, version: int) -> None:
        records = b"r" * BULK_BYTES
        buffers = fetched(PartitionData(records=records), PartitionData(records=records)).encode(version)
        assert [buffer is records for buffer in buffers] == [False, True, False, True] + [False] * (
            version > 4
        )

    def test_small_records_join_what_is_around_them(self) -> None:
        assert len(fetched(PartitionData(records=b"small"), PartitionData(records=b"too")).encode(12)) == 1

    def test_a_list_of_buffers_is_one_field(self) -> None:
        big = memoryview(bytearray(BULK_BYTES))
        message = fetched(PartitionData(records=[b"ab", big, b"c"]))
        data = join_buffers(message.encode(12))
        assert any(buffer is big for buffer in message.encode(12))
        records = FetchResponse.decode(12, data).responses[0].partitions[0].records
        assert bytes(records or b"") == b"ab" + bytes(BULK_BYTES) + b"c"

    def test_an_empty_buffer_adds_nothing(self) -> None:
        assert len(fetched(PartitionData(records=[b""]), PartitionData(records=b"")).encode(12)) == 1

    def test_null_records_are_length_minus_one(self) -> None:
        assert join_buffers(fetched(PartitionData(records=None)).encode(1)).endswith(b"\xff\xff\xff\xff")


class TestFileSlices:
    def test_a_file_slice_of_any_size_stays_one(self, tmp_path: Path) -> None:
        path = tmp_path / "segment"
        path.write_bytes(b"0123456789")
        slice_ = FileSlice(SharedFile(os.open(path, os.O_RDONLY), str(path)), 2, 5)
        buffers = fetched(PartitionData(records=slice_)).encode(12)
        assert slice_ in buffers
        records = FetchResponse.decode(12, join_buffers(buffers)).responses[0].partitions[0].records
        assert bytes(records or b"") == b"23456"


class TestValuesThatAVersionCannotCarry:
    def test_a_set_field_that_the_version_lacks_is_refused(self) -> None:
        with pytest.raises(
            EncodeError, match=r"^HeartbeatRequest v2 group_instance_id is not in this version and"
        ):
            HeartbeatRequest(group_id="g", group_instance_id="i").encode(2)

    def test_an_ignorable_one_is_dropped(self) -> None:
        assert FetchRequest(rack_id="r").encode(10) == FetchRequest().encode(10)

    def test_a_default_is_not_refused(self) -> None:
        assert join_buffers(HeartbeatRequest(group_id="g").encode(0)) == b"\0\1g\0\0\0\0\0\0"

    def test_null_where_none_is_allowed_is_refused(self) -> None:
        with pytest.raises(ProtocolError, match="MetadataRequest v0"):
            MetadataRequest(topics=None).encode(0)
        with pytest.raises(ProtocolError, match="JoinGroupResponse v6"):
            JoinGroupResponse(protocol_name=None).encode(6)

    def test_a_number_that_does_not_fit_is_refused(self) -> None:
        with pytest.raises(ProtocolError, match="HeartbeatRequest v0"):
            HeartbeatRequest(generation_id=2**31).encode(0)

    def test_a_string_beyond_int16_is_refused_in_old_versions_only(self) -> None:
        request = HeartbeatRequest(group_id="g" * 40_000)
        with pytest.raises(ProtocolError, match="HeartbeatRequest v3"):
            request.encode(3)
        assert HeartbeatRequest.decode(4, join_buffers(request.encode(4))) == request

    def test_half_a_surrogate_pair_is_refused(self) -> None:
        with pytest.raises(ProtocolError, match="surrogates"):
            HeartbeatRequest(group_id="\ud800").encode(0)

    def test_an_id_of_the_wrong_length_is_refused(self) -> None:
        topic = MetadataRequestTopic(topic_id=b"short")
        with pytest.raises(EncodeError, match="MetadataRequest v12 topics topic_id is 5 bytes instead of 16"):
            MetadataRequest(topics=[topic]).encode(12)


class TestTagSections:
    def test_a_default_struct_is_left_out_like_none(self) -> None:
        plain = fetched(PartitionData()).encode(12)
        assert fetched(PartitionData(current_leader=LeaderIdAndEpoch())).encode(12) == plain

    def test_tags_leave_in_rising_order(self) -> None:
        leader = LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
        epoch = EpochEndOffset(epoch=3, end_offset=4)
        data = join_buffers(fetched(PartitionData(current_leader=leader, diverging_epoch=epoch)).encode(12))
        assert data.endswith(b"\2\0\x0d\0\0\0\3" + bytes(7) + b"\4\0" + b"\1\x09\0\0\0\1\0\0\0\2\0" + b"\0\0")


def test_a_nullable_struct_starts_with_a_marker() -> None:
    absent = join_buffers(DescribeTopicPartitionsRequest(response_partition_limit=1).encode(0))
    assert absent == b"\1\0\0\0\1\xff\0"
    cursor = Cursor(topic_name="t", partition_index=2)
    present = join_buffers(
        DescribeTopicPartitionsRequest(response_partition_limit=1, cursor=cursor).encode(0)
    )
    assert present == b"\1\0\0\0\1\1\2t\0\0\0\2\0\0"


def test_small_bytes_of_any_kind_are_taken() -> None:
    for value in (b"ab", bytearray(b"ab"), memoryview(b"ab")):
        assert join_buffers(SaslAuthenticateRequest(auth_bytes=value).encode(2)) == b"\3ab\0"


def test_a_head_goes_before_the_body_in_the_first_buffer() -> None:
    first = FetchRequest.encoder(12)(FetchRequest(), b"head")[0]
    assert isinstance(first, bytearray)
    assert first.startswith(b"head")


def test_elements_of_fixed_width_are_packed_by_one_call_each() -> None:
    assert "for e" in (text := encoder_source(FetchRequest, 12).text())
    assert sum("fetch_offset" in line for line in text.splitlines()) == 1
