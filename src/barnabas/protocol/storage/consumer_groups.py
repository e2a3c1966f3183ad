"""Records of `__consumer_offsets` for groups of the newer protocol (KIP-848).

The int16 before a key names its kind, 3 to 8 and 16; the one before a value is its version.
"""

from barnabas.base.types import Uuid
from barnabas.protocol.fields import (
    INT32,
    STRING,
    Bulk,
    array,
    binary,
    int8,
    int32,
    int64,
    string,
    struct,
    uuid,
)
from barnabas.protocol.schema import Struct, data
from barnabas.protocol.storage.stored import Stored


@data(versions="3")
class ConsumerGroupMetadataKey(Stored):
    group_id: str = string()


@data(versions="0", flexible="0+")
class ConsumerGroupMetadataValue(Stored):
    epoch: int = int32()
    metadata_hash: int = int64(tag=0)


@data(versions="4")
class ConsumerGroupPartitionMetadataKey(Stored):
    group_id: str = string()


class PartitionMetadata(Struct):
    partition: int = int32()
    racks: list[str] = array(STRING)


class TopicMetadata(Struct):
    topic_id: Uuid = uuid()
    topic_name: str = string()
    num_partitions: int = int32()
    partition_metadata: list[PartitionMetadata] = array(PartitionMetadata)


@data(versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue(Stored):
    topics: list[TopicMetadata] = array(TopicMetadata)


@data(versions="5")
class ConsumerGroupMemberMetadataKey(Stored):
    group_id: str = string()
    member_id: str = string()


class ClassicProtocol(Struct):
    name: str = string()
    metadata: Bulk = binary()


class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = int32()
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol)


@data(versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue(Stored):
    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(STRING)
    subscribed_topic_regex: str | None = string(nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = struct(
        ClassicMemberMetadata, nullable="0+", tag=0
    )


@data(versions="6")
class ConsumerGroupTargetAssignmentMetadataKey(Stored):
    group_id: str = string()


@data(versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue(Stored):
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)


@data(versions="7")
class ConsumerGroupTargetAssignmentMemberKey(Stored):
    group_id: str = string()
    member_id: str = string()


class TopicPartition(Struct):
    topic_id: Uuid = uuid()
    partitions: list[int] = array(INT32)


@data(versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue(Stored):
    topic_partitions: list[TopicPartition] = array(TopicPartition)


@data(versions="8")
class ConsumerGroupCurrentMemberAssignmentKey(Stored):
    group_id: str = string()
    member_id: str = string()


class TopicPartitions(Struct):
    topic_id: Uuid = uuid()
    partitions: list[int] = array(INT32)
    assignment_epochs: list[int] | None = array(INT32, nullable="0+", default=None, tag=0)


@data(versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue(Stored):
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)
    partitions_pending_revocation: list[TopicPartitions] = array(TopicPartitions)


@data(versions="16")
class ConsumerGroupRegularExpressionKey(Stored):
    group_id: str = string()
    regular_expression: str = string()


@data(versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue(Stored):
    topics: list[str] = array(STRING)
    version: int = int64()
    timestamp: int = int64()
