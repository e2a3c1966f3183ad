"""How images follow each other."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.deltas import (
    BrokerDown,
    BrokerUp,
    ClusterNamed,
    ConfigChanged,
    ControllerChanged,
    Delta,
    DeltaRefused,
    FeaturesChanged,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
    apply,
)
from barnabas.metadata.image import (
    BrokerImage,
    ClusterImage,
    ConfigResourceType,
    Endpoint,
    PartitionImage,
    TopicImage,
)

EMPTY = ClusterImage()
ONE = PartitionImage(leader=1, leader_epoch=0, isr=(1,), replicas=(1,))
CONFIG = (ConfigResourceType.TOPIC, "a")


def topic(name: str, count: int = 1) -> TopicImage:
    return TopicImage(name, name.encode().ljust(16, b"\0"), (ONE,) * count)


def broker(broker_id: int, epoch: int = 1) -> BrokerImage:
    return BrokerImage(broker_id, epoch, {"PLAINTEXT": Endpoint("PLAINTEXT", "localhost", 9092)})


class TestTopics:
    def test_a_created_topic_is_found_by_name_and_id(self) -> None:
        image = apply(EMPTY, [TopicCreated(topic("a", 3))])
        assert image.topics["a"] is image.topics_by_id[topic("a").id]
        assert len(image.topics["a"].partitions) == 3

    def test_a_deleted_topic_takes_its_config_along(self) -> None:
        image = apply(EMPTY, [TopicCreated(topic("a")), ConfigChanged(CONFIG, {"x": "1"}), TopicDeleted("a")])
        assert image == EMPTY

    def test_partitions_are_added_at_the_end(self) -> None:
        image = apply(EMPTY, [TopicCreated(topic("a")), PartitionsAdded("a", (ONE, ONE))])
        assert len(image.topics["a"].partitions) == 3
        assert image.topics["a"] is image.topics_by_id[topic("a").id]

    def test_a_changed_partition_leaves_its_siblings_the_same_objects(self) -> None:
        before = apply(EMPTY, [TopicCreated(topic("a", 3)), TopicCreated(topic("b"))])
        state = PartitionImage(-1, 1, (), (1,), partition_epoch=1)
        after = apply(before, [PartitionChanged("a", 1, state)])
        assert after.partition("a", 1) is state
        assert before.partition("a", 1) is ONE
        assert after.partition("a", 0) is before.partition("a", 0)
        assert after.topics["b"] is before.topics["b"]
        assert after.brokers is before.brokers


class TestTheRest:
    def test_brokers_come_and_go(self) -> None:
        image = apply(EMPTY, [BrokerUp(broker(1)), BrokerUp(broker(2)), BrokerUp(broker(1, epoch=5))])
        assert {one.id: one.epoch for one in image.brokers.values()} == {1: 5, 2: 1}
        assert list(apply(image, [BrokerDown(1)]).brokers) == [2]

    def test_controller_cluster_and_features(self) -> None:
        image = apply(EMPTY, [ClusterNamed("c"), ControllerChanged(1, 7), FeaturesChanged({"f": 2}, 3)])
        assert (image.cluster_id, image.controller_id, image.controller_epoch) == ("c", 1, 7)
        assert (image.features, image.features_epoch) == ({"f": 2}, 3)

    def test_a_config_is_replaced_and_an_empty_one_removed(self) -> None:
        image = apply(EMPTY, [ConfigChanged(CONFIG, {"x": "1"}), ConfigChanged(CONFIG, {"y": "2"})])
        assert image.configs[CONFIG] == {"y": "2"}
        assert apply(image, [ConfigChanged(CONFIG, {})]).configs == {}

    def test_no_delta_changes_nothing(self) -> None:
        assert apply(EMPTY, []) == EMPTY


START = apply(
    EMPTY,
    [
        TopicCreated(TopicImage("a", b"a" * 16, (PartitionImage(1, 5, (1,), (1,), partition_epoch=4),))),
        BrokerUp(broker(1, 3)),
        ControllerChanged(1, 4),
        ClusterNamed("c"),
    ],
)


@pytest.mark.parametrize(
    ("delta", "text"),
    [
        (TopicCreated(topic("a")), "D1: topic a exists"),
        (TopicCreated(TopicImage("b", b"a" * 16, ())), f"D1: b has the id of a: {b'a'.hex() * 16}"),
        (TopicDeleted("b"), "topic b is not there"),
        (PartitionsAdded("b", (ONE,)), "topic b is not there"),
        (PartitionChanged("a", 1, ONE), "a has no partition 1"),
        (PartitionChanged("a", -1, ONE), "a has no partition -1"),
        (PartitionChanged("a", 0, ONE), "D2: a-0: leader epoch 0 after 5"),
        (PartitionChanged("a", 0, PartitionImage(1, 5, (1,), (1,))), "D2: a-0: partition epoch 0 after 4"),
        (BrokerUp(broker(1, 3)), "D3: broker 1: epoch 3 after 3"),
        (BrokerDown(2), "broker 2 is down already"),
        (ControllerChanged(2, 3), "D3: controller epoch 3 after 4"),
        (ClusterNamed("d"), "the cluster is c, not d"),
    ],
)
def test_a_contradiction_is_refused(delta: Delta, text: str) -> None:
    before = copy.deepcopy(START)
    with pytest.raises(DeltaRefused) as caught:
        apply(START, [TopicCreated(topic("new")), delta])
    assert str(caught.value) == text
    assert before == START


names = st.sampled_from("abc")
states = st.builds(
    PartitionImage, st.just(1), st.integers(0, 3), st.just((1,)), st.just((1, 2)), st.integers(0, 3)
)
deltas_drawn = st.lists(
    st.one_of(
        st.builds(TopicCreated, st.builds(topic, names, st.integers(1, 3))),
        st.builds(TopicDeleted, names),
        st.builds(PartitionsAdded, names, st.tuples(states)),
        st.builds(PartitionChanged, names, st.integers(0, 2), states),
        st.builds(BrokerUp, st.builds(broker, st.integers(1, 2), st.integers(0, 3))),
        st.builds(BrokerDown, st.integers(1, 2)),
        st.builds(ConfigChanged, st.just(CONFIG), st.dictionaries(names, names, max_size=2)),
        st.builds(ControllerChanged, st.integers(0, 2), st.integers(0, 3)),
    ),
    max_size=12,
)


@given(deltas_drawn, st.integers(0, 12))
def test_applied_in_one_batch_or_one_by_one_they_give_the_same_and_old_images_stay(
    deltas: list[Delta], cut: int
) -> None:
    accepted: list[Delta] = []
    images = [EMPTY]
    for delta in deltas:
        try:
            images.append(apply(images[-1], [delta]))
        except DeltaRefused:
            continue
        accepted.append(delta)
    kept = copy.deepcopy(images)
    assert apply(apply(EMPTY, accepted[:cut]), accepted[cut:]) == images[-1]
    assert images == kept
    for image in images:
        assert {one.id: one for one in image.topics.values()} == image.topics_by_id
        for one in image.topics.values():
            assert image.topics_by_id[one.id] is one
