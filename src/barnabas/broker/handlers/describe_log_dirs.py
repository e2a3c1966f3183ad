"""DescribeLogDirs (key 35), v0-5: the data folders, how full they are, and the partitions in each.

Null topics ask for all.  v4 adds the size of the file system; v5 cordoned folders: there are none.
"""

import shutil
from collections import defaultdict

from barnabas.base.types import TopicPartition
from barnabas.broker.context import Context
from barnabas.log.directories import DataFolder
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(request: DescribeLogDirsRequest, ctx: Context) -> DescribeLogDirsResponse:
    wanted = None
    if request.topics is not None:
        wanted = {TopicPartition(t.topic, index) for t in request.topics for index in t.partitions}
    folders = ctx.services.directories.folders
    return DescribeLogDirsResponse(results=[_describe(folder, wanted, ctx) for folder in folders])


def _describe(folder: DataFolder, wanted: set[TopicPartition] | None, ctx: Context) -> DescribeLogDirsResult:
    if folder.failure is not None:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=folder.path)
    topics: dict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for tp, log in folder.logs.items():
        if wanted is None or tp in wanted:
            topics[tp.topic].append(
                DescribeLogDirsPartition(
                    partition_index=tp.partition, partition_size=log.size_bytes, offset_lag=0
                )
            )
    total_bytes, usable_bytes = _space(folder.path)
    return DescribeLogDirsResult(
        error_code=0,
        log_dir=folder.path,
        topics=[DescribeLogDirsTopic(name=name, partitions=parts) for name, parts in topics.items()],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )


def _space(path: str) -> tuple[int, int]:
    """Size of the file system and what is free for us; unknown is -1, as the wire has it."""
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return -1, -1
    return usage.total, usage.free
