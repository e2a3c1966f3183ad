"""Offsets in a table of an SQLite database, that of the results if one likes: one transaction for both.

Given a connection, `save` takes part in the transaction that is open on it and leaves the end of it to the
user; without an open one, or given a path, it makes and commits its own.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.offset_stores.store import overtaken
from barnabas.client.subscription import OffsetAndMetadata

__all__ = ["SqliteOffsets"]


class SqliteOffsets:
    """Offsets of any number of groups in one table, which is made if it is missing."""

    def __init__(self, database: sqlite3.Connection | str | Path, *, table: str = "barnabas_offsets") -> None:
        if not table.isidentifier():
            raise Misuse(f"{table!r} is not a plain name for a table")
        self._is_own = not isinstance(database, sqlite3.Connection)
        self._connection = database if isinstance(database, sqlite3.Connection) else sqlite3.connect(database)
        self._table = table
        self._known: dict[tuple[str, TopicPartition], int] = {}  # -1: seen to have none
        self._connection.execute(
            f"create table if not exists {table} (consumer_group text, topic text, partition integer, "
            "next_offset integer not null, leader_epoch integer not null, metadata text not null, "
            "primary key (consumer_group, topic, partition)) without rowid"
        )

    def load(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        for tp in partitions:
            row = self._connection.execute(
                f"select next_offset, leader_epoch, metadata from {self._table} "
                "where consumer_group = ? and topic = ? and partition = ?",
                (group, *tp),
            ).fetchone()
            self._known[group, tp] = -1 if row is None else row[0]
            if row is not None:
                found[tp] = OffsetAndMetadata(row[0], row[2], row[1])
        return found

    def save(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if self._connection.in_transaction:
            self._write(group, offsets)
            return
        with self._connection:
            self._connection.execute("begin immediate")
            self._write(group, offsets)

    def _write(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for tp, at in offsets.items():
            known = self._known.get((group, tp))
            changed = self._connection.execute(
                f"insert into {self._table} values (?, ?, ?, ?, ?, ?) on conflict do update set "
                "next_offset = excluded.next_offset, leader_epoch = excluded.leader_epoch, "
                f"metadata = excluded.metadata where ? is null or {self._table}.next_offset = ?",
                (group, *tp, at.offset, at.leader_epoch, at.metadata, known, known),
            )
            if changed.rowcount == 0:
                raise overtaken(group, tp)
        # Only now: a refusal above leaves the transaction, and what is known, as they were.
        for tp, at in offsets.items():
            self._known[group, tp] = at.offset

    def close(self) -> None:
        if self._is_own:
            self._connection.close()
