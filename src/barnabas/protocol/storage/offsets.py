"""Records of `__consumer_offsets` for classic groups: committed offsets and group metadata.

The int16 before a key names its kind: 0 and 1 an offset, 2 a group.  The one before a value is its version.
"""

from barnabas.base.types import Uuid
from barnabas.protocol.fields import Bulk, array, binary, int32, int64, string, uuid
from barnabas.protocol.schema import Struct, data
from barnabas.protocol.storage.stored import Stored


@data(versions="0-1")
class OffsetCommitKey(Stored):
    group: str = string()
    topic: str = string()
    partition: int = int32()


@data(versions="0-4", flexible="4+")
class OffsetCommitValue(Stored):
    offset: int = int64()
    leader_epoch: int = int32(versions="3+", default=-1, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(versions="1", default=-1, ignorable=True)
    topic_id: Uuid = uuid(versions="4+", tag=0, ignorable=True)


@data(versions="2")
class GroupMetadataKey(Stored):
    group: str = string()


class MemberMetadata(Struct):
    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32(versions="1+", default=-1, ignorable=True)
    session_timeout: int = int32()
    subscription: Bulk = binary()
    assignment: Bulk = binary()


@data(versions="0-4", flexible="4+")
class GroupMetadataValue(Stored):
    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64(versions="2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata)
