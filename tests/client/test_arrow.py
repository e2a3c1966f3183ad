"""Record batches from a consumer, and whole topics as tables."""

import datetime

import pytest

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.arrow import COLUMNS, to_arrow
from barnabas.records.codecs import Codec
from tests.client._consumers import consumer_of, parts
from tests.client._kit import settings_for
from tests.client._records import produce

pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.slow


@pytest.fixture
def minutes(bootstrap: str, admin: Admin, topic: str) -> str:
    """Two partitions; record n of both is from minute n."""
    admin.create_topic(topic, 2, configs={"retention.ms": "-1"})
    for minute in range(5):
        for partition in (0, 1):
            produce(
                bootstrap,
                topic,
                [(b"k", b"%d-%d" % (partition, minute))],
                partition=partition,
                timestamp=60_000 * minute,
                codec=Codec.LZ4,
            )
    return topic


class TestPolling:
    def test_fetches_become_batches(self, bootstrap: str, minutes: str) -> None:
        with consumer_of(bootstrap) as consumer:
            consumer.assign(parts(minutes, 0, 1))
            rows: list[dict[str, object]] = []
            while len(rows) < 10:
                for batch in consumer.poll_batches(5):
                    assert batch.schema.names == list(COLUMNS)
                    rows += batch.to_pylist()
            assert consumer.position(TopicPartition(minutes, 0)) == 5
            assert consumer.metrics()["records-consumed-total"] == 10
        first = next(row for row in rows if row["partition"] == 1)
        assert first == {
            "key": b"k",
            "value": b"1-0",
            "topic": minutes,
            "partition": 1,
            "offset": 0,
            "timestamp": datetime.datetime.fromtimestamp(0, datetime.UTC),
            "timestampType": 0,
            "headers": first["headers"],
        }
        assert not first["headers"]

    def test_columns_can_be_chosen(self, bootstrap: str, minutes: str) -> None:
        with consumer_of(bootstrap) as consumer:
            consumer.assign(parts(minutes, 0))
            (batch, *_) = consumer.poll_batches(5, columns=["offset", "value"])
            assert batch.schema.names == ["offset", "value"]
            consumer.seek_to_beginning()
            with pytest.raises(Misuse, match="no column is called colour"):
                consumer.poll_batches(5, columns=["colour"])

    def test_positions_are_committed_as_with_records(self, bootstrap: str, minutes: str, group: str) -> None:
        tp = TopicPartition(minutes, 0)
        with consumer_of(bootstrap, group_id=group) as consumer:
            consumer.subscribe(minutes)
            seen = 0
            while seen < 10:
                seen += sum(batch.num_rows for batch in consumer.poll_batches(1))
        with consumer_of(bootstrap, group_id=group) as consumer:
            assert consumer.committed(tp)[tp].offset == 5

    def test_polling_without_data_returns_in_time(self, bootstrap: str) -> None:
        with consumer_of(bootstrap) as consumer:
            assert consumer.poll_batches(0.01) == []


class TestTables:
    def test_a_whole_topic(self, bootstrap: str, minutes: str) -> None:
        table = to_arrow(minutes, settings=settings_for(bootstrap))
        assert table.num_rows == 10
        assert sorted(table.column("value").to_pylist())[:2] == [b"0-0", b"0-1"]

    def test_a_stretch_of_time(self, bootstrap: str, minutes: str) -> None:
        since = datetime.datetime.fromtimestamp(60, datetime.UTC)
        table = to_arrow(
            minutes, since=since, until=180_000, columns=["value"], settings=settings_for(bootstrap)
        )
        assert table.schema.names == ["value"]
        assert sorted(table.column("value").to_pylist()) == [b"0-1", b"0-2", b"1-1", b"1-2"]

    def test_nothing_is_an_empty_table(self, bootstrap: str, minutes: str) -> None:
        table = to_arrow(minutes, since=999_999, settings=settings_for(bootstrap))
        assert (table.num_rows, table.schema.names) == (0, list(COLUMNS))
