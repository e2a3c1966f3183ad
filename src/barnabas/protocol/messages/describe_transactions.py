"""DescribeTransactions (key 65), v0, flexible from v0."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import INT32, STRING, array, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, request, response


@request(ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+")
class DescribeTransactionsRequest(Message):
    transactional_ids: list[str] = array(STRING)


class TopicData(Struct):
    topic: str = string()
    partitions: list[int] = array(INT32)


class TransactionState(Struct):
    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: list[TopicData] = array(TopicData)


@response(ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+")
class DescribeTransactionsResponse(Message):
    throttle_time_ms: int = int32()
    transaction_states: list[TransactionState] = array(TransactionState)
