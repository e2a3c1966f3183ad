"""Kafka's node names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.types import TopicPartition
from barnabas.store import paths
from barnabas.store.tree import check_path


def test_nodes_are_where_kafka_has_them() -> None:
    tp = TopicPartition("orders", 3)
    assert paths.broker(7) == "/brokers/ids/7"
    assert paths.topic("orders") == "/brokers/topics/orders"
    assert paths.partitions("orders") == "/brokers/topics/orders/partitions"
    assert paths.partition(tp) == "/brokers/topics/orders/partitions/3"
    assert paths.partition_state(tp) == "/brokers/topics/orders/partitions/3/state"
    assert paths.delete_topic("orders") == "/admin/delete_topics/orders"
    assert paths.config("topics", "orders") == "/config/topics/orders"
    assert paths.config("brokers", paths.DEFAULT_ENTITY) == "/config/brokers/<default>"


def test_quotas_of_users_clients_and_ips() -> None:
    assert paths.quota_config(user="a b*") == "/config/users/a%20b%2A"
    assert paths.quota_config(client_id="c/1") == "/config/clients/c%2F1"
    assert paths.quota_config(user="u", client_id="<default>") == "/config/users/u/clients/<default>"
    assert paths.quota_config(ip="10.0.0.1") == "/config/ips/10.0.0.1"
    with pytest.raises(AssertionError):
        paths.quota_config()


@given(st.text(min_size=1))
def test_any_name_escapes_to_a_node_name_and_back(name: str) -> None:
    escaped = paths.escape(name)
    assert paths.unescape(escaped) == name
    assert set(escaped) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-%")


def test_the_paths_of_a_start_are_paths() -> None:
    for path in paths.PERSISTENT_PATHS:
        check_path(path)
    assert len(set(paths.PERSISTENT_PATHS)) == len(paths.PERSISTENT_PATHS) == 14
