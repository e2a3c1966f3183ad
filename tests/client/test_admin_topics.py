"""Topics are made, described, listed, grown and deleted; each has its own outcome."""

import pytest

from barnabas.client.admin import Admin
from barnabas.client.admin_types import (
    NewTopic,
)
from barnabas.client.errors import (
    InvalidTopic,
    KafkaError,
    TopicExists,
    UnknownTopic,
)
from barnabas.protocol.codes import ErrorCode


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
