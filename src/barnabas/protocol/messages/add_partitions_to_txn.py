"""AddPartitionsToTxn (key 24), v0-5, flexible from v3."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import INT32, array, boolean, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, request, response


class AddPartitionsToTxnTopic(Struct):
    name: str = string()
    partitions: list[int] = array(INT32)


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = string(versions="4+")
    producer_id: int = int64(versions="4+")
    producer_epoch: int = int16(versions="4+")
    verify_only: bool = boolean(versions="4+")
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, versions="4+")


@request(ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest(Message):
    transactions: list[AddPartitionsToTxnTransaction] = array(AddPartitionsToTxnTransaction, versions="4+")
    v3_and_below_transactional_id: str = string(versions="0-3")
    v3_and_below_producer_id: int = int64(versions="0-3")
    v3_and_below_producer_epoch: int = int16(versions="0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, versions="0-3")


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = int32()
    partition_error_code: int = int16()


class AddPartitionsToTxnTopicResult(Struct):
    name: str = string()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(AddPartitionsToTxnPartitionResult)


class AddPartitionsToTxnResult(Struct):
    transactional_id: str = string(versions="4+")
    topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult, versions="4+")


@response(ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse(Message):
    throttle_time_ms: int = int32()
    error_code: int = int16(versions="4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(AddPartitionsToTxnResult, versions="4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnTopicResult, versions="0-3"
    )
