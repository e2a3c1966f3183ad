"""What members of a classic consumer group tell each other: subscriptions and assignments.

Both start with their int16 version.  A newer version than ours is read as our newest, since fields
are only ever added at the end.
"""

from barnabas.protocol.fields import INT32, STRING, NullableBulk, array, binary, int32, string
from barnabas.protocol.schema import Struct, data
from barnabas.protocol.storage.stored import Stored


class TopicPartition(Struct):
    topic: str = string()
    partitions: list[int] = array(INT32)


@data(versions="0-3")
class ConsumerProtocolSubscription(Stored):
    READS_NEWER = True

    topics: list[str] = array(STRING)
    user_data: NullableBulk = binary(nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = array(TopicPartition, versions="1+", ignorable=True)
    generation_id: int = int32(versions="2+", default=-1, ignorable=True)
    rack_id: str | None = string(versions="3+", nullable="3+", default=None, ignorable=True)


@data(versions="0-3")
class ConsumerProtocolAssignment(Stored):
    READS_NEWER = True

    assigned_partitions: list[TopicPartition] = array(TopicPartition)
    user_data: NullableBulk = binary(nullable="0+", default=None)
