"""Internal topics as JSON, as Apache Kafka's tool shows them."""

from barnabas.base.types import uuid_from_text
from barnabas.log.dump_decoders import decode_offsets, decode_text, decode_transactions
from barnabas.protocol.storage.consumer_groups import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from barnabas.protocol.storage.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from barnabas.protocol.storage.offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.storage.transactions import PartitionsSchema, TransactionLogKey, TransactionLogValue
from barnabas.records.record import Record


def record(key: bytes | None, value: bytes | None) -> Record:
    return Record(17, 0, key, value, ())


def member(subscription: bytes, assignment: bytes) -> bytes:
    return GroupMetadataValue(
        protocol_type="consumer",
        generation=10,
        protocol="range",
        leader="m",
        members=[
            MemberMetadata(
                member_id="m",
                client_id="c",
                client_host="h",
                rebalance_timeout=1000,
                session_timeout=100,
                subscription=subscription,
                assignment=assignment,
            )
        ],
    ).encode_versioned(3)


class TestOffsets:
    def test_a_committed_offset(self) -> None:
        key = OffsetCommitKey(group="g", topic="t", partition=3).encode_versioned(1)
        value = OffsetCommitValue(
            offset=42, leader_epoch=5, metadata="m", commit_timestamp=1
        ).encode_versioned(3)
        assert decode_offsets(record(key, value)) == (
            '{"type":"1","data":{"group":"g","topic":"t","partition":3}}',
            '{"version":"3","data":{"offset":42,"leaderEpoch":5,"metadata":"m","commitTimestamp":1}}',
        )

    def test_a_tombstone(self) -> None:
        key = OffsetCommitKey(group="g", topic="t", partition=3).encode_versioned(1)
        assert decode_offsets(record(key, None))[1] == "<DELETE>"

    def test_a_group_with_its_members_opened(self) -> None:
        subscription = ConsumerProtocolSubscription(topics=["t"]).encode_versioned(0)
        assignment = ConsumerProtocolAssignment(assigned_partitions=[]).encode_versioned(0)
        key = GroupMetadataKey(group="g").encode_versioned(2)
        shown = decode_offsets(record(key, member(subscription, assignment)))
        assert shown[0] == '{"type":"2","data":{"group":"g"}}'
        assert shown[1] is not None
        assert '"subscription":{"topics":["t"],"userData":null}' in shown[1]
        assert '"assignment":{"assignedPartitions":[],"userData":null}' in shown[1]

    def test_members_of_other_clients_stay_base64(self) -> None:
        key = GroupMetadataKey(group="g").encode_versioned(2)
        shown = decode_offsets(record(key, member(b"Subscription", b"Assignment")))[1] or ""
        assert '"subscription":"U3Vic2NyaXB0aW9u","assignment":"QXNzaWdubWVudA=="' in shown

    def test_a_group_of_the_newer_protocol(self) -> None:
        key = ConsumerGroupMetadataKey(group_id="g").encode_versioned(3)
        value = ConsumerGroupMetadataValue(epoch=10).encode_versioned(0)
        assert decode_offsets(record(key, value)) == (
            '{"type":"3","data":{"groupId":"g"}}',
            '{"version":"0","data":{"epoch":10}}',
        )

    def test_topic_ids_are_text(self) -> None:
        topic_id = uuid_from_text("Uj5wn_FqTXirEASvVZRY1w")
        key = ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id="m").encode_versioned(7)
        value = ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[TopicPartition(topic_id=topic_id, partitions=[1, 2])]
        ).encode_versioned(0)
        assert (
            decode_offsets(record(key, value))[1] == '{"version":"0","data":{"topicPartitions":'
            '[{"topicId":"Uj5wn_FqTXirEASvVZRY1w","partitions":[1,2]}]}}'
        )

    def test_kinds_we_do_not_know_are_named(self) -> None:
        assert decode_offsets(record(b"\x00\x63", b"")) == (
            "Unknown record type 99 at offset 17, skipping.",
            None,
        )

    def test_bad_bytes_are_a_sentence(self) -> None:
        for key, value in ((b"", b""), (b"\x00\x01\x00", b""), (None, b"")):
            shown, nothing = decode_offsets(record(key, value))
            assert (shown or "").startswith("Error at offset 17, skipping.")
            assert nothing is None


def test_a_transaction() -> None:
    key = TransactionLogKey(transactional_id="tx").encode_versioned(0)
    value = TransactionLogValue(
        producer_id=9,
        producer_epoch=1,
        transaction_timeout_ms=60,
        transaction_status=1,
        transaction_partitions=[PartitionsSchema(topic="t", partition_ids=[0, 1])],
        transaction_last_update_timestamp_ms=5,
        transaction_start_timestamp_ms=4,
    ).encode_versioned(0)
    assert decode_transactions(record(key, value)) == (
        '{"type":"0","data":{"transactionalId":"tx"}}',
        '{"version":"0","data":{"producerId":9,"producerEpoch":1,"transactionTimeoutMs":60,'
        '"transactionStatus":1,"transactionPartitions":[{"topic":"t","partitionIds":[0,1]}],'
        '"transactionLastUpdateTimestampMs":5,"transactionStartTimestampMs":4}}',
    )


def test_text_that_is_not_utf8_is_marked() -> None:
    assert decode_text(record(b"k\xff", None)) == ("k�", None)
