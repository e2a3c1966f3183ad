"""The synchronous consumer against a real broker: reading, seeking, committing, closing."""

import datetime
import gc
import re
import threading
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from barnabas.base.errors import ConfigFault, Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.consumer import Consumer
from barnabas.client.errors import (
    ClientClosed,
    KafkaError,
    NoBrokersAvailable,
    NoOffset,
    OffsetOutOfRange,
    Serialization,
    UnknownTopic,
)
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.records.codecs import Codec
from tests.client._consumers import Told, consumer_of, parts, poll_until, read
from tests.client._records import produce, values_of
from tests.client._servers import ClientServer

pytestmark = pytest.mark.slow


@pytest.fixture
def filled(bootstrap: str, admin: Admin, topic: str) -> str:
    """A topic of two partitions with ten records in each."""
    admin.create_topic(topic, 2)
    for partition in (0, 1):
        produce(bootstrap, topic, [b"%d-%d" % (partition, n) for n in range(10)], partition=partition)
    return topic


class TestReading:
    def test_a_record_has_everything(self, bootstrap: str, admin: Admin, topic: str) -> None:
        admin.create_topic(topic, 1, configs={"retention.ms": "-1"})
        produce(bootstrap, topic, [(b"key", b"value")], timestamp=1234567890123)
        with consumer_of(bootstrap) as consumer:
            consumer.assign(parts(topic, 0))
            (record,) = read(consumer, 1)
        assert (record.topic, record.partition, record.offset) == (topic, 0, 0)
        assert (record.timestamp, record.key, record.value, record.headers) == (
            1234567890123,
            b"key",
            b"value",
            (),
        )

    def test_partitions_are_read_in_order(self, bootstrap: str, filled: str) -> None:
        with consumer_of(bootstrap) as consumer:
            consumer.assign(parts(filled, 0, 1))
            records = read(consumer, 20)
        for partition in (0, 1):
            found = [r.value for r in records if r.partition == partition]
            assert found == [b"%d-%d" % (partition, n) for n in range(10)]

    def test_poll_gives_no_more_than_asked_for(self, bootstrap: str, filled: str) -> None:
        with consumer_of(bootstrap, max_poll_records=4) as consumer:
            consumer.assign(parts(filled, 0))
            assert len(consumer.poll(5)) == 4
            assert len(consumer.poll(5, max_records=3)) == 3

    def test_poll_without_records_returns_in_time(self, bootstrap: str, filled: str) -> None:
        with consumer_of(bootstrap) as consumer:
            assert consumer.poll(0.01) == []
            consumer.assign(parts(filled, 0))
            consumer.seek_to_end()
            assert consumer.poll(0.05) == []

    @pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
    def test_compressed_batches_are_read(self, bootstrap: str, admin: Admin, topic: str, codec: str) -> None:
        admin.create_topic(topic, 1)
        produce(bootstrap, topic, [b"x" * 50] * 100, codec=Codec[codec.upper()])
        with consumer_of(bootstrap) as consumer:
            consumer.assign(parts(topic, 0))
            assert values_of(read(consumer, 100)) == [b"x" * 50] * 100

    def test_more_than_one_fetch_holds_is_read(self, bootstrap: str, admin: Admin, topic: str) -> None:
        admin.create_topic(topic, 2)
        for _ in range(5):
            produce(bootstrap, topic, [b"x" * 1000] * 40, partition=1)
        produce(bootstrap, topic, [b"x" * 70_000], partition=0)
        small = {"max_partition_fetch_bytes": 1000, "fetch_max_bytes": 2000, "barnabas_prefetch_bytes": 1000}
        with consumer_of(bootstrap, **small) as consumer:
            consumer.assign(parts(topic, 0, 1))
            assert len(read(consumer, 201)) == 201

    def test_iterating_gives_record_after_record(self, bootstrap: str, filled: str) -> None:
        with consumer_of(bootstrap) as consumer:
            consumer.assign(parts(filled, 0))
            found = []
            for record in consumer:
                found.append(record.value)
                if len(found) == 10:
                    break
        assert found == [b"0-%d" % n for n in range(10)]

    def test_what_an_iteration_left_comes_with_the_next_poll(self, bootstrap: str, filled: str) -> None:
        with consumer_of(bootstrap) as consumer:
            consumer.assign(parts(filled, 0))
            assert next(consumer).value == b"0-0"
            assert consumer.position(TopicPartition(filled, 0)) == 1
            assert consumer.poll(1)[0].value == b"0-1"

    def test_deserializers_work_when_a_record_is_looked_at(
        self, bootstrap: str, admin: Admin, topic: str
    ) -> None:
        admin.create_topic(topic, 1)
        produce(bootstrap, topic, [(b"k", b'{"a": 1}'), (b"k", b"no json")])
        with consumer_of(bootstrap, key_deserializer="str", value_deserializer="json") as consumer:
            consumer.assign(parts(topic, 0))
            good, bad = read(consumer, 2)
        found: tuple[object, object] = (good.key, good.value)
        assert found == ("k", {"a": 1})
        with pytest.raises(Serialization, match=f"{topic}-0 at offset 1: the value cannot be deserialized"):
            bad.value  # noqa: B018  # looking is the test

    def test_interceptors_see_polls_and_commits(self, bootstrap: str, filled: str, group: str) -> None:
        class Watcher:
            def __init__(self) -> None:
                self.seen: list[object] = []

            def on_consume(self, records: list[object]) -> list[object]:
                self.seen.append(len(records))
                return records[:1]

            def on_commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
                self.seen.append([at.offset for at in offsets.values()])
                raise RuntimeError("an interceptor that fails stops nothing")

        watcher = Watcher()
        with consumer_of(bootstrap, group_id=group, interceptor_classes=[watcher]) as consumer:
            consumer.assign(parts(filled, 0))
            assert len(poll_until([consumer], lambda: watcher.seen)) == 1
            consumer.commit()
        assert watcher.seen == [10, [10]]


class TestPositions:
    def test_seek_goes_to_an_offset(self, bootstrap: str, filled: str) -> None:
        tp = TopicPartition(filled, 0)
        with consumer_of(bootstrap) as consumer:
            consumer.assign([tp])
            read(consumer, 10)
            consumer.seek(tp, 7)
            assert consumer.position(tp) == 7
            assert values_of(read(consumer, 3)) == [b"0-7", b"0-8", b"0-9"]

    def test_seek_to_both_ends(self, bootstrap: str, filled: str) -> None:
        first, second = parts(filled, 0, 1)
        with consumer_of(bootstrap) as consumer:
            consumer.assign([first, second])
            consumer.seek_to_end(first)
            consumer.seek_to_beginning(second)
            assert consumer.position(first) == 10
            assert consumer.position(second) == 0

    def test_seek_to_a_time(self, bootstrap: str, admin: Admin, topic: str) -> None:
        admin.create_topic(topic, 1, configs={"retention.ms": "-1"})
        for minute in range(3):
            produce(bootstrap, topic, [b"%d" % minute], timestamp=60_000 * minute)
        tp = TopicPartition(topic, 0)
        with consumer_of(bootstrap) as consumer:
            consumer.assign([tp])
            consumer.seek_to_time(30_000)
            assert values_of(read(consumer, 2)) == [b"1", b"2"]
            consumer.seek_to_time(datetime.datetime.fromtimestamp(120, datetime.UTC), tp)
            assert values_of(read(consumer, 1)) == [b"2"]
            consumer.seek_to_time(999_999)
            assert consumer.position(tp) == 3
            found = consumer.offsets_for_times({tp: 30_000})[tp]
            assert found is not None
            assert (found.offset, found.timestamp) == (1, 60_000)
            assert consumer.offsets_for_times({tp: 999_999}) == {tp: None}

    def test_a_time_without_a_zone_is_refused(self, bootstrap: str, filled: str) -> None:
        with consumer_of(bootstrap) as consumer, pytest.raises(Misuse, match="no time zone"):
            consumer.seek_to_time(datetime.datetime(2020, 1, 1))  # that is what is refused

    def test_the_ends_of_logs_can_be_asked_for(self, bootstrap: str, filled: str) -> None:
        with consumer_of(bootstrap) as consumer:
            tps = parts(filled, 0, 1)
            assert consumer.beginning_offsets(*tps) == dict.fromkeys(tps, 0)
            assert consumer.end_offsets(tps) == dict.fromkeys(tps, 10)  # type: ignore[arg-type]  # a list works too
            assert len(consumer.partitions_for(filled)) == 2

    def test_a_paused_partition_stands_still(self, bootstrap: str, filled: str) -> None:
        first, second = parts(filled, 0, 1)
        with consumer_of(bootstrap) as consumer:
            consumer.assign([first, second])
            consumer.pause(first)
            assert consumer.paused() == {first}
            assert {r.partition for r in read(consumer, 10)} == {1}
            assert consumer.poll(0.1) == []
            consumer.resume(first)
            assert {r.partition for r in read(consumer, 10)} == {0}

    def test_lag_counts_what_is_left(self, bootstrap: str, filled: str) -> None:
        tp = TopicPartition(filled, 0)
        with consumer_of(bootstrap) as consumer:
            consumer.assign([tp])
            assert consumer.lag() == {tp: None}
            assert len(consumer.poll(5, 4)) == 4
            assert consumer.lag() == {tp: 6}

    def test_a_partition_that_is_not_assigned_cannot_be_sought(self, bootstrap: str, filled: str) -> None:
        with consumer_of(bootstrap) as consumer, pytest.raises(Misuse, match="not assigned"):
            consumer.seek(TopicPartition(filled, 0), 0)


class TestResets:
    @pytest.mark.parametrize(
        ("rule", "position"),
        [("earliest", 0), ("latest", 10), ("by_duration:P20000D", 0), ("by_duration:PT0S", 10)],
    )
    def test_without_a_commit_the_rule_decides(
        self, bootstrap: str, filled: str, group: str, rule: str, position: int
    ) -> None:
        with consumer_of(bootstrap, group_id=group, auto_offset_reset=rule) as consumer:
            consumer.assign(parts(filled, 0))
            assert consumer.position(TopicPartition(filled, 0)) == position

    def test_without_a_rule_the_user_is_asked(self, bootstrap: str, filled: str, group: str) -> None:
        tp = TopicPartition(filled, 0)
        with consumer_of(bootstrap, group_id=group, auto_offset_reset="none") as consumer:
            consumer.assign([tp])
            for _ in range(2):
                with pytest.raises(
                    NoOffset, match=f"{filled}-0: no offset is committed, and auto.offset.reset"
                ):
                    consumer.poll(5)
            consumer.seek(tp, 9)
            assert values_of(read(consumer, 1)) == [b"0-9"]

    def test_an_offset_outside_the_log_is_reset(self, bootstrap: str, filled: str) -> None:
        tp = TopicPartition(filled, 0)
        with consumer_of(bootstrap) as consumer:
            consumer.assign([tp])
            consumer.seek(tp, 99)
            assert values_of(read(consumer, 1)) == [b"0-0"]

    def test_an_offset_outside_the_log_without_a_rule_is_an_error(self, bootstrap: str, filled: str) -> None:
        tp = TopicPartition(filled, 0)
        with consumer_of(bootstrap, auto_offset_reset="none") as consumer:
            consumer.assign([tp])
            consumer.seek(tp, 99)
            with pytest.raises(OffsetOutOfRange, match="offset 99 is outside the log"):
                consumer.poll(5)
            consumer.seek(tp, 9)
            assert values_of(read(consumer, 1)) == [b"0-9"]


class TestIsolation:
    def test_aborted_and_open_transactions_are_hidden_from_those_who_ask(
        self, bootstrap: str, admin: Admin, topic: str, name: Callable[[str], str]
    ) -> None:
        admin.create_topic(topic, 1)
        writer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": name("txn"), "linger.ms": 0, "log_level": 0}
        )
        writer.init_transactions(20)
        for value, commits in ((b"dead", False), (b"alive", True), (b"dead too", False)):
            writer.begin_transaction()
            writer.produce(topic, value, partition=0)
            writer.flush(20)
            writer.commit_transaction(20) if commits else writer.abort_transaction(20)
        writer.begin_transaction()
        writer.produce(topic, b"open", partition=0)
        writer.flush(20)
        with consumer_of(bootstrap, isolation_level="read_committed") as consumer:
            consumer.assign(parts(topic, 0))
            assert values_of(read(consumer, 1)) == [b"alive"]
            assert consumer.poll(0.2) == []
            assert consumer.position(TopicPartition(topic, 0)) == 6, (
                "behind the last marker, before what is open"
            )
            assert consumer.lag() == {TopicPartition(topic, 0): 0}
        with consumer_of(bootstrap) as consumer:
            consumer.assign(parts(topic, 0))
            assert values_of(read(consumer, 4)) == [b"dead", b"alive", b"dead too", b"open"]
        writer.abort_transaction(20)


class TestCommits:
    def test_what_was_committed_is_where_the_next_one_starts(
        self, bootstrap: str, filled: str, group: str
    ) -> None:
        tp = TopicPartition(filled, 0)
        with consumer_of(bootstrap, group_id=group, enable_auto_commit=False) as consumer:
            consumer.assign([tp])
            assert len(consumer.poll(5, 4)) == 4
            consumer.commit()
            assert consumer.committed() == {tp: OffsetAndMetadata(4, "", 0)}
        with consumer_of(bootstrap, group_id=group) as consumer:
            consumer.assign([tp])
            assert values_of(read(consumer, 1)) == [b"0-4"]

    def test_offsets_can_carry_a_note(self, bootstrap: str, filled: str, group: str) -> None:
        tp = TopicPartition(filled, 0)
        with consumer_of(bootstrap, group_id=group) as consumer:
            consumer.commit({tp: OffsetAndMetadata(3, "why", 0)})
            assert consumer.committed(tp) == {tp: OffsetAndMetadata(3, "why", 0)}
            consumer.commit({tp: 5})
            assert consumer.committed(tp)[tp].offset == 5

    def test_an_asynchronous_commit_tells_how_it_went_in_a_later_poll(
        self, bootstrap: str, filled: str, group: str
    ) -> None:
        tp = TopicPartition(filled, 0)
        told: list[tuple[object, object, int]] = []
        with consumer_of(bootstrap, group_id=group) as consumer:
            consumer.commit_async(
                {tp: 3}, lambda offsets, error: told.append((offsets, error, threading.get_ident()))
            )
            poll_until([consumer], lambda: told)
        assert told == [({tp: OffsetAndMetadata(3)}, None, threading.get_ident())]

    def test_a_callback_that_poll_did_not_reach_is_called_by_close(
        self, bootstrap: str, filled: str, group: str
    ) -> None:
        told: list[object] = []
        with consumer_of(bootstrap, group_id=group) as consumer:
            consumer.commit_async({TopicPartition(filled, 0): 3}, lambda offsets, error: told.append(error))
        assert told == [None]

    def test_later_commits_are_not_overtaken(self, bootstrap: str, filled: str, group: str) -> None:
        tp = TopicPartition(filled, 0)
        with consumer_of(bootstrap, group_id=group) as consumer:
            for offset in range(50):
                consumer.commit_async({tp: offset})
            consumer.commit({tp: 50})
            assert consumer.committed(tp)[tp].offset == 50

    def test_closing_commits_by_itself(self, bootstrap: str, filled: str, group: str) -> None:
        tp = TopicPartition(filled, 0)
        with consumer_of(bootstrap, group_id=group) as consumer:
            consumer.assign([tp])
            read(consumer, 10)
        with consumer_of(bootstrap, group_id=group) as consumer:
            assert consumer.committed(tp)[tp].offset == 10

    def test_polling_commits_by_itself_what_the_poll_before_gave(
        self, bootstrap: str, filled: str, group: str
    ) -> None:
        tp = TopicPartition(filled, 0)
        with (
            consumer_of(bootstrap, group_id=group, auto_commit_interval_ms=0) as consumer,
            consumer_of(bootstrap, group_id=group) as other,
        ):
            consumer.assign([tp])
            assert len(consumer.poll(5, 4)) == 4
            consumer.poll(0, 1)
            poll_until([other], lambda: other.committed(tp))
            assert other.committed(tp)[tp].offset == 4

    def test_a_commit_in_an_iteration_does_not_pass_what_was_not_yielded(
        self, bootstrap: str, filled: str, group: str
    ) -> None:
        tp = TopicPartition(filled, 0)
        with consumer_of(bootstrap, group_id=group) as consumer:
            consumer.assign([tp])
            for record in consumer:
                if record.offset == 3:
                    consumer.commit()
                    assert consumer.committed(tp)[tp].offset == 4
                    break
        with consumer_of(bootstrap, group_id=group) as other:
            assert other.committed(tp)[tp].offset == 4

    def test_committing_needs_a_group(self, bootstrap: str, filled: str) -> None:
        with consumer_of(bootstrap) as consumer:
            with pytest.raises(Misuse, match=r"needs group\.id"):
                consumer.commit({TopicPartition(filled, 0): 1})
            with pytest.raises(Misuse, match=r"need group\.id"):
                consumer.committed(TopicPartition(filled, 0))


class TestSubscribing:
    def test_a_member_reads_what_it_is_given(self, bootstrap: str, filled: str, group: str) -> None:
        told = Told()
        with consumer_of(bootstrap, group_id=group) as consumer:
            consumer.subscribe(filled, listener=told)
            assert len(read(consumer, 20)) == 20
            assert consumer.assignment() == set(parts(filled, 0, 1))
            assert consumer.subscription() == {filled}
        assert told.events == [("assigned", [0, 1]), ("revoked", [0, 1])]

    def test_positions_can_be_sought_when_partitions_come(
        self, bootstrap: str, filled: str, group: str
    ) -> None:
        with consumer_of(bootstrap, group_id=group) as consumer:

            class Listener:
                def on_assigned(self, partitions: list[TopicPartition]) -> None:
                    for tp in partitions:
                        consumer.seek(tp, 8)

            consumer.subscribe([filled], listener=Listener())
            assert set(values_of(read(consumer, 4))) == {b"0-8", b"0-9", b"1-8", b"1-9"}

    def test_what_a_listener_raises_is_raised_from_poll(
        self, bootstrap: str, filled: str, group: str
    ) -> None:
        class Listener:
            def on_assigned(self, partitions: list[TopicPartition]) -> None:
                raise LookupError("from the listener")

        with consumer_of(bootstrap, group_id=group) as consumer:
            consumer.subscribe([filled], listener=Listener())
            with pytest.raises(LookupError, match="from the listener"):
                poll_until([consumer], lambda: False)
            assert len(read(consumer, 20)) == 20, "the group goes on"

    def test_a_pattern_matches_topics_that_come_later(
        self, bootstrap: str, admin: Admin, name: Callable[[str], str], group: str
    ) -> None:
        stem = name("pattern")
        admin.create_topic(f"{stem}-1", 1)
        produce(bootstrap, f"{stem}-1", [b"one"])
        with consumer_of(bootstrap, group_id=group, metadata_max_age_ms=100) as consumer:
            consumer.subscribe(re.compile(f"{stem}-.*"))
            assert values_of(read(consumer, 1)) == [b"one"]
            admin.create_topic(f"{stem}-2", 1)
            produce(bootstrap, f"{stem}-2", [b"two"])
            assert values_of(read(consumer, 1)) == [b"two"]
            assert consumer.subscription() == {f"{stem}-1", f"{stem}-2"}

    def test_subscribing_anew_changes_the_topics(
        self, bootstrap: str, admin: Admin, filled: str, group: str, name: Callable[[str], str]
    ) -> None:
        other = name("other")
        admin.create_topic(other, 1)
        produce(bootstrap, other, [b"other"])
        with consumer_of(bootstrap, group_id=group) as consumer:
            consumer.subscribe(filled)
            read(consumer, 20)
            consumer.subscribe(other)
            assert values_of(read(consumer, 1)) == [b"other"]
            assert consumer.assignment() == set(parts(other, 0))
            consumer.unsubscribe()
            assert consumer.assignment() == set()
            consumer.assign(parts(filled, 0))
            assert consumer.position(TopicPartition(filled, 0)) == 10

    def test_a_topic_may_come_into_being_after_the_subscription(
        self, bootstrap: str, admin: Admin, topic: str, group: str
    ) -> None:
        with consumer_of(bootstrap, group_id=group, allow_auto_create_topics=False) as consumer:
            consumer.subscribe(topic)
            assert consumer.poll(0.1) == []
            admin.create_topic(topic, 1)
            produce(bootstrap, topic, [b"at last"])
            assert values_of(read(consumer, 1)) == [b"at last"]

    def test_partitions_that_are_added_are_read(
        self, bootstrap: str, admin: Admin, topic: str, group: str
    ) -> None:
        admin.create_topic(topic, 1)
        with consumer_of(bootstrap, group_id=group, metadata_max_age_ms=100) as consumer:
            consumer.subscribe(topic)
            poll_until([consumer], consumer.assignment)
            admin.create_partitions({topic: 2})
            produce(bootstrap, topic, [b"new"], partition=1)
            assert values_of(read(consumer, 1)) == [b"new"]

    def test_subscribing_needs_a_group(self, bootstrap: str, topic: str) -> None:
        with consumer_of(bootstrap) as consumer, pytest.raises(Misuse, match=r"subscribing needs group\.id"):
            consumer.subscribe(topic)

    def test_an_invalid_topic_is_an_error_of_poll(self, bootstrap: str, group: str) -> None:
        with consumer_of(bootstrap, group_id=group) as consumer:
            consumer.subscribe("no such/name")
            with pytest.raises(KafkaError, match="topic 'no such/name'"):
                consumer.poll(10)


class TestLife:
    def test_wakeup_ends_a_poll_of_another_thread(self, bootstrap: str, filled: str) -> None:
        with consumer_of(bootstrap) as consumer:
            threading.Timer(0.05, consumer.wakeup).start()
            assert consumer.poll(None) == []
            assert consumer.was_woken
            consumer.wakeup()
            assert list(consumer) == [], "it ends an iteration, too"

    def test_a_closed_consumer_says_so(self, bootstrap: str, filled: str) -> None:
        consumer = consumer_of(bootstrap)
        consumer.assign(parts(filled, 0))
        consumer.close()
        consumer.close()
        with pytest.raises(ClientClosed):
            consumer.poll(0)
        with pytest.raises(ClientClosed):
            consumer.assign([])
        assert list(consumer) == []

    def test_a_forgotten_consumer_ends_its_thread(self, bootstrap: str, filled: str, group: str) -> None:
        consumer = consumer_of(bootstrap, group_id=group)
        consumer.subscribe(filled)
        read(consumer, 20)
        thread = consumer._thread._thread
        del consumer
        gc.collect()
        assert not thread.is_alive()

    def test_wrong_settings_are_refused_with_the_nearest_name(self) -> None:
        with pytest.raises(ConfigFault, match=r"did you mean group\.id"):
            Consumer(bootstrap_servers="localhost:1", groupid="x")
        with pytest.raises(ConfigFault, match="no assignor is called 'best'"):
            Consumer(bootstrap_servers="localhost:1", partition_assignment_strategy="best")

    def test_without_a_broker_the_addresses_tried_are_named(self) -> None:
        with pytest.raises(NoBrokersAvailable, match=r"127\.0\.0\.1:1: connect"):
            Consumer(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=0)

    def test_an_unknown_topic_has_no_partitions(self, bootstrap: str, topic: str) -> None:
        with consumer_of(bootstrap) as consumer, pytest.raises(UnknownTopic):
            consumer.partitions_for(topic, timeout=0.05)

    def test_metrics_count_what_happened(self, bootstrap: str, filled: str, group: str) -> None:
        with consumer_of(bootstrap, group_id=group) as consumer:
            consumer.subscribe(filled)
            read(consumer, 20)
            consumer.commit()
            metrics = consumer.metrics()
        assert metrics["records-consumed-total"] == 20
        assert metrics["assigned-partitions"] == 2
        assert metrics["commit-total"] == 1
        assert metrics["rebalance-total"] == 1
        assert metrics["fetch-total"] >= 1
        assert metrics["records-lag-max"] == 0

    def test_it_prints_its_group(self, bootstrap: str, group: str) -> None:
        with consumer_of(bootstrap, group_id=group) as consumer:
            assert repr(consumer) == f"Consumer(group={group!r}, 0 partitions)"

    def test_a_broker_that_restarts_is_read_on(
        self, own_server: ClientServer, topic: str, group: str
    ) -> None:
        bootstrap = own_server.bootstrap_servers
        with Admin({"bootstrap.servers": bootstrap}) as admin:
            admin.create_topic(topic, 1)
        produce(bootstrap, topic, [b"before"])
        with consumer_of(bootstrap, group_id=group) as consumer:
            consumer.subscribe(topic)
            assert values_of(read(consumer, 1)) == [b"before"]
            own_server.stop()
            assert consumer.poll(0.2) == []
            own_server.start()
            produce(bootstrap, topic, [b"after"])
            assert values_of(read(consumer, 1)) == [b"after"]
            consumer.commit()
            assert consumer.committed()[TopicPartition(topic, 0)].offset == 2
