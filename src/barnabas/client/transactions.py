"""The transactions of one producer: what may be done when, and what a failure means.

               init                begin               commit                    EndTxn agreed
    NEW ───────────────► READY ──────────────► OPEN ───────────► COMMITTING ────────────────────► READY
                           ▲                     │ a step failed      │ a batch failed
                           │                     ▼                    ▼
                           └───── ABORTING ◄── FAILED ◄───────────────┘
                           every state ──► FATAL: fenced, not allowed, not supported

T1  a batch is sent only when its partition is part of the open transaction, or becomes so by it (V2)
T2  EndTxn is sent when every batch is answered or given up, and no other request of the transaction is open
T3  once EndTxn was sent for a commit, the transaction is never aborted from here: only its repeat may follow
T4  when a batch that had a number was given up, or a request that adds something has no clear outcome, the
    next transaction has a new epoch: neither a gap nor what is still on its way can reach it
T5  an error is abortable (abort, then begin anew), or fatal: then every later call raises it.  Which is
    which is as in Java's client; only EndTxn tells a producer that it was fenced for good
T6  a transaction ends by the rules it began with, V1 or V2 (see `transaction_requests`)

Runs on the client's event loop; `check_may_send` in any thread.
"""

import asyncio
import logging
from collections.abc import Mapping
from enum import Enum
from typing import Final, Protocol

from barnabas.base.errors import ConfigFault, Misuse
from barnabas.base.types import TopicPartition
from barnabas.client import transaction_requests as requests
from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientSettings
from barnabas.client.errors import (
    AuthenticationFailed,
    ClientClosed,
    ClusterAuthorization,
    KafkaError,
    ProducerFenced,
    TransactionAborted,
    TransactionalIdAuthorization,
    UnsupportedByBroker,
)
from barnabas.client.offsets import GroupIdentity
from barnabas.client.producer_batch import NO_ID, Identity, ProducerBatch
from barnabas.client.sequences import Sequences
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.protocol.codes import ErrorCode

__all__ = ["Outlet", "State", "Transactions", "transactional_id_of"]

_log: Final = logging.getLogger("barnabas.client.producer")
_FATAL_KINDS: Final = (
    ProducerFenced,
    TransactionalIdAuthorization,
    ClusterAuthorization,
    AuthenticationFailed,
    UnsupportedByBroker,
    ClientClosed,
)
_FATAL_CODES: Final = (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
# After a Produce these may only say that the coordinator ended the transaction for its age: an abort tells.
_OPEN_TO_DOUBT: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)


class State(Enum):
    """Where a producer stands between two transactions, or in one."""

    NEW = "has no id yet"
    READY = "has no transaction open"
    OPEN = "has a transaction open"
    COMMITTING = "is committing"
    ABORTING = "is aborting"
    FAILED = "has a transaction that can only be aborted"
    FATAL = "cannot go on"


_GIVING_UP: Final = (State.FAILED, State.ABORTING, State.FATAL)


class Outlet(Protocol):
    """The sender, as far as transactions need it."""

    def pump(self) -> None: ...
    async def flush(self) -> None: ...
    def fail_queued(self, error: KafkaError) -> None: ...
    def forget_failures(self) -> None: ...
    def open_gate(self, is_open: bool) -> None: ...


def transactional_id_of(settings: ClientSettings, *, is_idempotent: bool) -> str | None:
    """The transactional id, if there is one.  Raises ConfigFault when other settings rule it out."""
    found = settings.optional_string("transactional.id")
    if found == "":
        raise ConfigFault("transactional.id: must not be empty")
    if found is not None and not is_idempotent:
        raise ConfigFault(
            "transactional.id: needs enable.idempotence, and with it acks=all, retries, and at most 5 "
            "requests in flight"
        )
    return found


class Transactions:
    """One transaction after the other, under one transactional id."""

    def __init__(self, settings: ClientSettings, transactional_id: str, sequences: Sequences) -> None:
        self.transactional_id: Final = transactional_id
        self._transaction_timeout_ms = settings.integer("transaction.timeout.ms")
        self._timeout_ms = settings.integer("max.block.ms")
        self._sequences = sequences
        self._state = State.NEW
        self._error: KafkaError | None = None
        self._added: set[TopicPartition] = set()
        self._wanted: set[TopicPartition] = set()
        self._adding: asyncio.Task[None] | None = None
        self._groups: set[str] = set()
        self._is_v2 = False
        self._is_ending = False
        self._needs_epoch = False
        self._turn = asyncio.Lock()
        self._cluster: Cluster | None = None
        self._outlet: Outlet | None = None

    @property
    def state(self) -> State:
        return self._state

    def connect(self, cluster: Cluster, outlet: Outlet) -> None:
        """Gives it the network; before this nothing may be called but `check_may_send`."""
        self._cluster, self._outlet = cluster, outlet

    def close(self) -> None:
        if self._adding is not None:
            self._adding.cancel()

    # --- the user's calls

    async def init(self) -> None:
        """Takes the transactional id over: fences whoever had it, and ends what was left open."""
        async with self._turn:
            await self._init()

    async def _init(self) -> None:
        self._raise_fatal()
        if self._state is State.NEW:
            await self._take_id()
            self._state = State.READY

    async def take_over(self) -> None:
        """Takes the id over once more, whoever had it meanwhile; only between two transactions."""
        async with self._turn:
            self._raise_fatal()
            if self._state not in (State.NEW, State.READY):
                raise Misuse(f"the id cannot be taken over now: the producer {self._state.value}")
            await self._take_id(held=NO_ID)
            self._state = State.READY

    async def begin(self) -> None:
        async with self._turn:
            await self._init()
            if self._state is not State.READY:
                raise Misuse(f"a transaction cannot begin: the producer {self._state.value}")
            self._error = None
            self._is_v2 = self._sequences.first_is_checked = requests.speaks_v2(self._network)
            self._state = State.OPEN
            self._sender.open_gate(True)

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupIdentity
    ) -> None:
        """Makes the offsets part of the transaction.  Raises TransactionAborted, ProducerFenced."""
        async with self._turn:
            self._expect(State.OPEN)
            if not offsets:
                return
            try:
                if not self._is_v2 and group.group_id not in self._groups:
                    await requests.add_group(
                        self._network, self._name, group.group_id, timeout_ms=self._timeout_ms
                    )
                self._groups.add(group.group_id)
                await requests.commit_offsets(
                    self._network, self._name, group, offsets, timeout_ms=self._timeout_ms
                )
            except KafkaError as error:
                self._needs_epoch = True  # T4
                self._fail(error)
                self._raise_failed()

    async def commit(self) -> None:
        """Sends what is left, then commits.  After RequestTimedOut or ConnectionLost, call it again."""
        async with self._turn:
            self._expect(State.OPEN, State.COMMITTING)
            self._state = State.COMMITTING
            self._sender.open_gate(False)
            await self._sender.flush()
            await self._quiet()
            if self._state is not State.COMMITTING:
                self._sender.forget_failures()  # the error raised here tells of them
                self._raise_failed()
            await self._end(committed=True)
            self._sender.forget_failures()
            self._state = State.READY

    async def abort(self) -> None:
        """Gives up what is not sent, waits for what is on its way, aborts."""
        async with self._turn:
            self._raise_fatal()
            if not self._can_abort:
                raise Misuse(f"there is nothing to abort: the producer {self._state.value}")
            self._state = State.ABORTING
            self._sender.open_gate(False)
            self._sender.fail_queued(TransactionAborted("the transaction was aborted before it was sent"))
            await self._sender.flush()
            await self._quiet()
            self._sender.forget_failures()
            await self._end(committed=False)
            if self._needs_epoch:
                await self._take_id()
            self._state = State.READY

    async def abandon(self) -> None:
        """Aborts if there is something to abort; for blocks that end with an error."""
        if self._can_abort:
            await self.abort()

    @property
    def _can_abort(self) -> bool:
        if self._state is State.COMMITTING:
            return not self._is_ending
        return self._state in (State.OPEN, State.FAILED, State.ABORTING)

    def check_may_send(self) -> None:
        """Raises what `send` answers outside of an open transaction.  Any thread."""
        state = self._state
        if state is not State.OPEN:
            self._raise_fatal()
            if state is State.FAILED:
                self._raise_failed()
            raise Misuse(
                f"a producer with a transactional.id sends inside of a transaction; this one {state.value}"
            )

    # --- the sender's questions

    @property
    def produce_version_max(self) -> int | None:
        """The highest version of Produce that keeps to the rules of this transaction (T6)."""
        return None if self._is_v2 else requests.PRODUCE_MAX

    @property
    def is_giving_up(self) -> bool:
        """Whether nothing is worth a repeat any more."""
        return self._state in _GIVING_UP

    def may_send(self, topic: str, partition: int) -> bool:
        """Whether a batch of this partition may go now; if not, it soon may (T1)."""
        if self._state not in (State.OPEN, State.COMMITTING):
            return False
        tp = TopicPartition(topic, partition)
        if self._is_v2:
            self._added.add(tp)
        if tp in self._added:
            return True
        self._wanted.add(tp)
        if self._adding is None:
            self._adding = asyncio.get_running_loop().create_task(self._add(), name="barnabas add partitions")
        return False

    def batch_failed(self, batch: ProducerBatch, error: KafkaError) -> None:
        """A batch is not written, or nobody knows: the transaction cannot be committed."""
        if batch.has_sequence:
            self._needs_epoch = True
        self._fail(error, is_fatal=False if error.code in _OPEN_TO_DOUBT else None)

    # --- inside

    @property
    def _network(self) -> Cluster:
        assert self._cluster is not None, "connected"
        return self._cluster

    @property
    def _sender(self) -> Outlet:
        assert self._outlet is not None, "connected"
        return self._outlet

    @property
    def _name(self) -> requests.Name:
        return requests.Name(self.transactional_id, self._sequences.identity, self._is_v2)

    async def _take_id(self, held: Identity | None = None) -> None:
        try:
            identity = await requests.init(
                self._network,
                self.transactional_id,
                transaction_timeout_ms=self._transaction_timeout_ms,
                held=self._sequences.identity if held is None else held,
                timeout_ms=self._timeout_ms,
            )
        except KafkaError as error:
            if not error.retriable:
                self._fail(error, is_fatal=True)
            raise
        self._adopt(identity)

    def _adopt(self, identity: Identity) -> None:
        self._sequences.renew(identity)
        self._needs_epoch = False
        _log.debug("%s is producer %d at epoch %d", self.transactional_id, *identity)

    async def _add(self) -> None:
        """Adds the partitions wanted, and those that are wanted meanwhile."""
        try:
            while self._wanted and not self.is_giving_up:
                asked, self._wanted = self._wanted, set()
                await requests.add_partitions(self._network, self._name, asked, timeout_ms=self._timeout_ms)
                self._added |= asked
        except KafkaError as error:
            self._needs_epoch = True  # T4
            self._fail(error)
        finally:
            self._wanted.clear()
            self._adding = None
        self._sender.pump()

    async def _quiet(self) -> None:
        """Returns when no partition is being added (T2)."""
        if self._adding is not None:
            await asyncio.wait([self._adding])

    async def _end(self, *, committed: bool) -> None:
        if self._added or self._groups:  # else the coordinator has nothing to end
            self._is_ending = committed
            try:
                identity = await requests.end(
                    self._network, self._name, committed=committed, timeout_ms=self._timeout_ms
                )
            except KafkaError as error:
                if error.retriable:
                    raise
                self._is_ending = False
                self._fail(error, is_fatal=None if committed else True)
                self._raise_failed()
            if identity != self._sequences.identity:
                self._adopt(identity)
        self._added.clear()
        self._groups.clear()
        self._is_ending = False

    def _fail(self, error: KafkaError, *, is_fatal: bool | None = None) -> None:
        if is_fatal is None:
            is_fatal = isinstance(error, _FATAL_KINDS) or error.code in _FATAL_CODES
        if self._state is State.FATAL or (self._state in _GIVING_UP and not is_fatal):
            return
        self._state = State.FATAL if is_fatal else State.FAILED
        self._error = error
        if self._outlet is not None:
            self._outlet.open_gate(False)
            left = TransactionAborted(f"not sent, as the transaction failed before: {error}")
            self._outlet.fail_queued(error if is_fatal else left)

    def _expect(self, *states: State) -> None:
        self._raise_fatal()
        if self._state is State.FAILED:
            self._raise_failed()
        if self._state not in states:
            raise Misuse(f"there is no transaction to go on with: the producer {self._state.value}")

    def _raise_fatal(self) -> None:
        if self._state is State.FATAL:
            assert self._error is not None, "a failure has its error"
            raise self._error

    def _raise_failed(self) -> None:
        self._raise_fatal()
        error = self._error
        assert error is not None, "a failure has its error"
        raise TransactionAborted(f"the transaction must be aborted: {error}") from error
