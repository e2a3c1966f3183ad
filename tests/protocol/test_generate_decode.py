"""What generated decoders do with good bytes; test_hostile_bytes has the others."""

import pytest

from barnabas.base.buffers import join_buffers
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.generate_decode import decoder_source
from barnabas.protocol.messages.api_versions import ApiVersionsResponse, SupportedFeatureKey
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def produce(records: bytes) -> ProduceRequest:
    partition = PartitionProduceData(index=1, records=records)
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[partition])])


class TestBulkFields:
    def test_records_are_a_view_of_the_input(self) -> None:
        data = bytearray(join_buffers(produce(b"one batch").encode(9)))
        records = ProduceRequest.decode(9, memoryview(data)).topic_data[0].partition_data[0].records
        assert records is not None
        assert bytes(records) == b"one batch"
        data[data.index(b"one")] = ord("O")
        assert bytes(records) == b"One batch"

    def test_a_view_of_writable_input_is_writable(self) -> None:
        data = bytearray(join_buffers(produce(b"batch").encode(3)))
        records = ProduceRequest.decode(3, data).topic_data[0].partition_data[0].records
        assert records is not None
        records[0] = ord("B")
        assert b"Batch" in data

    def test_null_records_are_none(self) -> None:
        data = bytes(4) + bytes(4) + b"\0\0\0\1\0\1t\0\0\0\1" + bytes(4 + 2 + 8) + b"\xff\xff\xff\xff"
        assert FetchResponse.decode(1, data[4:]).responses[0].partitions[0].records is None


class TestFieldsOfOtherVersions:
    def test_an_absent_field_holds_its_default(self) -> None:
        request = MetadataRequest.decode(1, b"\0\0\0\0")
        assert request.allow_auto_topic_creation
        assert request.topics == []

    def test_null_and_empty_lists_differ(self) -> None:
        assert MetadataRequest.decode(1, b"\xff\xff\xff\xff").topics is None
        assert MetadataRequest.decode(9, b"\0\0\0\0\0").topics is None
        assert MetadataRequest.decode(9, b"\1\0\0\0\0").topics == []


class TestTagSections:
    def test_an_unknown_tag_is_stepped_over(self) -> None:
        plain = join_buffers(HeartbeatResponse(error_code=27).encode(4))
        assert HeartbeatResponse.decode(4, plain[:-1] + b"\1\x63\2xy") == HeartbeatResponse(error_code=27)

    def test_an_unknown_tag_beside_known_ones_is_stepped_over(self) -> None:
        known = ApiVersionsResponse(supported_features=[SupportedFeatureKey(name="f", max_version=2)])
        data = join_buffers(known.encode(3))
        position = data.index(b"\1\0", 7)
        assert (
            ApiVersionsResponse.decode(3, data[:position] + b"\2" + data[position + 1 :] + b"\x63\2xy")
            == known
        )

    def test_a_tag_that_does_not_fill_its_size_is_refused(self) -> None:
        with pytest.raises(DecodeError, match="tag 1 ends at byte 18, not 19"):
            ApiVersionsResponse.decode(3, b"\0\0\1\0\0\0\0" + b"\1\1\x09" + bytes(9))

    def test_the_last_of_two_equal_tags_counts(self) -> None:
        data = b"\0\0\1\0\0\0\0" + b"\2" + b"\1\x08" + bytes(7) + b"\5" + b"\1\x08" + bytes(7) + b"\6"
        assert ApiVersionsResponse.decode(3, data).finalized_features_epoch == 6


class TestLongValues:
    def test_strings_and_arrays_above_127_use_long_varints(self) -> None:
        topics = [MetadataRequestTopic(name=f"{n}" * 200) for n in range(300)]
        request = MetadataRequest(topics=topics)
        assert MetadataRequest.decode(9, join_buffers(request.encode(9))) == request

    @pytest.mark.parametrize("count", [0, 1, 64, 65, 1000])
    def test_number_arrays_of_any_length_come_back(self, count: int) -> None:
        request = ListTransactionsRequest(producer_id_filters=list(range(count)))
        assert ListTransactionsRequest.decode(0, join_buffers(request.encode(0))) == request


def test_bytes_after_the_message_are_ignored_as_kafka_does() -> None:
    assert HeartbeatResponse.decode(0, b"\0\x1bmore") == HeartbeatResponse(error_code=27)


def test_fixed_width_neighbours_are_read_in_one_step() -> None:
    text = decoder_source(FetchRequest, 12).text()
    partition = next(line for line in text.splitlines() if "fetch_offset" in line)
    assert partition.count(",") == 7  # six fields, the tag count, two arguments
    assert text.count("unpack_") == 2
