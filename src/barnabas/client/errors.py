"""What a user of the client catches.  Every error carries the wire code and says if trying again can help.

    KafkaError                       any of them; `code`, `retriable`, and a text that names what failed
    ├── NoBrokersAvailable           no address led to a broker; `failures` has the cause for each
    ├── ConnectionLost               a connection did not come about or ended before the answer
    ├── BadAnswer                    what answers is not a Kafka broker, or a broken one
    ├── RequestTimedOut              no answer, or no success, in the time allowed
    ├── UnsupportedByBroker          the broker does not offer the API or a version of it that we speak
    ├── ClientClosed                 the client object was closed before or during the call (also Closed)
    ├── NotAuthorized                TopicAuthorization, GroupAuthorization, ClusterAuthorization,
    │                                TransactionalIdAuthorization
    ├── AuthenticationFailed         the login was refused
    ├── UnknownTopic, InvalidTopic, TopicExists
    ├── SendFailed                   BufferFull, SendTimeout, RecordTooLarge, DeliveryFailed
    ├── TransactionFailed            ProducerFenced, TransactionAborted
    ├── OffsetOutOfRange, NoOffset   a position that the log does not have; no position at all
    ├── GroupError                   CommitFailed, RebalanceInProgress, UnknownMember, FencedInstance,
    │                                GroupNotEmpty, UnknownGroup
    └── Serialization                a serializer or deserializer failed; the cause is chained

`error_for(code, text)` picks the class for a code that a broker answered.  Secrets never enter a text.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from barnabas.base.errors import BarnabasError, Closed
from barnabas.protocol.codes import ErrorCode, code_name

__all__ = [
    "AddressFailure",
    "AuthenticationFailed",
    "BadAnswer",
    "BufferFull",
    "ClientClosed",
    "ClusterAuthorization",
    "CommitFailed",
    "ConnectionLost",
    "DeliveryFailed",
    "FencedInstance",
    "GroupAuthorization",
    "GroupError",
    "GroupNotEmpty",
    "InvalidTopic",
    "KafkaError",
    "NoBrokersAvailable",
    "NoOffset",
    "NotAuthorized",
    "OffsetOutOfRange",
    "ProducerFenced",
    "RebalanceInProgress",
    "RecordTooLarge",
    "RequestTimedOut",
    "SendFailed",
    "SendTimeout",
    "Serialization",
    "TopicAuthorization",
    "TopicExists",
    "TransactionAborted",
    "TransactionFailed",
    "TransactionalIdAuthorization",
    "UnknownGroup",
    "UnknownMember",
    "UnknownTopic",
    "UnsupportedByBroker",
    "error_for",
]


class KafkaError(BarnabasError):
    """Something that a broker refused, or that failed on the way to it.

    `retriable` is true when the same call may succeed later; `refreshes_metadata` when it will most likely
    do so at another broker.
    """

    CODE: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(
        self,
        text: str,
        *,
        code: ErrorCode | None = None,
        retriable: bool | None = None,
        number: int | None = None,
    ) -> None:
        super().__init__(text)
        self.code = self.CODE if code is None else code
        self.number: int = self.code.value if number is None else number
        """The code as it came; differs from `code` only when a newer broker sent one that has no row here."""
        self.retriable = self.code.retriable if retriable is None else retriable

    @property
    def refreshes_metadata(self) -> bool:
        return self.code.refreshes_metadata

    def __repr__(self) -> str:
        again = "retriable" if self.retriable else "final"
        return f"{type(self).__name__}({str(self)!r}, {code_name(self.number)}, {again})"


class ConnectionLost(KafkaError):
    """No connection came about, or it ended before the answer; the request may have taken effect."""

    CODE = ErrorCode.NETWORK_EXCEPTION


class BadAnswer(KafkaError):
    """The other side sent what no Kafka broker sends; most often the port belongs to something else."""

    CODE = ErrorCode.NETWORK_EXCEPTION

    def __init__(
        self,
        text: str,
        *,
        code: ErrorCode | None = None,
        retriable: bool | None = False,
        number: int | None = None,
    ) -> None:
        super().__init__(text, code=code, retriable=retriable, number=number)


@dataclass(frozen=True, slots=True)
class AddressFailure:
    """Why one address did not lead to a broker."""

    address: str
    stage: str
    """What failed: "DNS", "connect", "timeout", "TLS", "protocol", "version", "closed" or "login"."""
    cause: str
    node: int | None = None
    """Set when a broker with this id advertises the address; None for an address the user gave."""

    def __str__(self) -> str:
        who = self.address if self.node is None else f"{self.address} (advertised by broker {self.node})"
        return f"{who}: {self.stage}: {self.cause}"


class NoBrokersAvailable(KafkaError):
    """No broker could be reached; `failures` says for each address tried what failed there."""

    CODE = ErrorCode.BROKER_NOT_AVAILABLE

    def __init__(self, text: str, failures: tuple[AddressFailure, ...] = ()) -> None:
        super().__init__(text, retriable=True)
        self.failures = failures

    @classmethod
    def after(
        cls, failures: tuple[AddressFailure, ...], *, bootstrap: str | None = None
    ) -> "NoBrokersAvailable":
        """The error for these failures; `bootstrap` is the address that did work, if one did."""
        lines = "".join(f"\n  {failure}" for failure in failures)
        if bootstrap is None:
            return cls(f"no broker could be reached:{lines}", failures)
        if not failures:
            return cls(f"{bootstrap} answers, but names no broker; the cluster may still be starting")
        return cls(
            f"{bootstrap} answers, but no address that it names for the brokers can be reached:{lines}\n"
            "  advertised.listeners of these brokers must name addresses that this machine can reach",
            failures,
        )


class RequestTimedOut(KafkaError):
    """No answer, or no success, within the time allowed; the request may have taken effect."""

    CODE = ErrorCode.REQUEST_TIMED_OUT


class UnsupportedByBroker(KafkaError):
    """The broker does not offer this API, or no version of it that can carry the request."""

    CODE = ErrorCode.UNSUPPORTED_VERSION


class ClientClosed(KafkaError, Closed):
    """The producer, consumer or admin was closed."""

    def __init__(self, text: str = "the client was closed") -> None:
        super().__init__(text, retriable=False)


class NotAuthorized(KafkaError):
    """The principal may not do this."""

    CODE = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class TopicAuthorization(NotAuthorized):
    """Not allowed on a topic."""

    CODE = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class GroupAuthorization(NotAuthorized):
    """Not allowed on a group."""

    CODE = ErrorCode.GROUP_AUTHORIZATION_FAILED


class ClusterAuthorization(NotAuthorized):
    """Not allowed on the cluster."""


class TransactionalIdAuthorization(NotAuthorized):
    """Not allowed on a transactional id."""

    CODE = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class AuthenticationFailed(KafkaError):
    """The login was refused."""

    CODE = ErrorCode.SASL_AUTHENTICATION_FAILED


class UnknownTopic(KafkaError):
    """No such topic or partition; brokers also say so for a moment after one was made."""

    CODE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class InvalidTopic(KafkaError):
    """The topic's name is not allowed, or the topic may not be used this way."""

    CODE = ErrorCode.INVALID_TOPIC_EXCEPTION


class TopicExists(KafkaError):
    """There is a topic of this name already."""

    CODE = ErrorCode.TOPIC_ALREADY_EXISTS


class SendFailed(KafkaError):
    """A record was not written, or it is not known whether it was."""


class BufferFull(SendFailed):
    """No room in the producer's buffer came free within max.block.ms."""

    CODE = ErrorCode.REQUEST_TIMED_OUT


class SendTimeout(SendFailed):
    """The record was not acknowledged within delivery.timeout.ms."""

    CODE = ErrorCode.REQUEST_TIMED_OUT


class RecordTooLarge(SendFailed):
    """The record exceeds max.request.size, buffer.memory or the topic's max.message.bytes."""

    CODE = ErrorCode.MESSAGE_TOO_LARGE


class DeliveryFailed(SendFailed):
    """The broker refused the record; `code` says why."""


class TransactionFailed(KafkaError):
    """A step of a transaction was refused."""

    CODE = ErrorCode.INVALID_TXN_STATE


class ProducerFenced(TransactionFailed):
    """Another producer with the same transactional id took over; this one must be closed."""

    CODE = ErrorCode.PRODUCER_FENCED


class TransactionAborted(TransactionFailed):
    """The transaction cannot be committed; abort it and begin anew."""

    CODE = ErrorCode.TRANSACTION_ABORTABLE


class OffsetOutOfRange(KafkaError):
    """The offset lies before the start or after the end of the log."""

    CODE = ErrorCode.OFFSET_OUT_OF_RANGE


class NoOffset(KafkaError):
    """There is neither a committed offset nor a rule for where to start (auto.offset.reset=none)."""

    CODE = ErrorCode.OFFSET_OUT_OF_RANGE


class GroupError(KafkaError):
    """A call of a consumer group was refused."""

    CODE = ErrorCode.INVALID_GROUP_ID


class CommitFailed(GroupError):
    """Offsets were not committed because the partitions may belong to another member by now."""

    CODE = ErrorCode.ILLEGAL_GENERATION


class RebalanceInProgress(GroupError):
    """The group is rebalancing; call poll, then try again."""

    CODE = ErrorCode.REBALANCE_IN_PROGRESS


class UnknownMember(GroupError):
    """The group has no such member (any more)."""

    CODE = ErrorCode.UNKNOWN_MEMBER_ID


class FencedInstance(GroupError):
    """Another consumer with the same group.instance.id took over; this one must be closed."""

    CODE = ErrorCode.FENCED_INSTANCE_ID


class GroupNotEmpty(GroupError):
    """The group still has members."""

    CODE = ErrorCode.NON_EMPTY_GROUP


class UnknownGroup(GroupError):
    """No such group."""

    CODE = ErrorCode.GROUP_ID_NOT_FOUND


class Serialization(KafkaError):
    """A key or value could not be turned into bytes or back; the cause is chained."""

    CODE = ErrorCode.INVALID_RECORD


_BY_CODE: Final[dict[ErrorCode, type[KafkaError]]] = {
    cls.CODE: cls
    for cls in (
        RequestTimedOut,
        UnsupportedByBroker,
        TopicAuthorization,
        GroupAuthorization,
        ClusterAuthorization,
        TransactionalIdAuthorization,
        AuthenticationFailed,
        UnknownTopic,
        InvalidTopic,
        TopicExists,
        RecordTooLarge,
        TransactionFailed,
        ProducerFenced,
        TransactionAborted,
        OffsetOutOfRange,
        CommitFailed,
        RebalanceInProgress,
        UnknownMember,
        FencedInstance,
        GroupNotEmpty,
        UnknownGroup,
    )
} | {
    ErrorCode.NETWORK_EXCEPTION: ConnectionLost,
    ErrorCode.UNKNOWN_TOPIC_ID: UnknownTopic,
    ErrorCode.INVALID_GROUP_ID: GroupError,
    ErrorCode.RECORD_LIST_TOO_LARGE: RecordTooLarge,
    ErrorCode.INVALID_PRODUCER_EPOCH: ProducerFenced,
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: AuthenticationFailed,
    ErrorCode.ILLEGAL_SASL_STATE: AuthenticationFailed,
    ErrorCode.FENCED_MEMBER_EPOCH: UnknownMember,
    ErrorCode.STALE_MEMBER_EPOCH: RebalanceInProgress,
}


def error_for(code: int, text: str | None = None, *, subject: str = "") -> KafkaError:
    """The error for a code that a broker answered; must not be NONE.

    `text` is the broker's own message if it sent one; `subject` names what the code was answered for.
    """
    assert code != ErrorCode.NONE, "success is no error"
    try:
        known = ErrorCode(code)
    except ValueError:
        known = ErrorCode.UNKNOWN_SERVER_ERROR
        text = text or "The broker answered with an error code that this client does not know."
    said = f"{text or known.text} ({code_name(code)})"
    cls = _BY_CODE.get(known, KafkaError)
    return cls(f"{subject}: {said}" if subject else said, code=known, number=code)
