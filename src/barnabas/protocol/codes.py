"""Every error code of the wire: number, name, what a client may do about it, text.

Numbers, names and the two reactions are those of Apache Kafka 4.3.1; a test compares them with
kio's table.  The broker maps its exceptions to these rows at its edge; clients read the reaction.
"""

from enum import IntEnum
from typing import Final, Self

__all__ = ["ErrorCode", "code_name"]

_NO: Final = 0  # retrying the same request cannot help
_RETRY: Final = 1  # the same request may succeed later
_REFRESH: Final = 2  # it may succeed later, most likely at another broker: ask for metadata first


class ErrorCode(IntEnum):
    """A wire error code.  `retriable` and `refreshes_metadata` are what clients should do."""

    retriable: bool
    refreshes_metadata: bool
    text: str

    # The defaults let a type checker accept ErrorCode(6), which looks a row up.
    def __new__(cls, number: int, reaction: int = _NO, text: str = "") -> Self:
        code = int.__new__(cls, number)
        code._value_ = number
        code.retriable = reaction != _NO
        code.refreshes_metadata = reaction == _REFRESH
        code.text = text
        return code

    UNKNOWN_SERVER_ERROR = -1, _NO, "The broker failed in a way it has no code for."
    NONE = 0, _NO, "Success."
    OFFSET_OUT_OF_RANGE = 1, _NO, "The offset lies before the start or after the end of the log."
    CORRUPT_MESSAGE = 2, _RETRY, "The records fail their checksum, or their sizes contradict each other."
    UNKNOWN_TOPIC_OR_PARTITION = 3, _REFRESH, "No such topic or partition here."
    INVALID_FETCH_SIZE = 4, _NO, "The number of bytes to fetch is not allowed."
    LEADER_NOT_AVAILABLE = 5, _REFRESH, "The partition has no leader at the moment."
    NOT_LEADER_OR_FOLLOWER = (
        6,
        _REFRESH,
        "Another broker leads this partition, or this one holds no copy of it.",
    )
    REQUEST_TIMED_OUT = 7, _RETRY, "The time allowed for the request ran out."
    BROKER_NOT_AVAILABLE = 8, _NO, "The broker cannot be reached."
    REPLICA_NOT_AVAILABLE = 9, _REFRESH, "The copy of the partition on this broker cannot serve now."
    MESSAGE_TOO_LARGE = 10, _NO, "A batch is larger than the topic allows."
    STALE_CONTROLLER_EPOCH = 11, _NO, "The sender is not the controller any more."
    OFFSET_METADATA_TOO_LARGE = 12, _NO, "The text stored with a committed offset is too long."
    NETWORK_EXCEPTION = 13, _REFRESH, "The connection broke before the answer came."
    COORDINATOR_LOAD_IN_PROGRESS = 14, _RETRY, "The coordinator still reads its state."
    COORDINATOR_NOT_AVAILABLE = 15, _RETRY, "There is no coordinator at the moment."
    NOT_COORDINATOR = 16, _RETRY, "Another broker coordinates this group or transaction."
    INVALID_TOPIC_EXCEPTION = (
        17,
        _NO,
        "The topic's name is not allowed, or the topic may not be used this way.",
    )
    RECORD_LIST_TOO_LARGE = 18, _NO, "The batch does not fit into one log segment."
    NOT_ENOUGH_REPLICAS = 19, _RETRY, "Too few replicas are in sync; nothing was written."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, _RETRY, "Written, but too few replicas are in sync to confirm it."
    INVALID_REQUIRED_ACKS = 21, _NO, "acks must be -1, 0 or 1."
    ILLEGAL_GENERATION = 22, _NO, "The group has moved on to another generation."
    INCONSISTENT_GROUP_PROTOCOL = 23, _NO, "No assignment protocol is common to this member and the group."
    INVALID_GROUP_ID = 24, _NO, "The group's name is not allowed."
    UNKNOWN_MEMBER_ID = 25, _NO, "The group has no such member."
    INVALID_SESSION_TIMEOUT = 26, _NO, "The session timeout is outside the broker's limits."
    REBALANCE_IN_PROGRESS = 27, _NO, "The group is rebalancing; the member has to join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, _NO, "The offsets to commit take too much space."
    TOPIC_AUTHORIZATION_FAILED = 29, _NO, "Not allowed on this topic."
    GROUP_AUTHORIZATION_FAILED = 30, _NO, "Not allowed on this group."
    CLUSTER_AUTHORIZATION_FAILED = 31, _NO, "Not allowed on the cluster."
    INVALID_TIMESTAMP = 32, _NO, "A record's timestamp is outside the limits of the topic."
    UNSUPPORTED_SASL_MECHANISM = 33, _NO, "The listener does not offer this SASL mechanism."
    ILLEGAL_SASL_STATE = 34, _NO, "The request does not belong at this point of the login."
    UNSUPPORTED_VERSION = 35, _NO, "The broker does not serve this version of the API."
    TOPIC_ALREADY_EXISTS = 36, _NO, "There is a topic of this name already."
    INVALID_PARTITIONS = 37, _NO, "The number of partitions is not allowed."
    INVALID_REPLICATION_FACTOR = (
        38,
        _NO,
        "The replication factor is not positive or exceeds the live brokers.",
    )
    INVALID_REPLICA_ASSIGNMENT = 39, _NO, "The list of replicas is not allowed."
    INVALID_CONFIG = 40, _NO, "A setting is unknown or has a bad value."
    NOT_CONTROLLER = 41, _RETRY, "Another broker is the controller."
    INVALID_REQUEST = 42, _NO, "The request contradicts itself or lacks something."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, _NO, "The stored record format cannot answer this."
    POLICY_VIOLATION = 44, _NO, "A policy of the cluster forbids it."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, _NO, "The producer's sequence number does not follow the last one."
    DUPLICATE_SEQUENCE_NUMBER = 46, _NO, "The batch was written before."
    INVALID_PRODUCER_EPOCH = 47, _NO, "A newer epoch of this producer has written."
    INVALID_TXN_STATE = 48, _NO, "The transaction is not in a state that allows this."
    INVALID_PRODUCER_ID_MAPPING = 49, _NO, "The transactional id belongs to another producer id."
    INVALID_TRANSACTION_TIMEOUT = 50, _NO, "The transaction timeout exceeds the broker's limit."
    CONCURRENT_TRANSACTIONS = 51, _RETRY, "The previous step of this transaction has not finished."
    TRANSACTION_COORDINATOR_FENCED = (
        52,
        _NO,
        "The sender of the marker does not coordinate this producer any more.",
    )
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, _NO, "Not allowed on this transactional id."
    SECURITY_DISABLED = 54, _NO, "The broker runs without an authorizer."
    OPERATION_NOT_ATTEMPTED = 55, _NO, "Not tried, because another part of the request failed."
    KAFKA_STORAGE_ERROR = 56, _REFRESH, "The disk that holds the partition failed."
    LOG_DIR_NOT_FOUND = 57, _NO, "The broker has no such data folder."
    SASL_AUTHENTICATION_FAILED = 58, _NO, "The login was refused."
    UNKNOWN_PRODUCER_ID = 59, _NO, "Nothing is known about this producer."
    REASSIGNMENT_IN_PROGRESS = 60, _NO, "The partition is being moved."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, _NO, "Delegation tokens are switched off."
    DELEGATION_TOKEN_NOT_FOUND = 62, _NO, "No such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, _NO, "The principal neither owns nor may renew this token."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, _NO, "Tokens cannot be managed over this kind of connection."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, _NO, "Not allowed on this delegation token."
    DELEGATION_TOKEN_EXPIRED = 66, _NO, "The delegation token is past its time."
    INVALID_PRINCIPAL_TYPE = 67, _NO, "This type of principal is not known."
    NON_EMPTY_GROUP = 68, _NO, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, _NO, "No such group."
    FETCH_SESSION_ID_NOT_FOUND = 70, _RETRY, "No such fetch session."
    INVALID_FETCH_SESSION_EPOCH = 71, _RETRY, "The request is not the next one of its fetch session."
    LISTENER_NOT_FOUND = 72, _REFRESH, "The leader has no listener of the name this client came through."
    TOPIC_DELETION_DISABLED = 73, _NO, "Topics may not be deleted here."
    FENCED_LEADER_EPOCH = 74, _REFRESH, "The client knows an older leader epoch than the broker."
    UNKNOWN_LEADER_EPOCH = 75, _RETRY, "The client knows a newer leader epoch than the broker."
    UNSUPPORTED_COMPRESSION_TYPE = 76, _NO, "This version of the request cannot carry the codec in use."
    STALE_BROKER_EPOCH = 77, _NO, "The broker has registered again since."
    OFFSET_NOT_AVAILABLE = 78, _RETRY, "The new leader does not know its high watermark yet."
    MEMBER_ID_REQUIRED = 79, _NO, "The member has to join again with the id it was given."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, _REFRESH, "The preferred leader is not in sync."
    GROUP_MAX_SIZE_REACHED = 81, _NO, "The group is full."
    FENCED_INSTANCE_ID = 82, _NO, "Another member has taken over this instance id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, _REFRESH, "No replica can become leader."
    ELECTION_NOT_NEEDED = 84, _REFRESH, "The right leader is in place."
    NO_REASSIGNMENT_IN_PROGRESS = 85, _NO, "The partition is not being moved."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, _NO, "The group still reads the topic whose offsets should go."
    INVALID_RECORD = 87, _NO, "The broker refuses the content of a record or batch."
    UNSTABLE_OFFSET_COMMIT = 88, _RETRY, "A transaction with offsets of this partition is still open."
    THROTTLING_QUOTA_EXCEEDED = 89, _RETRY, "Too many changes in too short a time."
    PRODUCER_FENCED = 90, _NO, "Another producer has taken over the transactional id."
    RESOURCE_NOT_FOUND = 91, _NO, "The request names something that does not exist."
    DUPLICATE_RESOURCE = 92, _NO, "The request names the same thing twice."
    UNACCEPTABLE_CREDENTIAL = 93, _NO, "The credential does not meet the rules."
    INCONSISTENT_VOTER_SET = 94, _NO, "Sender or receiver is not one of the expected voters."
    INVALID_UPDATE_VERSION = 95, _NO, "The feature level asked for is not allowed."
    FEATURE_UPDATE_FAILED = 96, _NO, "The feature levels could not be stored."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, _NO, "The principal of a forwarded request cannot be read."
    SNAPSHOT_NOT_FOUND = 98, _NO, "No such snapshot."
    POSITION_OUT_OF_RANGE = 99, _NO, "The position lies outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, _REFRESH, "No topic with this id here."
    DUPLICATE_BROKER_REGISTRATION = 101, _NO, "Another broker uses this id."
    BROKER_ID_NOT_REGISTERED = 102, _NO, "No broker is registered with this id."
    INCONSISTENT_TOPIC_ID = 103, _REFRESH, "The partition belongs to another incarnation of the topic."
    INCONSISTENT_CLUSTER_ID = 104, _NO, "The request is meant for another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, _NO, "No such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, _RETRY, "The fetch session mixes topic names and topic ids."
    INELIGIBLE_REPLICA = 107, _NO, "A replica of the proposed in-sync set may not be in it."
    NEW_LEADER_ELECTED = 108, _NO, "The change was made, and the partition got another leader."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, _NO, "The offset is only in remote storage now."
    FENCED_MEMBER_EPOCH = 110, _NO, "The member was fenced: it gives up its partitions and joins anew."
    UNRELEASED_INSTANCE_ID = 111, _NO, "A live member still uses this instance id."
    UNSUPPORTED_ASSIGNOR = 112, _NO, "The group coordinator has no such assignor."
    STALE_MEMBER_EPOCH = 113, _NO, "The member has to learn its new epoch first."
    MISMATCHED_ENDPOINT_TYPE = 114, _NO, "The request belongs at another kind of endpoint."
    UNSUPPORTED_ENDPOINT_TYPE = 115, _NO, "This kind of endpoint is not served."
    UNKNOWN_CONTROLLER_ID = 116, _NO, "No controller has this id."
    UNKNOWN_SUBSCRIPTION_ID = 117, _NO, "The telemetry subscription is unknown or outdated."
    TELEMETRY_TOO_LARGE = 118, _NO, "The pushed metrics are larger than allowed."
    INVALID_REGISTRATION = 119, _NO, "The controller refused the registration of the broker."
    TRANSACTION_ABORTABLE = 120, _NO, "The transaction failed; it can be aborted and the producer used again."
    INVALID_RECORD_STATE = 121, _NO, "The record cannot be acknowledged in its present state."
    SHARE_SESSION_NOT_FOUND = 122, _RETRY, "No such share session."
    INVALID_SHARE_SESSION_EPOCH = 123, _RETRY, "The request is not the next one of its share session."
    FENCED_STATE_EPOCH = 124, _NO, "The state of the share group has another epoch."
    INVALID_VOTER_KEY = 125, _NO, "The voter key is not the receiver's."
    DUPLICATE_VOTER = 126, _NO, "The voter is in the set already."
    VOTER_NOT_FOUND = 127, _NO, "The voter is not in the set."
    INVALID_REGULAR_EXPRESSION = 128, _NO, "The regular expression cannot be compiled."
    REBOOTSTRAP_REQUIRED = (
        129,
        _NO,
        "The client's view is too old; it has to start again from its bootstrap list.",
    )
    STREAMS_INVALID_TOPOLOGY = 130, _NO, "The topology is not allowed."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, _NO, "The topology epoch is not allowed."
    STREAMS_TOPOLOGY_FENCED = 132, _NO, "A newer topology is in use."
    SHARE_SESSION_LIMIT_REACHED = 133, _RETRY, "No more share sessions can be opened now."


_NAMES: Final = {code.value: code.name for code in ErrorCode}


def code_name(number: int) -> str:
    """The name of a code, also of one that a newer peer made up."""
    return _NAMES.get(number, f"ERROR_{number}")
