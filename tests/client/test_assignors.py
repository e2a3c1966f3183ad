"""Each assignor gives the partitions that Kafka's own gives, and writes what Kafka's own reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import ConfigFault
from barnabas.base.types import TopicPartition
from barnabas.client.assignors import (
    ASSIGNORS,
    CooperativeStickyAssignor,
    GroupSubscription,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    assignors_named,
    grouped,
    ungrouped,
)


def member(name: str, *topics: str, **more: object) -> GroupSubscription:
    return GroupSubscription(name, frozenset(topics), **more)  # type: ignore[arg-type]  # as the test says


def parts(topic: str, *numbers: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


members = st.lists(
    st.builds(
        member,
        st.sampled_from(["m1", "m2", "m3", "m4"]),
        st.sampled_from("ab"),
        st.sampled_from("bc"),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda one: one.member_id,
)
counts = st.fixed_dictionaries({topic: st.integers(0, 6) for topic in "abc"})


@pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=lambda assignor: assignor.name)
class TestEveryAssignor:
    @given(counts, members)
    def test_gives_each_partition_to_one_reader(
        self, assignor: RangeAssignor, partitions: dict[str, int], group: list[GroupSubscription]
    ) -> None:
        assigned = assignor.assign(partitions, group)
        read = {topic for one in group for topic in one.topics}
        wanted = [TopicPartition(topic, n) for topic in sorted(read) for n in range(partitions[topic])]
        assert sorted(tp for held in assigned.values() for tp in held) == wanted
        topics = {one.member_id: one.topics for one in group}
        assert all(tp.topic in topics[name] for name, held in assigned.items() for tp in held)

    @given(counts, members)
    def test_does_not_care_in_which_order_members_are_listed(
        self, assignor: RangeAssignor, partitions: dict[str, int], group: list[GroupSubscription]
    ) -> None:
        assert assignor.assign(partitions, group) == assignor.assign(partitions, group[::-1])

    def test_leaves_out_topics_that_do_not_exist(self, assignor: RangeAssignor) -> None:
        assert assignor.assign({}, [member("m1", "a")]) == {"m1": []}


class TestRange:
    def test_the_first_members_get_one_more(self) -> None:
        group = [member("m1", "a"), member("m2", "a"), member("m3", "a")]
        assert RangeAssignor().assign({"a": 7}, group) == {
            "m1": parts("a", 0, 1, 2),
            "m2": parts("a", 3, 4),
            "m3": parts("a", 5, 6),
        }

    def test_topics_with_equal_counts_line_up(self) -> None:
        assigned = RangeAssignor().assign({"a": 4, "b": 4}, [member("m1", "a", "b"), member("m2", "a", "b")])
        assert assigned["m1"] == parts("a", 0, 1) + parts("b", 0, 1)

    def test_static_members_come_first_in_the_order_of_their_instance(self) -> None:
        group = [member("m1", "a"), member("m2", "a", instance_id="z"), member("m3", "a", instance_id="y")]
        assert RangeAssignor().assign({"a": 3}, group) == {
            "m3": parts("a", 0),
            "m2": parts("a", 1),
            "m1": parts("a", 2),
        }


class TestRoundRobin:
    def test_partitions_go_round(self) -> None:
        assigned = RoundRobinAssignor().assign(
            {"a": 3, "b": 2}, [member("m1", "a", "b"), member("m2", "a", "b")]
        )
        assert assigned == {"m1": parts("a", 0, 2) + parts("b", 1), "m2": parts("a", 1) + parts("b", 0)}

    def test_members_that_do_not_read_a_topic_are_passed_over(self) -> None:
        assigned = RoundRobinAssignor().assign({"a": 2, "b": 2}, [member("m1", "a"), member("m2", "a", "b")])
        assert assigned == {"m1": parts("a", 0), "m2": parts("a", 1) + parts("b", 0, 1)}


class TestSticky:
    def test_what_the_user_data_says_is_kept(self) -> None:
        assignor = StickyAssignor()
        owns = assignor.user_data(parts("a", 1, 2), 3) or b""
        group = [member("m1", "a"), member("m2", "a", user_data=owns)]
        assert assignor.assign({"a": 4}, group)["m2"] == parts("a", 1, 2)

    def test_user_data_is_laid_out_as_in_kafka(self) -> None:
        # previous_assignment: array of (topic, array of int32), generation int32
        assert StickyAssignor().user_data(parts("ab", 7), 5) == bytes.fromhex(
            "00000001 0002 6162 00000001 00000007 00000005"
        )

    def test_user_data_of_the_first_version_has_no_generation(self) -> None:
        old = bytes.fromhex("00000001 0001 61 00000001 00000001")
        group = [member("m1", "a"), member("m2", "a", user_data=old)]
        assert StickyAssignor().assign({"a": 2}, group)["m2"] == parts("a", 1)

    @given(st.binary(max_size=30))
    def test_user_data_that_makes_no_sense_claims_nothing(self, rubbish: bytes) -> None:
        group = [member("m1", "a", user_data=rubbish), member("m2", "a")]
        assert sum(map(len, StickyAssignor().assign({"a": 4}, group).values())) == 4


class TestCooperativeSticky:
    def test_a_partition_that_moves_is_first_taken_from_its_owner_only(self) -> None:
        assignor = CooperativeStickyAssignor()
        owner = member("m1", "a", owned=frozenset(parts("a", 0, 1)), generation=1)
        first = assignor.assign({"a": 2}, [owner, member("m2", "a")])
        assert sum(map(len, first.values())) == 1
        assert first["m2"] == []
        left = frozenset(first["m1"])
        second = assignor.assign(
            {"a": 2}, [member("m1", "a", owned=left, generation=2), member("m2", "a", generation=2)]
        )
        assert len(second["m2"]) == 1
        assert frozenset(second["m1"]) == left

    def test_the_generation_may_come_in_the_user_data(self) -> None:
        assignor = CooperativeStickyAssignor()
        old = member("m1", "a", owned=frozenset(parts("a", 0)), user_data=assignor.user_data([], 1))
        new = member("m2", "a", owned=frozenset(parts("a", 0)), user_data=assignor.user_data([], 2))
        # m2 has the newer claim, but m1 still reads the partition: nobody gets it in this round.
        assert assignor.assign({"a": 1}, [old, new]) == {"m1": [], "m2": []}

    @given(counts, members)
    def test_nobody_is_given_what_another_still_owns(
        self, partitions: dict[str, int], group: list[GroupSubscription]
    ) -> None:
        assignor = CooperativeStickyAssignor()
        before = assignor.assign(partitions, group[:1])
        owning = [
            member(one.member_id, *one.topics, owned=frozenset(before.get(one.member_id, [])), generation=1)
            for one in group
        ]
        for name, held in assignor.assign(partitions, owning).items():
            others = {tp for one in owning if one.member_id != name for tp in one.owned}
            assert not others & set(held)


class TestNames:
    def test_short_names_and_the_names_of_java_mean_the_same(self) -> None:
        java = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
        assert assignors_named([java]) == assignors_named(["cooperative-sticky"])

    def test_an_object_of_the_user_is_taken(self) -> None:
        mine = RangeAssignor()
        assert assignors_named([mine]) == [mine]

    def test_an_unknown_name_is_refused_with_those_there_are(self) -> None:
        with pytest.raises(ConfigFault, match="no assignor is called 'rang'; there are range, roundrobin"):
            assignors_named(["rang"])

    def test_what_is_no_assignor_is_refused(self) -> None:
        with pytest.raises(ConfigFault, match="3 is not an assignor"):
            assignors_named([3])

    def test_no_assignor_at_all_is_refused(self) -> None:
        with pytest.raises(ConfigFault, match="must name at least one"):
            assignors_named([])


def test_grouping_by_topic_can_be_undone() -> None:
    given_out = parts("b", 2) + parts("a", 1, 0)
    assert ungrouped(grouped(given_out)) == sorted(given_out)
