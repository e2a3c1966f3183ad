"""Offsets in SQLite, alone and in the user's transaction, and a consumer that keeps its offsets there."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.consumer import Consumer
from barnabas.client.errors import CommitFailed
from barnabas.client.offset_stores.sqlite import SqliteOffsets
from barnabas.client.subscription import OffsetAndMetadata
from tests.client._consumers import read
from tests.client._kit import settings_for
from tests.client._records import produce
from tests.client.offset_stores._suite import A, StoreSuite


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[], SqliteOffsets]]:
    opened: list[SqliteOffsets] = []

    def open_again() -> SqliteOffsets:
        opened.append(SqliteOffsets(tmp_path / "offsets.db"))
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()


class TestSqlite(StoreSuite):
    def test_epoch_and_note_are_kept(self, make: Callable[[], SqliteOffsets]) -> None:
        make().save("g", {A: OffsetAndMetadata(5, "note", 3)})
        assert make().load("g", [A]) == {A: OffsetAndMetadata(5, "note", 3)}

    def test_the_table_may_have_another_name_but_a_plain_one(self, tmp_path: Path) -> None:
        SqliteOffsets(tmp_path / "x.db", table="mine").close()
        with pytest.raises(Misuse, match="not a plain name"):
            SqliteOffsets(tmp_path / "x.db", table="a; drop")


class TestTheUsersTransaction:
    def test_offsets_go_with_the_results(self, tmp_path: Path) -> None:
        connection = sqlite3.connect(tmp_path / "results.db")
        connection.execute("create table results (value)")
        store = SqliteOffsets(connection)
        connection.commit()
        connection.execute("insert into results values (1)")
        store.save("g", {A: OffsetAndMetadata(5)})
        connection.rollback()
        assert store.load("g", [A]) == {}
        with connection:
            connection.execute("insert into results values (1)")
            store.save("g", {A: OffsetAndMetadata(5)})
        assert store.load("g", [A])[A].offset == 5
        store.close()
        assert connection.execute("select count(*) from results").fetchone() == (1,), "still the user's"
        connection.close()


@pytest.mark.slow
class TestAConsumerWithAStore:
    def test_goes_on_where_the_store_says(
        self, bootstrap: str, admin: Admin, topic: str, group: str, tmp_path: Path
    ) -> None:
        admin.create_topic(topic, 1)
        produce(bootstrap, topic, [b"%d" % n for n in range(6)])
        tp = TopicPartition(topic, 0)
        path = tmp_path / "offsets.db"
        settings = settings_for(bootstrap, group_id=group, auto_offset_reset="earliest")
        for subscribes, expected in ((True, b"0"), (True, b"2"), (False, b"4")):
            store = SqliteOffsets(path)
            with Consumer(settings, offset_store=store) as consumer:
                consumer.subscribe(topic) if subscribes else consumer.assign([tp])
                records = read(consumer, 2)
                assert records[0].value == expected
                consumer.commit() if subscribes else consumer.commit_async()
                assert consumer.committed(tp) == {tp: OffsetAndMetadata(records[-1].offset + 1, "", 0)}
            store.close()
        with Consumer(settings) as plain:
            assert plain.committed(tp) == {}, "the cluster knows nothing of it"

    def test_needs_a_group_to_name_its_offsets_by(self, bootstrap: str, topic: str, tmp_path: Path) -> None:
        store = SqliteOffsets(tmp_path / "offsets.db")
        with (
            Consumer(settings_for(bootstrap), offset_store=store) as consumer,
            pytest.raises(Misuse, match=r"an offset store needs group\.id"),
        ):
            consumer.assign([TopicPartition(topic, 0)])
        store.close()

    def test_results_are_written_once_though_a_member_was_put_out(
        self, bootstrap: str, admin: Admin, topic: str, group: str, tmp_path: Path
    ) -> None:
        admin.create_topic(topic, 1)
        produce(bootstrap, topic, [b"%d" % n for n in range(4)])
        settings = settings_for(bootstrap, group_id=group, auto_offset_reset="earliest")
        path = tmp_path / "results.db"
        setup = sqlite3.connect(path)
        setup.execute("create table results (value)")
        setup.close()
        # Both read the partition by hand, as two members may that do not know of each other yet.
        connections = [sqlite3.connect(path) for _ in range(2)]
        stores = [SqliteOffsets(connection) for connection in connections]
        for connection in connections:
            connection.commit()
        with (
            Consumer(settings, offset_store=stores[0]) as old,
            Consumer(settings, offset_store=stores[1]) as new,
        ):
            for consumer in (old, new):
                consumer.assign([TopicPartition(topic, 0)])

            def write(index: int, consumer: Consumer) -> None:
                records = read(consumer, 4)
                with connections[index]:
                    connections[index].executemany(
                        "insert into results values (?)", [(r.value,) for r in records]
                    )
                    stores[index].save(group, consumer.positions())

            write(1, new)
            with pytest.raises(CommitFailed):
                write(0, old)
        found = connections[0].execute("select value from results order by value").fetchall()
        assert [value for (value,) in found] == [b"0", b"1", b"2", b"3"]
        for connection in connections:
            connection.close()
