"""Records of `__transaction_state`: transactional ids to bytes and back, in Kafka's own formats.

Key version 0; value version 0, or 1 once the feature transaction.version is 1 or above.  Both are read.
"""

from collections.abc import Iterable
from typing import Final

from barnabas.base.errors import StorageFault
from barnabas.base.types import TopicPartition
from barnabas.coordinator.ports import KeyValue
from barnabas.coordinator.txn_state import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER,
    Snapshot,
    TransactionState,
)
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.storage.stored import stored_version
from barnabas.protocol.storage.transactions import PartitionsSchema, TransactionLogKey, TransactionLogValue

__all__ = [
    "CorruptTransactionRecord",
    "can_be_stored",
    "decode_key",
    "decode_value",
    "transaction_record",
    "transaction_tombstone",
]

_KEY_VERSION: Final = 0
_TEXT_BYTES_MAX: Final = 2**15 - 1
_STORED_STATES: Final = frozenset(TransactionState) - {
    TransactionState.DEAD,
    TransactionState.PREPARE_EPOCH_FENCE,
}


class CorruptTransactionRecord(StorageFault):
    """A record of `__transaction_state` that is not what its version says."""


def can_be_stored(transactional_id: str) -> bool:
    """Whether the id fits into a record."""
    try:
        return len(transactional_id.encode()) <= _TEXT_BYTES_MAX
    except UnicodeEncodeError:
        return False


def transaction_record(transactional_id: str, snapshot: Snapshot, version: int) -> KeyValue:
    """`version` is the finalized level of transaction.version."""
    tagged = version >= 1 or snapshot.version >= 1
    value = TransactionLogValue(
        producer_id=snapshot.producer_id,
        producer_epoch=snapshot.producer_epoch,
        transaction_timeout_ms=snapshot.timeout_ms,
        transaction_status=snapshot.state,
        transaction_partitions=_grouped(snapshot),
        transaction_last_update_timestamp_ms=snapshot.updated_ms,
        transaction_start_timestamp_ms=snapshot.started_ms,
    )
    if tagged:
        value.previous_producer_id = snapshot.previous_producer_id
        value.next_producer_id = snapshot.next_producer_id
        value.client_transaction_version = snapshot.version
    return KeyValue(_key(transactional_id), value.encode_versioned(1 if tagged else 0))


def transaction_tombstone(transactional_id: str) -> KeyValue:
    return KeyValue(_key(transactional_id), None)


def decode_key(key: bytes | memoryview) -> str | None:
    """The transactional id; None for a kind of record that a newer Kafka wrote.

    Raises CorruptTransactionRecord.
    """
    try:
        if stored_version(key) != _KEY_VERSION:
            return None
        return TransactionLogKey.decode_versioned(key).transactional_id
    except ProtocolError as error:
        raise CorruptTransactionRecord(f"a key of __transaction_state cannot be read: {error}") from error


def decode_value(transactional_id: str, value: bytes | memoryview) -> Snapshot:
    """What is stored of the id.  Raises CorruptTransactionRecord."""
    try:
        stored = TransactionLogValue.decode_versioned(value)
        state = TransactionState(stored.transaction_status)
    except (ProtocolError, ValueError) as error:
        raise CorruptTransactionRecord(
            f"the record of {transactional_id!r} cannot be read: {error}"
        ) from error
    if state not in _STORED_STATES:
        raise CorruptTransactionRecord(f"the record of {transactional_id!r} is in state {state.text}")
    if stored.producer_id < 0 or not 0 <= stored.producer_epoch <= EPOCH_MAX:
        raise CorruptTransactionRecord(
            f"the record of {transactional_id!r} names producer {stored.producer_id}, "
            f"epoch {stored.producer_epoch}"
        )
    if not state.is_idle and stored.transaction_start_timestamp_ms < 0:
        raise CorruptTransactionRecord(f"the open transaction of {transactional_id!r} never began")
    partitions = () if state.is_idle else stored.transaction_partitions or ()
    return Snapshot(
        producer_id=stored.producer_id,
        producer_epoch=stored.producer_epoch,
        timeout_ms=stored.transaction_timeout_ms,
        state=state,
        partitions=frozenset(_flattened(partitions)),
        started_ms=stored.transaction_start_timestamp_ms,
        updated_ms=stored.transaction_last_update_timestamp_ms,
        last_epoch=NO_EPOCH,
        previous_producer_id=stored.previous_producer_id,
        next_producer_id=stored.next_producer_id if state.is_decided else NO_PRODUCER,
        version=stored.client_transaction_version,
    )


def _key(transactional_id: str) -> bytes:
    return TransactionLogKey(transactional_id=transactional_id).encode_versioned(_KEY_VERSION)


def _grouped(snapshot: Snapshot) -> list[PartitionsSchema] | None:
    if snapshot.state is TransactionState.EMPTY:
        return None
    topics: dict[str, PartitionsSchema] = {}
    for topic, partition in sorted(snapshot.partitions):
        topics.setdefault(topic, PartitionsSchema(topic=topic)).partition_ids.append(partition)
    return list(topics.values())


def _flattened(topics: Iterable[PartitionsSchema]) -> Iterable[TopicPartition]:
    return (TopicPartition(topic.topic, partition) for topic in topics for partition in topic.partition_ids)
