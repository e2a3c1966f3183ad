"""Which wire code each error of ours becomes.  The one table; a test holds every error class to it."""

from barnabas.base.errors import BarnabasError, ConfigFault, StorageFault
from barnabas.broker.topics import TooManyPartitions
from barnabas.controller import changes
from barnabas.controller.features import InvalidFeatureLevel
from barnabas.log import errors as log_errors
from barnabas.metadata.names import InvalidTopicName
from barnabas.metadata.placement import InvalidPartitionCount, InvalidReplicationFactor
from barnabas.protocol.codes import ErrorCode
from barnabas.records import errors as record_errors
from barnabas.replication import errors as replication_errors

__all__ = ["CODES", "code_of"]

CODES: dict[type[BarnabasError], ErrorCode] = {
    ConfigFault: ErrorCode.INVALID_CONFIG,
    changes.TopicExists: ErrorCode.TOPIC_ALREADY_EXISTS,
    changes.UnknownTopic: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    changes.InvalidPartitions: ErrorCode.INVALID_PARTITIONS,
    changes.InvalidAssignment: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    InvalidFeatureLevel: ErrorCode.INVALID_UPDATE_VERSION,
    changes.CommandRefused: ErrorCode.INVALID_REQUEST,
    TooManyPartitions: ErrorCode.POLICY_VIOLATION,
    StorageFault: ErrorCode.KAFKA_STORAGE_ERROR,
    InvalidTopicName: ErrorCode.INVALID_TOPIC_EXCEPTION,
    InvalidPartitionCount: ErrorCode.INVALID_PARTITIONS,
    InvalidReplicationFactor: ErrorCode.INVALID_REPLICATION_FACTOR,
    record_errors.RecordError: ErrorCode.CORRUPT_MESSAGE,
    record_errors.CorruptBatch: ErrorCode.CORRUPT_MESSAGE,
    record_errors.InvalidRecord: ErrorCode.INVALID_RECORD,
    record_errors.UnsupportedCodec: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    record_errors.TooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    log_errors.RecordTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    log_errors.InvalidTimestamp: ErrorCode.INVALID_TIMESTAMP,
    log_errors.OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    log_errors.InvalidProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
    log_errors.InvalidTransactionState: ErrorCode.INVALID_TXN_STATE,
    log_errors.CoordinatorFenced: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    log_errors.UnexpectedOffset: ErrorCode.UNKNOWN_SERVER_ERROR,
    log_errors.OffsetsKept: ErrorCode.POLICY_VIOLATION,
    log_errors.PositionMismatch: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    log_errors.AppendRefused: ErrorCode.INVALID_RECORD,
    log_errors.OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    log_errors.DiskFault: ErrorCode.KAFKA_STORAGE_ERROR,
    log_errors.DiskFull: ErrorCode.KAFKA_STORAGE_ERROR,
    log_errors.CorruptSegment: ErrorCode.KAFKA_STORAGE_ERROR,
    log_errors.CorruptIndex: ErrorCode.KAFKA_STORAGE_ERROR,
    log_errors.CorruptSnapshot: ErrorCode.KAFKA_STORAGE_ERROR,
    log_errors.CorruptCheckpoint: ErrorCode.KAFKA_STORAGE_ERROR,
    log_errors.FolderInUse: ErrorCode.KAFKA_STORAGE_ERROR,
    log_errors.FolderMismatch: ErrorCode.INCONSISTENT_TOPIC_ID,
    log_errors.PartitionOffline: ErrorCode.KAFKA_STORAGE_ERROR,
    replication_errors.ReplicationError: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    replication_errors.NotLeader: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    replication_errors.FencedLeaderEpoch: ErrorCode.FENCED_LEADER_EPOCH,
    replication_errors.UnknownLeaderEpoch: ErrorCode.UNKNOWN_LEADER_EPOCH,
    replication_errors.NotEnoughReplicas: ErrorCode.NOT_ENOUGH_REPLICAS,
    replication_errors.OffsetNotAvailable: ErrorCode.OFFSET_NOT_AVAILABLE,
}


def code_of(error: BarnabasError) -> ErrorCode:
    """The code of the error's class, or of the nearest class above it that has one."""
    for kind in type(error).__mro__:
        if code := CODES.get(kind):
            return code
    return ErrorCode.UNKNOWN_SERVER_ERROR
