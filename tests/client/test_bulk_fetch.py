"""Bulk reads from a real broker: whole topics, many partitions, transactions, restarts, and giving up."""

from collections.abc import Iterable

import pytest

from barnabas.base.errors import ConfigFault, Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.bulk_fetch import BulkFetcher, FetchedChunk
from barnabas.client.errors import ClientClosed, NoBrokersAvailable, RequestTimedOut
from barnabas.client.producer import Producer
from barnabas.records.batch import split_batches
from barnabas.records.codecs import Codec
from tests.client._faulty import faulty_broker
from tests.client._kit import settings_for
from tests.client._records import produce
from tests.client._servers import ClientServer

COUNT = 20


def fetcher_of(bootstrap: str, **more: object) -> BulkFetcher:
    return BulkFetcher(settings_for(bootstrap), fetch_max_wait_ms=50, **more)


def values_of(chunks: Iterable[FetchedChunk]) -> dict[int, list[bytes | None]]:
    """The values of every partition, control batches left out."""
    found: dict[int, list[bytes | None]] = {}
    for chunk in chunks:
        for batch in split_batches(chunk.records):
            if not batch.is_control:
                found.setdefault(chunk.partition, []).extend(r.value for r in batch.records(limit=1 << 24))
    return found


@pytest.fixture
def filled(bootstrap: str, admin: Admin, topic: str) -> str:
    """Three partitions with COUNT records each, in batches of five."""
    admin.create_topic(topic, 3)
    for partition in range(3):
        for first in range(0, COUNT, 5):
            values = [b"%d-%d" % (partition, number) for number in range(first, first + 5)]
            produce(bootstrap, topic, values, partition=partition, codec=Codec.LZ4)
    return topic


class TestReading:
    def test_several_ranges_are_read_at_once(self, bootstrap: str, filled: str) -> None:
        with fetcher_of(bootstrap) as fetcher:
            found = values_of(fetcher.read([(filled, partition, 0, COUNT) for partition in range(3)]))
        assert found == {
            partition: [b"%d-%d" % (partition, number) for number in range(COUNT)] for partition in range(3)
        }

    def test_a_fetcher_is_used_again_and_again(self, bootstrap: str, filled: str) -> None:
        with fetcher_of(bootstrap) as fetcher:
            for start in range(0, COUNT, 5):
                found = values_of(fetcher.read([(filled, 1, start, start + 5)]))
                assert found == {1: [b"1-%d" % number for number in range(start, start + 5)]}

    def test_two_reads_may_go_on_side_by_side(self, bootstrap: str, filled: str) -> None:
        with fetcher_of(bootstrap, max_partition_fetch_bytes=100) as fetcher:
            one, two = (fetcher.read([(filled, partition, 0, COUNT)]) for partition in (0, 1))
            pairs = list(zip(one, two, strict=True))
        assert values_of(first for first, _ in pairs)[0][-1] == b"0-19"
        assert values_of(second for _, second in pairs)[1][-1] == b"1-19"

    def test_two_ranges_of_one_partition_are_both_read(self, bootstrap: str, filled: str) -> None:
        with fetcher_of(bootstrap) as fetcher:
            chunks = list(fetcher.read([(filled, 0, 0, 5), (filled, 0, 10, 15)]))
        assert {chunk.range_index: values_of([chunk])[0][0] for chunk in chunks} == {0: b"0-0", 1: b"0-10"}

    def test_nothing_is_asked_for_empty_ranges(self, bootstrap: str) -> None:
        with fetcher_of(bootstrap) as fetcher:
            assert list(fetcher.read([])) == []
            assert list(fetcher.read([("no such topic", 0, 5, 5)])) == []

    def test_reading_may_end_early(self, bootstrap: str, filled: str) -> None:
        with fetcher_of(bootstrap, max_partition_fetch_bytes=100) as fetcher:
            chunks = fetcher.read([(filled, 0, 0, COUNT)])
            assert next(chunks).next_offset == 5
            chunks.close()
            assert next(fetcher.read([(filled, 0, 5, COUNT)])).next_offset == 10


class TestTransactions:
    def test_aborted_ones_are_named_and_their_marker_ends_the_range(
        self, bootstrap: str, admin: Admin, topic: str
    ) -> None:
        admin.create_topic(topic, 1)
        with Producer(settings_for(bootstrap), transactional_id=topic) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"never")
            producer.flush()
            producer.abort_transaction()
        with fetcher_of(bootstrap) as fetcher:
            chunks = list(fetcher.read([(topic, 0, 0, 2)], isolation="read_committed"))
        assert chunks[-1].next_offset == 2
        (aborted,) = {tuple(chunk.aborted or ()) for chunk in chunks}
        assert [first for _, first in aborted] == [0]

    def test_an_open_one_is_waited_for_and_named_when_it_takes_too_long(
        self, bootstrap: str, admin: Admin, topic: str
    ) -> None:
        admin.create_topic(topic, 1)
        with (
            Producer(settings_for(bootstrap), transactional_id=topic) as producer,
            fetcher_of(bootstrap) as fetcher,
        ):
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"maybe")
            producer.flush()
            chunks = fetcher.read([(topic, 0, 0, 1)], isolation="read_committed", timeout_ms=200)
            with pytest.raises(RequestTimedOut) as caught:
                next(chunks)
            assert str(caught.value) == (
                f"nothing came for 200 ms: {topic}-0 at offset 0 of 1: a transaction is open; "
                "committed data ends at offset 0 so far"
            )
            producer.commit_transaction()
            found = values_of(fetcher.read([(topic, 0, 0, 1)], isolation="read_committed"))
        assert found == {0: [b"maybe"]}


class TestFaults:
    def test_deleted_records_are_told_as_lost(self, bootstrap: str, admin: Admin, filled: str) -> None:
        admin.delete_records({TopicPartition(filled, 0): 12}).check()
        with fetcher_of(bootstrap) as fetcher:
            first, *rest = fetcher.read([(filled, 0, 3, COUNT)])
        assert first.lost is not None
        assert first.lost[:2] == (3, 12)
        assert values_of(rest)[0][-1] == b"0-19"

    @pytest.mark.slow
    def test_a_restart_of_the_broker_is_waited_for(self, own_server: ClientServer, topic: str) -> None:
        with Admin(settings_for(own_server.bootstrap_servers)) as admin:
            admin.create_topic(topic, 1)
        for number in range(10):
            produce(own_server.bootstrap_servers, topic, [b"%d" % number])
        limits = {"max_partition_fetch_bytes": 100, "barnabas_prefetch_bytes": 1}
        with fetcher_of(own_server.bootstrap_servers, **limits) as fetcher:
            chunks = fetcher.read([(topic, 0, 0, 10)])
            seen = [next(chunks), next(chunks)]
            own_server.stop()
            own_server.start()
            seen += chunks
        assert values_of(seen) == {0: [b"%d" % number for number in range(10)]}

    @pytest.mark.slow
    def test_cut_connections_lose_and_repeat_nothing(self, topic: str) -> None:
        with faulty_broker() as broker:
            with Admin(settings_for(broker.direct)) as admin:
                admin.create_topic(topic, 1)
            for number in range(40):
                produce(broker.direct, topic, [b"%d" % number])
            limits = {"max_partition_fetch_bytes": 100, "barnabas_prefetch_bytes": 1}
            with fetcher_of(broker.bootstrap_servers, **limits) as fetcher:
                seen: list[FetchedChunk] = []
                for chunk in fetcher.read([(topic, 0, 0, 40)]):
                    seen.append(chunk)
                    if len(seen) % 10 == 5:
                        broker.proxy.cut()
            assert values_of(seen) == {0: [b"%d" % number for number in range(40)]}

    def test_waiting_ends_when_the_fetcher_is_closed(self, bootstrap: str, filled: str) -> None:
        fetcher = fetcher_of(bootstrap)
        chunks = fetcher.read([(filled, 0, COUNT - 5, COUNT + 5)])
        next(chunks)
        fetcher.close()
        with pytest.raises(ClientClosed):
            next(chunks)
        assert fetcher.is_closed
        with pytest.raises(ClientClosed):
            next(fetcher.read([(filled, 0, 0, 1)]))

    def test_what_never_comes_is_given_up(self, bootstrap: str, filled: str) -> None:
        cause = f"{filled}-2 at offset 20 of 25: the partition ends"
        with fetcher_of(bootstrap) as fetcher, pytest.raises(RequestTimedOut, match=cause):
            list(fetcher.read([(filled, 2, 0, COUNT + 5)], timeout_ms=100))


class TestSettings:
    def test_wrong_settings_are_refused(self) -> None:
        with pytest.raises(ConfigFault, match=r"bootstrap\.servers"):
            BulkFetcher({})

    def test_nobody_there_is_told(self) -> None:
        with pytest.raises(NoBrokersAvailable):
            fetcher_of("127.0.0.1:1")

    def test_a_fetcher_does_not_survive_a_fork(self, bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with fetcher_of(bootstrap) as fetcher, monkeypatch.context() as patched:
            patched.setattr("os.getpid", lambda: -1)
            with pytest.raises(Misuse, match="before a fork"):
                next(fetcher.read([("t", 0, 0, 1)]))
