"""Transactional calls of Python clients, on top of the call loop of `_driver`.

A driver says how to open a producer and a consumer of its client; the calls are the same for all.
"""

import time
from typing import Any, Protocol

from tests.conformance.drivers._driver import Driver

READ_TIMEOUT_S = 30.0
QUIET_S = 0.4


class TransactionalProducer(Protocol):
    """A producer with a transactional id.  Every call returns when the broker has answered."""

    def begin(self) -> None: ...
    def send(self, topic: str, partition: int, values: list[str]) -> None: ...
    def send_offsets(self, reader: Any, topic: str, offset: int, group: str) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class Reader(Protocol):
    """A consumer; `poll` gives what came: (value, offset)."""

    def poll(self) -> list[tuple[str, int]]: ...
    def close(self) -> None: ...


class TransactionDriver(Driver):
    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._producers: list[TransactionalProducer] = []

    # What a client brings

    def open_producer(self, transactional_id: str, timeout_ms: int) -> TransactionalProducer:
        raise NotImplementedError

    def open_reader(self, topic: str, partition: int, committed: bool) -> Reader:
        """A consumer of one partition from its beginning."""
        raise NotImplementedError

    def open_member(self, group: str, topic: str) -> Reader:
        """A consumer of a group, which reads committed records and commits nothing by itself."""
        raise NotImplementedError

    # The calls

    def txn_open(self, transactional_id: str, timeout_ms: int) -> int:
        self._producers.append(self.open_producer(transactional_id, timeout_ms))
        return len(self._producers) - 1

    def txn_begin(self, number: int) -> None:
        self._producers[number].begin()

    def txn_send(self, number: int, topic: str, partition: int, values: list[str]) -> None:
        self._producers[number].send(topic, partition, values)

    def txn_commit(self, number: int) -> None:
        self._producers[number].commit()

    def txn_abort(self, number: int) -> None:
        self._producers[number].abort()

    def txn_close(self, number: int) -> None:
        self._producers[number].close()

    def txn_read(self, topic: str, partition: int, committed: bool, count: int) -> list[str]:
        """The first `count` records; 0 is what comes until it stays quiet."""
        reader = self.open_reader(topic, partition, committed)
        try:
            return [value for value, _ in _collect(reader, count)]
        finally:
            reader.close()

    def txn_copy(
        self, number: int, group: str, source: str, target: str, count: int, commit: bool
    ) -> list[str]:
        """Reads in a group, writes what was read and where it stands in one transaction; then ends it."""
        producer, reader = self._producers[number], self.open_member(group, source)
        try:
            found = _collect(reader, count)
            producer.begin()
            producer.send(target, 0, [value for value, _ in found])
            producer.send_offsets(reader, source, found[-1][1] + 1, group)
            if commit:
                producer.commit()
            else:
                producer.abort()
        finally:
            reader.close()
        return [value for value, _ in found]


def _collect(reader: Reader, count: int) -> list[tuple[str, int]]:
    deadline = time.monotonic() + (READ_TIMEOUT_S if count else QUIET_S)
    found: list[tuple[str, int]] = []
    while time.monotonic() < deadline and (not count or len(found) < count):
        found += reader.poll()
    return found
