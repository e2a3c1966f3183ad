"""WriteTxnMarkers (key 27), v0-2, flexible from v1."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import INT32, array, boolean, int8, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, request, response


class WritableTxnMarkerTopic(Struct):
    name: str = string()
    partition_indexes: list[int] = array(INT32)


class WritableTxnMarker(Struct):
    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8(versions="2+", ignorable=True)


@request(ApiKey.WRITE_TXN_MARKERS, versions="0-2", flexible="1+")
class WriteTxnMarkersRequest(Message):
    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = int32()
    error_code: int = int16()


class WritableTxnMarkerTopicResult(Struct):
    name: str = string()
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


class WritableTxnMarkerResult(Struct):
    producer_id: int = int64()
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


@response(ApiKey.WRITE_TXN_MARKERS, versions="0-2", flexible="1+")
class WriteTxnMarkersResponse(Message):
    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
