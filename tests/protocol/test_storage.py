"""Stored messages carry their version before them; test_golden holds their bytes to Kafka's."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.static.constants import EntityType

from barnabas.base.buffers import join_buffers
from barnabas.protocol.errors import DecodeError, ProtocolError, UnsupportedVersion
from barnabas.protocol.storage.consumer_groups import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
)
from barnabas.protocol.storage.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from barnabas.protocol.storage.control import ControlRecordType, EndTxnMarker
from barnabas.protocol.storage.offsets import GroupMetadataKey, OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.storage.stored import Stored, stored_version
from barnabas.protocol.storage.transactions import TransactionLogKey, TransactionLogValue

from . import oracle
from .strategies import messages


def test_a_key_starts_with_the_number_of_its_kind() -> None:
    assert OffsetCommitKey(group="g", topic="t", partition=3).encode_versioned(1) == b"\0\1\0\1g\0\1t\0\0\0\3"
    assert GroupMetadataKey(group="g").encode_versioned(2) == b"\0\2\0\1g"
    assert ConsumerGroupMetadataKey(group_id="g").encode_versioned(3) == b"\0\3\0\1g"
    assert TransactionLogKey(transactional_id="x").encode_versioned(0) == b"\0\0\0\1x"


def test_a_transaction_marker_is_what_clients_expect() -> None:
    assert ControlRecordType(type=1).encode_versioned(0) == b"\0\0\0\1"  # commit
    assert EndTxnMarker(coordinator_epoch=7).encode_versioned(0) == b"\0\0\0\0\0\7"


def test_a_value_comes_back_in_the_version_it_was_written_in() -> None:
    value = OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9)
    for version in range(5):
        data = value.encode_versioned(version)
        assert stored_version(data) == version
        assert OffsetCommitValue.decode_versioned(data) == value


def test_a_tagged_struct_that_may_be_null_has_a_marker_of_its_own() -> None:
    protocol = ClassicProtocol(name="range", metadata=b"\1\2")
    classic = ClassicMemberMetadata(session_timeout_ms=5, supported_protocols=[protocol])
    value = ConsumerGroupMemberMetadataValue(client_id="c", classic_member_metadata=classic)
    data = value.encode_versioned(0)
    assert b"\1\0\x11\1\0\0\0\5\2\6range\3\1\2\0\0" in data
    assert ConsumerGroupMemberMetadataValue.decode_versioned(data) == value


def test_previous_producer_ids_need_the_flexible_version() -> None:
    value = TransactionLogValue(producer_id=1, previous_producer_id=0)
    assert TransactionLogValue.decode_versioned(value.encode_versioned(1)) == value
    with pytest.raises(ProtocolError, match="previous_producer_id is not in this version"):
        value.encode_versioned(0)


class TestNewerVersions:
    def test_a_newer_subscription_is_read_as_our_newest(self) -> None:
        ours = ConsumerProtocolSubscription(topics=["t"], generation_id=4, rack_id="r")
        newer = b"\0\x09" + ours.encode_versioned(3)[2:] + b"more fields"
        assert ConsumerProtocolSubscription.decode_versioned(newer) == ours

    def test_a_newer_stored_value_is_refused(self) -> None:
        with pytest.raises(UnsupportedVersion, match="OffsetCommitValue has versions 0-4, not 9"):
            OffsetCommitValue.decode_versioned(b"\0\x09" + bytes(50))

    def test_a_negative_version_is_refused(self) -> None:
        with pytest.raises(UnsupportedVersion, match="not -1"):
            ConsumerProtocolSubscription.decode_versioned(b"\xff\xff" + bytes(50))

    def test_bytes_too_few_for_a_version_are_refused(self) -> None:
        with pytest.raises(DecodeError, match="1 bytes hold no version"):
            OffsetCommitValue.decode_versioned(b"\0")


def test_an_assignment_of_an_old_member_has_no_rack() -> None:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic="t", partitions=[0, 1])]
    )
    data = b"\0\0\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\1\xff\xff\xff\xff"
    assert assignment.encode_versioned(0) == data
    assert ConsumerProtocolAssignment.decode_versioned(data) == assignment


_KIO: list[tuple[str, type[Stored]]] = [
    ("consumer_protocol_subscription", ConsumerProtocolSubscription),
    ("consumer_protocol_assignment", ConsumerProtocolAssignment),
    ("end_txn_marker", EndTxnMarker),
    ("control_record_type_schema", ControlRecordType),
]


@pytest.mark.parametrize(("name", "cls"), _KIO, ids=[name for name, _ in _KIO])
def test_what_kio_knows_is_byte_for_byte_kios(name: str, cls: type[Stored]) -> None:
    for version in oracle.known_versions(name):
        theirs = oracle.load(name, version, EntityType.data)
        check(cls, version, theirs, messages(cls, version, oracle.narrowed(cls, theirs)))


def check(cls: type[Stored], version: int, theirs: type[Any], strategy: st.SearchStrategy[Stored]) -> None:
    @settings(max_examples=10)
    @given(strategy)
    def agree(message: Stored) -> None:
        encoded = join_buffers(message.encode(version))
        assert encoded == oracle.write(oracle.to_kio(message, theirs))
        assert cls.decode(version, encoded) == message

    agree()
