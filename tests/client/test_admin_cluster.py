"""Brokers, data folders, producers, and the deletion of records."""

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.admin_types import (
    OffsetSpec,
)
from barnabas.client.errors import (
    UnknownTopic,
)
from tests.client._kit import KEPT, write


class TestClusterAndRecords:
    def test_the_cluster_names_its_brokers_and_controller(self, admin: Admin, bootstrap: str) -> None:
        cluster = admin.describe_cluster()
        assert cluster.id
        assert [f"{broker.host}:{broker.port}" for broker in cluster.brokers] == [bootstrap]
        assert cluster.controller == cluster.brokers[0]

    def test_records_are_deleted_up_to_an_offset(self, admin: Admin, topic: str, bootstrap: str) -> None:
        admin.create_topic(topic, 1, configs=KEPT)
        write(bootstrap, topic, range(1000, 1010))
        where = TopicPartition(topic, 0)
        assert admin.delete_records({where: 4})[where] == 4
        assert admin.list_offsets({where: OffsetSpec.EARLIEST})[where].offset == 4
        assert admin.delete_records({where: -1})[where] == 10
        missing = TopicPartition(topic, 9)
        assert isinstance(admin.delete_records({missing: 1}).errors[missing], UnknownTopic)

    def test_data_folders_have_the_sizes_of_replicas(self, admin: Admin, topic: str, bootstrap: str) -> None:
        admin.create_topic(topic, 1, configs=KEPT)
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
