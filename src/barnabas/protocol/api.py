"""The APIs: their keys, their message classes, the way to their codecs.

`API[key]` imports the declaration of that API on first use, so a tool that speaks two APIs pays
for two.  Module names are the lower-case names of the keys; versions live in the declarations.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from importlib import import_module
from typing import Final

from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.schema import Message, Readable
from barnabas.protocol.versions import Versions

__all__ = ["API", "Api", "ApiKey", "decode_request", "decode_response"]


class ApiKey(IntEnum):
    """The number that names an API in every request header."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    DESCRIBE_TOPIC_PARTITIONS = 75

    @property
    def title(self) -> str:
        """The name as Kafka writes it: ListOffsets for LIST_OFFSETS."""
        return "".join(word.capitalize() for word in self.name.split("_"))


@dataclass(frozen=True, slots=True)
class Api:
    """One API: both message classes, which share versions and flexibility."""

    key: ApiKey
    request: type[Message]
    response: type[Message]
    versions: Versions
    flexible: Versions


class _ApiTable(Mapping[int, Api]):
    """All declared APIs by key, loaded one by one."""

    def __init__(self) -> None:
        self._loaded: dict[int, Api] = {}

    def __getitem__(self, key: int) -> Api:
        found = self._loaded.get(key)
        if found is None:
            found = self._loaded[key] = _load(ApiKey(key)) if key in _KEYS else _missing(key)
        return found

    def __iter__(self) -> Iterator[ApiKey]:
        return iter(ApiKey)

    def __len__(self) -> int:
        return len(ApiKey)


_KEYS: Final = frozenset(int(key) for key in ApiKey)


def _missing(key: int) -> Api:
    raise KeyError(key)


def _load(key: ApiKey) -> Api:
    module = import_module(f"barnabas.protocol.messages.{key.name.lower()}")
    request: type[Message] = getattr(module, f"{key.title}Request")
    response: type[Message] = getattr(module, f"{key.title}Response")
    assert request.VERSIONS == response.VERSIONS, f"{key.name}: versions of request and response differ"
    assert request.FLEXIBLE == response.FLEXIBLE, f"{key.name}: flexible versions differ"
    return Api(key, request, response, request.VERSIONS, request.FLEXIBLE)


API: Final = _ApiTable()


def _api(key: int) -> Api:
    try:
        return API[key]
    except KeyError:
        raise UnsupportedVersion(f"no API has key {key}") from None


def decode_request(key: int, version: int, body: Readable) -> Message:
    """The request in `body`, which starts after the header.  Raises ProtocolError."""
    return _api(key).request.decode(version, body)


def decode_response(key: int, version: int, body: Readable) -> Message:
    """The response in `body`, which starts after the header.  Raises ProtocolError."""
    return _api(key).response.decode(version, body)
