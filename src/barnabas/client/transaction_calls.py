"""The calls of the producers' two faces that are about transactions.

    with producer.transaction():                 # committed at the end, aborted by an exception
        producer.send("accounts", b"-5", b"alice")
        producer.send("accounts", b"+5", b"bob")

    with producer.transaction(consumer):         # and the consumer's positions are part of it
        for record in consumer.poll(1):
            producer.send("out", work(record))

X1  a block that ends with an exception aborts, and its consumer goes back to where the transaction began;
    the exception goes on
X2  when the transaction failed, and its abort finds that another producer took over, that is what is raised
X3  a commit whose outcome is not known is not aborted: the error goes on, and `commit_transaction` may be
    called again
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

from barnabas.base.errors import BarnabasError, Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.errors import ProducerFenced, TransactionAborted
from barnabas.client.offsets import GroupIdentity
from barnabas.client.poll_side import as_offsets
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.client.thread import ClientThread
from barnabas.client.transactions import Transactions

if TYPE_CHECKING:
    from barnabas.client.aio_consumer import Consumer as AsyncConsumer
    from barnabas.client.consumer import Consumer
    from barnabas.client.producer_core import ProducerCore

__all__ = ["AsyncTransactionCalls", "TransactionCalls"]

_log: Final = logging.getLogger("barnabas.client.producer")

_Offsets = Mapping[TopicPartition, int | OffsetAndMetadata]


def _transactions_of(core: "ProducerCore") -> Transactions:
    if core.transactions is None:
        raise Misuse("transactions need the setting transactional.id")
    return core.transactions


class TransactionCalls:
    """The synchronous face."""

    _core: "ProducerCore"
    _thread: ClientThread

    def init_transactions(self) -> None:
        """Takes over the transactional id: fences who had it before, and ends what that one left open.

        The first `begin_transaction` does it too.  Raises KafkaError: after a retriable one, call again.
        """
        self._thread.call(_transactions_of(self._core).init())

    def begin_transaction(self) -> None:
        """From here on records are part of a transaction.  Raises ProducerFenced, Misuse."""
        self._thread.call(_transactions_of(self._core).begin())

    def send_offsets_to_transaction(self, offsets: _Offsets, group_metadata: GroupIdentity) -> None:
        """Commits a consumer's offsets with the transaction; `group_metadata` is the consumer's.

        Raises TransactionAborted when the group went on without the consumer, ProducerFenced.
        """
        self._thread.call(_transactions_of(self._core).send_offsets(as_offsets(offsets), group_metadata))

    def commit_transaction(self) -> None:
        """Sends what is left, and makes all of it visible at once.

        Raises TransactionAborted when that cannot be (then abort), ProducerFenced when another producer took
        over; after RequestTimedOut and ConnectionLost the outcome is open: call it again.
        """
        self._thread.call(_transactions_of(self._core).commit())

    def abort_transaction(self) -> None:
        """Gives up the transaction: no reader with isolation.level=read_committed sees any of it."""
        self._thread.call(_transactions_of(self._core).abort())

    @contextmanager
    def transaction(self, consumer: "Consumer | None" = None) -> Iterator[None]:
        """A block that is committed whole, or aborted when an exception leaves it.

        With a consumer its positions are part of the transaction; poll inside the block.  After an abort it
        goes back to the offsets committed last.
        """
        _check(consumer)
        self.begin_transaction()
        try:
            yield
            if consumer is not None:
                self.send_offsets_to_transaction(consumer.positions(), consumer.group_metadata())
            self.commit_transaction()
        except BaseException as error:
            try:
                try:
                    self._thread.call(_transactions_of(self._core).abandon())
                finally:
                    if consumer is not None:
                        consumer.rewind()
            except BarnabasError as failure:
                _settle(error, failure)
            raise


class AsyncTransactionCalls(ABC):
    """The asynchronous face; see TransactionCalls."""

    @abstractmethod
    def _started(self) -> "ProducerCore":
        """The core of a producer that runs.  Raises ClientClosed, Misuse."""

    async def init_transactions(self) -> None:
        """Takes over the transactional id: fences who had it before, and ends what that one left open."""
        await _transactions_of(self._started()).init()

    async def begin_transaction(self) -> None:
        """From here on records are part of a transaction.  Raises ProducerFenced, Misuse."""
        await _transactions_of(self._started()).begin()

    async def send_offsets_to_transaction(self, offsets: _Offsets, group_metadata: GroupIdentity) -> None:
        """Commits a consumer's offsets with the transaction; `group_metadata` is the consumer's."""
        await _transactions_of(self._started()).send_offsets(as_offsets(offsets), group_metadata)

    async def commit_transaction(self) -> None:
        """Sends what is left, and makes all of it visible at once."""
        await _transactions_of(self._started()).commit()

    async def abort_transaction(self) -> None:
        """Gives up the transaction: no reader with isolation.level=read_committed sees any of it."""
        await _transactions_of(self._started()).abort()

    @asynccontextmanager
    async def transaction(self, consumer: "AsyncConsumer | None" = None) -> AsyncIterator[None]:
        """A block that is committed whole, or aborted when an exception leaves it."""
        _check(consumer)
        await self.begin_transaction()
        try:
            yield
            if consumer is not None:
                await self.send_offsets_to_transaction(consumer.positions(), consumer.group_metadata())
            await self.commit_transaction()
        except BaseException as error:
            try:
                try:
                    await _transactions_of(self._started()).abandon()
                finally:
                    if consumer is not None:
                        await consumer.rewind()
            except BarnabasError as failure:
                _settle(error, failure)
            raise


def _check(consumer: "Consumer | AsyncConsumer | None") -> None:
    if consumer is not None and consumer.commits_by_itself:
        raise Misuse("a consumer whose positions are part of transactions needs enable.auto.commit=false")


def _settle(error: BaseException, failure: BarnabasError) -> None:
    """The abort after `error` failed too."""
    if isinstance(error, TransactionAborted) and isinstance(failure, ProducerFenced):
        raise failure from error  # X2
    error.add_note(f"what followed failed too: {failure}")
    _log.warning("after a transaction failed: %s", failure)
