"""DescribeLogDirs (key 35), v0-5, flexible from v2."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import INT32, array, boolean, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, request, response


class DescribableLogDirTopic(Struct):
    topic: str = string()
    partitions: list[int] = array(INT32)


@request(ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+")
class DescribeLogDirsRequest(Message):
    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable="0+")


class DescribeLogDirsPartition(Struct):
    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


class DescribeLogDirsTopic(Struct):
    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


class DescribeLogDirsResult(Struct):
    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64(versions="4+", default=-1, ignorable=True)
    usable_bytes: int = int64(versions="4+", default=-1, ignorable=True)
    is_cordoned: bool = boolean(versions="5+", ignorable=True)


@response(ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+")
class DescribeLogDirsResponse(Message):
    throttle_time_ms: int = int32()
    error_code: int = int16(versions="3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
