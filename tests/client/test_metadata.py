"""The client's picture of the cluster: answers go over it, and a leader epoch never goes back."""

from barnabas.client.metadata import BrokerInfo, Metadata, PartitionInfo
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ID, OTHER_ID = b"1" * 16, b"2" * 16


def answer(*topics: MetadataResponseTopic, brokers: tuple[int, ...] = (1, 2)) -> MetadataResponse:
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=node, host=f"h{node}", port=9092) for node in brokers],
        cluster_id="c",
        controller_id=1,
        topics=list(topics),
    )


def topic(
    name: str, *leaders: tuple[int, int], topic_id: bytes = ID, error: int = 0
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=name,
        topic_id=topic_id,
        error_code=error,
        partitions=[
            MetadataResponsePartition(
                partition_index=index,
                leader_id=leader,
                leader_epoch=epoch,
                replica_nodes=[1, 2],
                isr_nodes=[1],
            )
            for index, (leader, epoch) in enumerate(leaders)
        ],
    )


class TestMerging:
    def test_an_answer_about_some_topics_leaves_the_others(self) -> None:
        first = Metadata().merged(answer(topic("a", (1, 0))), asked=["a"])
        second = first.merged(answer(topic("b", (2, 0))), asked=["b"])
        assert set(second.topics) == {"a", "b"}
        assert second.leader("a", 0) == 1
        assert first.topics.keys() == {"a"}

    def test_an_answer_about_everything_drops_what_is_gone(self) -> None:
        before = Metadata().merged(answer(topic("a", (1, 0))), asked=["a"])
        assert set(before.merged(answer(topic("b", (2, 0))), asked=None).topics) == {"b"}

    def test_a_deleted_topic_becomes_an_error_until_it_is_back(self) -> None:
        before = Metadata().merged(answer(topic("a", (1, 0))), asked=["a"])
        gone = before.merged(answer(topic("a", error=3)), asked=["a"])
        assert "a" not in gone.topics
        assert gone.errors == {"a": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        back = gone.merged(answer(topic("a", (1, 0), topic_id=OTHER_ID)), asked=["a"])
        assert not back.errors
        assert back.topics["a"].id == OTHER_ID

    def test_an_older_epoch_of_the_same_topic_is_ignored(self) -> None:
        before = Metadata().merged(answer(topic("a", (2, 5))), asked=["a"])
        assert before.merged(answer(topic("a", (1, 4))), asked=["a"]).leader("a", 0) == 2
        assert before.merged(answer(topic("a", (1, 6))), asked=["a"]).leader("a", 0) == 1
        assert before.merged(answer(topic("a", (1, -1))), asked=["a"]).leader("a", 0) == 1

    def test_an_older_epoch_of_a_new_topic_with_the_name_counts(self) -> None:
        before = Metadata().merged(answer(topic("a", (2, 5))), asked=["a"])
        after = before.merged(answer(topic("a", (1, 0), topic_id=OTHER_ID)), asked=["a"])
        assert after.leader("a", 0) == 1

    def test_a_topic_between_leaders_stays_known(self) -> None:
        before = Metadata().merged(answer(topic("a", (2, 5))), asked=["a"])
        assert "a" in before.merged(answer(topic("a", error=5)), asked=["a"]).topics

    def test_an_answer_without_brokers_does_not_forget_them(self) -> None:
        before = Metadata().merged(answer(), asked=[])
        assert set(before.merged(answer(brokers=()), asked=[]).brokers) == {1, 2}

    def test_a_hole_in_the_partitions_has_no_leader(self) -> None:
        response = topic("a", (1, 0), (1, 0))
        del response.partitions[0]
        found = Metadata().merged(answer(response), asked=["a"])
        assert found.leader("a", 0) is None
        assert found.leader("a", 1) == 1

    def test_codes_of_the_future_are_errors(self) -> None:
        found = Metadata().merged(answer(topic("a", error=4711)), asked=["a"])
        assert found.errors == {"a": ErrorCode.UNKNOWN_SERVER_ERROR}


class TestQuestions:
    def test_what_is_not_known_has_no_leader(self) -> None:
        found = Metadata().merged(answer(topic("a", (1, 0), (-1, 0))), asked=["a"])
        assert found.leader("a", 1) is None
        assert found.leader("a", 2) is None
        assert found.leader("a", -1) is None
        assert found.leader("b", 0) is None

    def test_a_topic_is_found_by_its_id(self) -> None:
        found = Metadata().merged(answer(topic("a", (1, 0))), asked=["a"])
        assert found.by_id(ID) == found.topics["a"]
        assert found.by_id(OTHER_ID) is None

    def test_a_broker_can_be_added(self) -> None:
        found = Metadata().merged(answer(), asked=[]).with_broker(BrokerInfo(3, "h3", 1))
        assert set(found.brokers) == {1, 2, 3}
        assert str(found.brokers[3]) == "broker 3 at h3:1"

    def test_a_partition_tells_if_it_has_a_leader(self) -> None:
        assert PartitionInfo(0, 1).has_leader
        assert not PartitionInfo(0, -1).has_leader
