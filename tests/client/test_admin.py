"""The synchronous admin: the calls of the asynchronous one, and a life that leaves nothing behind."""

import gc
import inspect
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from barnabas.base.errors import ConfigFault
from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.admin_types import (
    Append,
    ConfigResource,
    ConfigSource,
    NewTopic,
    OffsetReset,
    OffsetSpec,
)
from barnabas.client.aio_admin import Admin as AsyncAdmin
from barnabas.client.errors import (
    ClientClosed,
    InvalidTopic,
    KafkaError,
    NoBrokersAvailable,
    TopicExists,
    UnknownGroup,
    UnknownTopic,
)
from barnabas.protocol.codes import ErrorCode
from tests.client._kit import settings_for, write
from tests.client._servers import ClientServer


@pytest.fixture
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(settings_for(bootstrap)) as opened:
        yield opened


def public(face: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(member)
        for name, member in inspect.getmembers(face, inspect.isfunction)
        if not name.startswith("_") and name != "start"
    }


class TestTheTwoFaces:
    def test_they_have_the_same_calls_with_the_same_parameters_and_results(self) -> None:
        assert public(Admin) == public(AsyncAdmin)

    def test_they_say_the_same_about_each_call(self) -> None:
        for name in public(Admin).keys() - {"close"}:
            assert inspect.getdoc(getattr(Admin, name)) == inspect.getdoc(getattr(AsyncAdmin, name)), name


class TestLife:
    def test_closing_twice_is_fine_and_no_thread_is_left(self, bootstrap: str) -> None:
        before = threading.active_count()
        admin = Admin(settings_for(bootstrap))
        assert threading.active_count() == before + 1
        admin.close()
        admin.close()
        assert threading.active_count() == before

    def test_a_call_after_close_says_so(self, bootstrap: str) -> None:
        admin = Admin(settings_for(bootstrap))
        admin.close()
        with pytest.raises(ClientClosed, match="the client was closed"):
            admin.list_topics()

    def test_a_failed_start_leaves_no_thread(self) -> None:
        before = threading.active_count()
        with pytest.raises(NoBrokersAvailable, match=r"127.0.0.1:1: connect: Connection refused"):
            Admin(settings_for("127.0.0.1:1"))
        assert threading.active_count() == before

    def test_a_wrong_setting_is_named_with_the_right_one(self) -> None:
        with pytest.raises(ConfigFault, match=r"bootstrap.server: .* did you mean bootstrap.servers"):
            Admin(bootstrap_server="localhost:9092")

    def test_an_admin_that_was_forgotten_ends_its_thread(self, bootstrap: str) -> None:
        admin = Admin(settings_for(bootstrap))
        thread = admin._thread._thread
        del admin
        gc.collect()
        thread.join(10)
        assert not thread.is_alive()

    def test_threads_may_call_side_by_side(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic, 1)
        found: list[str] = []
        threads = [
            threading.Thread(target=lambda: found.append(admin.describe_topic(topic).name)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [topic] * 8

    def test_its_repr_says_where_it_is_connected(self, admin: Admin, bootstrap: str) -> None:
        assert repr(admin) == f"Admin({bootstrap}; open)"


class TestTopics:
    def test_a_topic_is_made_described_listed_and_deleted(self, admin: Admin, topic: str) -> None:
        made = admin.create_topic(topic, 3, configs={"retention.ms": "1000"})
        assert (made.name, made.partitions, made.replication_factor) == (topic, 3, 1)
        described = admin.describe_topic(topic)
        assert described.id == made.id
        assert [part.index for part in described.partitions] == [0, 1, 2]
        assert all(part.isr == part.replicas == (part.leader,) for part in described.partitions)
        assert topic in [each.name for each in admin.list_topics()]
        assert admin.topic_by_id(made.id).name == topic
        assert admin.delete_topics([topic])[topic] is None
        assert topic not in [each.name for each in admin.list_topics()]
        with pytest.raises(UnknownTopic):
            admin.describe_topic(topic)

    def test_each_topic_has_its_own_outcome(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic)
        results = admin.create_topics([NewTopic(topic), "bad/name", NewTopic(f"{topic}-2", 2)])
        assert list(results) == [topic, "bad/name", f"{topic}-2"]
        assert results[f"{topic}-2"].partitions == 2
        with pytest.raises(TopicExists):
            results[topic]
        with pytest.raises(InvalidTopic):
            results["bad/name"]
        assert set(results.errors) == {topic, "bad/name"}
        assert not results.errors[topic].retriable

    def test_a_trial_makes_nothing(self, admin: Admin, topic: str) -> None:
        assert admin.create_topics([NewTopic(topic, 4)], validate_only=True)[topic].partitions == 4
        assert topic not in [each.name for each in admin.list_topics()]

    def test_partitions_can_be_added_and_not_taken_away(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic, 1)
        admin.create_partitions({topic: 3}).check()
        assert len(admin.describe_topic(topic).partitions) == 3
        with pytest.raises(KafkaError) as caught:
            admin.create_partitions({topic: 2}).check()
        assert caught.value.code is ErrorCode.INVALID_PARTITIONS

    def test_deleting_what_is_not_there_is_an_error_of_that_item(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic)
        results = admin.delete_topics([f"{topic}-missing", topic])
        assert list(results.errors) == [f"{topic}-missing"]
        assert results[topic] is None


class TestConfigs:
    def test_settings_are_described_with_their_sources(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic, configs={"retention.ms": "1000"})
        resource = ConfigResource.topic(topic)
        entries = admin.describe_configs([resource])[resource]
        assert entries["retention.ms"].value == "1000"
        assert entries["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC
        assert entries["max.message.bytes"].is_default
        assert str(entries["retention.ms"]) == "retention.ms=1000 (dynamic topic)"

    def test_only_the_names_asked_for_come(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic)
        resource = ConfigResource.topic(topic)
        found = admin.describe_configs([resource], names=["cleanup.policy"], documentation=True)[resource]
        assert list(found) == ["cleanup.policy"]
        assert found["cleanup.policy"].documentation

    def test_a_change_leaves_the_rest_and_a_replacement_does_not(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic, configs={"retention.ms": "1000"})
        resource = ConfigResource.topic(topic)

        def value(name: str) -> str | None:
            return admin.describe_configs([resource])[resource][name].value

        default = value("segment.bytes")
        admin.alter_configs({resource: {"cleanup.policy": Append("compact"), "segment.bytes": 2**21}}).check()
        assert (value("cleanup.policy"), value("segment.bytes")) == ("delete,compact", str(2**21))
        assert value("retention.ms") == "1000"
        admin.alter_configs({resource: {"segment.bytes": None}}).check()
        assert value("segment.bytes") == default
        admin.replace_configs({resource: {"cleanup.policy": "delete"}}).check()
        assert value("retention.ms") != "1000"

    def test_a_trial_changes_nothing(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic)
        resource = ConfigResource.topic(topic)
        admin.alter_configs({resource: {"retention.ms": 5}}, validate_only=True).check()
        assert admin.describe_configs([resource])[resource]["retention.ms"].value != "5"

    def test_a_wrong_value_is_refused(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic)
        resource = ConfigResource.topic(topic)
        outcome = admin.alter_configs({resource: {"retention.ms": "soon"}})
        assert outcome.errors[resource].code is ErrorCode.INVALID_CONFIG

    def test_a_broker_is_asked_about_itself(self, admin: Admin) -> None:
        node = admin.describe_cluster().brokers[0].id
        resource = ConfigResource.broker(node)
        entries = admin.describe_configs([resource])[resource]
        assert entries["log.retention.hours"].value == "168"
        with pytest.raises(KafkaError, match="no broker has the id '4711'"):
            admin.describe_configs([ConfigResource.broker(4711)])


class TestClusterAndRecords:
    def test_the_cluster_names_its_brokers_and_controller(self, admin: Admin, bootstrap: str) -> None:
        cluster = admin.describe_cluster()
        assert cluster.id
        assert [f"{broker.host}:{broker.port}" for broker in cluster.brokers] == [bootstrap]
        assert cluster.controller == cluster.brokers[0]

    def test_records_are_deleted_up_to_an_offset(self, admin: Admin, topic: str, bootstrap: str) -> None:
        admin.create_topic(topic, 1)
        write(bootstrap, topic, range(1000, 1010))
        where = TopicPartition(topic, 0)
        assert admin.delete_records({where: 4})[where] == 4
        assert admin.list_offsets({where: OffsetSpec.EARLIEST})[where].offset == 4
        assert admin.delete_records({where: -1})[where] == 10
        missing = TopicPartition(topic, 9)
        assert isinstance(admin.delete_records({missing: 1}).errors[missing], UnknownTopic)

    def test_data_folders_have_the_sizes_of_replicas(self, admin: Admin, topic: str, bootstrap: str) -> None:
        admin.create_topic(topic, 1)
        write(bootstrap, topic, range(100))
        ((_, folders),) = admin.describe_log_dirs().items()
        sizes = {
            replica.partition: replica.size_bytes
            for folder in folders.values()
            for replica in folder.replicas
        }
        assert sizes[TopicPartition(topic, 0)] > 100
        (only,) = admin.describe_log_dirs(partitions=[TopicPartition(topic, 0)]).values()
        assert [r.partition for d in only.values() for r in d.replicas] == [TopicPartition(topic, 0)]

    def test_a_broker_that_is_not_there_is_an_error_of_that_broker(self, admin: Admin) -> None:
        results = admin.describe_log_dirs([4711], timeout_ms=100)
        assert "broker 4711 is not known" in str(results.errors[4711])

    def test_a_partition_nobody_produced_to_has_no_producers(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic, 1)
        where = TopicPartition(topic, 0)
        assert admin.describe_producers([where])[where] == ()


class TestOffsets:
    def test_offsets_by_role_and_by_time(self, admin: Admin, topic: str, bootstrap: str) -> None:
        admin.create_topic(topic, 1)
        write(bootstrap, topic, [1000, 3000, 2000])
        where = TopicPartition(topic, 0)

        def offset(when: OffsetSpec | int | datetime) -> int:
            return admin.list_offsets({where: when})[where].offset

        assert offset(OffsetSpec.EARLIEST) == 0
        assert offset(OffsetSpec.LATEST) == 3
        assert offset(OffsetSpec.MAX_TIMESTAMP) == 1
        assert offset(1500) == 1
        assert offset(datetime.fromtimestamp(1, UTC)) == 0
        assert offset(9000) == -1
        assert admin.list_offsets({where: 1500})[where].timestamp == 3000

    def test_committed_offsets_are_written_listed_and_deleted(
        self, admin: Admin, topic: str, group: str
    ) -> None:
        admin.create_topic(topic, 2)
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
        admin.alter_group_offsets(group, {first: 0}).check()
        found = admin.list_group_offsets(group)
        assert {where: value.offset for where, value in found.items() if value} == {first: 0}
        both = admin.list_group_offsets(group, [first, second])
        assert both[second] is None
        admin.delete_group_offsets(group, [first]).check()
        assert admin.list_group_offsets(group, [first])[first] is None

    def test_nothing_is_committed_by_a_group_that_never_was(self, admin: Admin, group: str) -> None:
        assert dict(admin.list_group_offsets(group)) == {}
        with pytest.raises(UnknownGroup):
            admin.describe_group(group)

    @pytest.mark.parametrize(
        ("to", "after", "note"),
        [
            (OffsetReset.earliest(), 2, ""),
            (OffsetReset.latest(), 10, ""),
            (OffsetReset.current(), 5, ""),
            (OffsetReset.to_offset(7), 7, ""),
            (OffsetReset.to_offset(1), 2, "1 is before the start of the log"),
            (OffsetReset.to_offset(99), 10, "99 is past the end of the log"),
            (OffsetReset.shift_by(-2), 3, ""),
            (OffsetReset.shift_by(3), 8, ""),
            (OffsetReset.to_datetime(datetime.fromtimestamp(4, UTC)), 4, ""),
            (OffsetReset.to_datetime(datetime.fromtimestamp(99, UTC)), 10, ""),
            (OffsetReset.by_duration(timedelta(days=40_000)), 2, ""),
            (OffsetReset.by_duration(timedelta(seconds=1)), 10, ""),
        ],
        ids=str,
    )
    def test_a_group_is_moved(
        self, admin: Admin, topic: str, group: str, bootstrap: str, to: OffsetReset, after: int, note: str
    ) -> None:
        admin.create_topic(topic, 1)
        write(bootstrap, topic, [number * 1000 for number in range(10)])
        where = TopicPartition(topic, 0)
        admin.delete_records({where: 2})
        admin.alter_group_offsets(group, {where: 5}).check()
        plan = admin.reset_group_offsets(group, to, dry_run=True)[where]
        assert (plan.before, plan.after, plan.note) == (5, after, note)
        committed = admin.list_group_offsets(group)[where]
        assert committed is not None
        assert committed.offset == 5
        assert admin.reset_group_offsets(group, to)[where] == plan
        committed = admin.list_group_offsets(group)[where]
        assert committed is not None
        assert committed.offset == after

    def test_a_new_group_gets_offsets_for_a_whole_topic(self, admin: Admin, topic: str, group: str) -> None:
        admin.create_topic(topic, 3)
        moved = admin.reset_group_offsets(group, OffsetReset.latest(), topics=[topic])
        assert [change.before for change in moved.values()] == [None] * 3
        assert len(admin.list_group_offsets(group)) == 3
        with pytest.raises(UnknownTopic):
            admin.reset_group_offsets(group, OffsetReset.latest(), topics=[f"{topic}-missing"])

    def test_nothing_can_be_shifted_without_a_committed_offset(
        self, admin: Admin, topic: str, group: str
    ) -> None:
        admin.create_topic(topic, 1)
        where = TopicPartition(topic, 0)
        outcome = admin.reset_group_offsets(group, OffsetReset.shift_by(1), partitions=[where])
        assert "there is no committed offset to shift" in str(outcome.errors[where])


@pytest.mark.slow
def test_calls_go_on_after_the_broker_restarts(own_server: ClientServer, topic: str) -> None:
    with Admin(settings_for(own_server.bootstrap_servers)) as admin:
        admin.create_topic(topic, 1)
        own_server.stop()
        own_server.start()
        assert admin.describe_topic(topic).name == topic
        assert [each.name for each in admin.list_topics()] == [topic]
