"""Every API this broker serves: one module each, with `handle(request, ctx)`.

The list is explicit and is what ApiVersions answers.  A module is imported at the first request of its
API, so that a start does not pay for APIs that nobody calls.
"""

from dataclasses import dataclass

from barnabas.protocol.api import ApiKey

__all__ = ["HANDLERS", "Handler"]


@dataclass(frozen=True, slots=True)
class Handler:
    """One API: its key and the versions served; the module has the key's name in lower case."""

    key: ApiKey
    lowest: int
    highest: int

    @property
    def module(self) -> str:
        return f"{__name__}.{self.key.name.lower()}"


HANDLERS = (
    Handler(ApiKey.PRODUCE, 0, 13),
    Handler(ApiKey.FETCH, 0, 18),
    Handler(ApiKey.LIST_OFFSETS, 0, 11),
    Handler(ApiKey.METADATA, 0, 13),
    Handler(ApiKey.OFFSET_COMMIT, 0, 10),
    Handler(ApiKey.OFFSET_FETCH, 0, 10),
    Handler(ApiKey.FIND_COORDINATOR, 0, 6),
    Handler(ApiKey.JOIN_GROUP, 0, 9),
    Handler(ApiKey.HEARTBEAT, 0, 4),
    Handler(ApiKey.LEAVE_GROUP, 0, 5),
    Handler(ApiKey.SYNC_GROUP, 0, 5),
    Handler(ApiKey.DESCRIBE_GROUPS, 0, 6),
    Handler(ApiKey.LIST_GROUPS, 0, 5),
    Handler(ApiKey.API_VERSIONS, 0, 4),
    Handler(ApiKey.CREATE_TOPICS, 0, 7),
    Handler(ApiKey.DELETE_TOPICS, 0, 6),
    Handler(ApiKey.DELETE_RECORDS, 0, 2),
    Handler(ApiKey.INIT_PRODUCER_ID, 0, 5),
    Handler(ApiKey.OFFSET_FOR_LEADER_EPOCH, 0, 4),
    Handler(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5),
    Handler(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4),
    Handler(ApiKey.END_TXN, 0, 5),
    Handler(ApiKey.WRITE_TXN_MARKERS, 0, 2),
    Handler(ApiKey.TXN_OFFSET_COMMIT, 0, 5),
    Handler(ApiKey.DESCRIBE_CONFIGS, 0, 4),
    Handler(ApiKey.ALTER_CONFIGS, 0, 2),
    Handler(ApiKey.DESCRIBE_LOG_DIRS, 0, 5),
    Handler(ApiKey.CREATE_PARTITIONS, 0, 3),
    Handler(ApiKey.DELETE_GROUPS, 0, 2),
    Handler(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1),
    Handler(ApiKey.OFFSET_DELETE, 0, 0),
    Handler(ApiKey.UPDATE_FEATURES, 0, 2),
    Handler(ApiKey.DESCRIBE_CLUSTER, 0, 2),
    Handler(ApiKey.DESCRIBE_PRODUCERS, 0, 0),
    Handler(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0),
    Handler(ApiKey.LIST_TRANSACTIONS, 0, 2),
    Handler(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0),
)
