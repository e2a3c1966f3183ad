"""Balance comes first, then as few moves as possible."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.types import TopicPartition
from barnabas.client.sticky import balance, claims_of

TOPICS = ("a", "b", "c")
MEMBERS = ("m1", "m2", "m3", "m4", "m5")

readers_of = st.dictionaries(
    st.sampled_from(MEMBERS), st.frozensets(st.sampled_from(TOPICS), min_size=1), min_size=1
)
counts = st.fixed_dictionaries({topic: st.integers(0, 7) for topic in TOPICS})


def parts(topic: str, *numbers: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


@given(counts, readers_of)
def test_every_partition_goes_to_one_of_its_readers(
    partitions: dict[str, int], readers: dict[str, frozenset[str]]
) -> None:
    assigned = balance(partitions, readers, {})
    given_out = [tp for held in assigned.values() for tp in held]
    wanted = {topic for topics in readers.values() for topic in topics}
    assert sorted(given_out) == [
        TopicPartition(topic, n) for topic in TOPICS if topic in wanted for n in range(partitions[topic])
    ]
    assert all(tp.topic in readers[member] for member, held in assigned.items() for tp in held)


@given(counts, readers_of)
def test_no_single_move_makes_the_loads_more_even(
    partitions: dict[str, int], readers: dict[str, frozenset[str]]
) -> None:
    assigned = balance(partitions, readers, {})
    for giver, taker in combinations(readers, 2):
        for high, low in ((giver, taker), (taker, giver)):
            movable = any(tp.topic in readers[low] for tp in assigned[high])
            assert not movable or len(assigned[high]) - len(assigned[low]) < 2


@given(counts, readers_of)
def test_assigning_again_what_is_balanced_moves_nothing(
    partitions: dict[str, int], readers: dict[str, frozenset[str]]
) -> None:
    first = balance(partitions, readers, {})
    claims = {tp: member for member, held in first.items() for tp in held}
    assert balance(partitions, readers, claims) == first


@given(counts, st.sets(st.sampled_from(MEMBERS), min_size=2))
def test_one_who_leaves_gives_only_its_own(partitions: dict[str, int], members: set[str]) -> None:
    everything = frozenset(TOPICS)
    before = balance(partitions, dict.fromkeys(sorted(members), everything), {})
    gone = min(members)
    claims = {tp: member for member, held in before.items() for tp in held if member != gone}
    after = balance(partitions, dict.fromkeys(sorted(members - {gone}), everything), claims)
    assert all(set(before[member]) <= set(after[member]) for member in after)


def test_one_who_comes_takes_just_its_share() -> None:
    topics = frozenset({"a"})
    claims = {TopicPartition("a", n): "m1" if n < 3 else "m2" for n in range(6)}
    after = balance({"a": 6}, {"m1": topics, "m2": topics, "m3": topics}, claims)
    kept = sum(claims[tp] == member for member, held in after.items() for tp in held)
    assert sorted(map(len, after.values())) == [2, 2, 2]
    assert kept == 4


def test_loads_even_out_along_a_path_of_members() -> None:
    # m1 reads only a, m3 only b: what m1 has too much can reach m3 only through m2.
    readers = {"m1": frozenset("a"), "m2": frozenset("ab"), "m3": frozenset("b")}
    claims = {tp: "m1" for tp in parts("a", 0, 1, 2, 3)} | {tp: "m2" for tp in parts("b", 0, 1)}
    after = balance({"a": 4, "b": 2}, readers, claims)
    assert sorted(map(len, after.values())) == [2, 2, 2]


class TestClaims:
    def test_the_newest_generation_wins(self) -> None:
        told = [("m1", frozenset(parts("a", 0)), 4), ("m2", frozenset(parts("a", 0)), 5)]
        readers = {"m1": frozenset("a"), "m2": frozenset("a")}
        assert claims_of(told, {"a": 1}, readers) == {TopicPartition("a", 0): "m2"}

    def test_two_claims_of_one_generation_cancel_each_other(self) -> None:
        told = [("m1", frozenset(parts("a", 0)), 4), ("m2", frozenset(parts("a", 0)), 4)]
        assert claims_of(told, {"a": 1}, {"m1": frozenset("a"), "m2": frozenset("a")}) == {}

    def test_what_is_gone_or_unread_is_not_kept(self) -> None:
        told = [("m1", frozenset(parts("a", 0, 9) + parts("b", 0)), 1)]
        assert claims_of(told, {"a": 1, "b": 1}, {"m1": frozenset("a")}) == {TopicPartition("a", 0): "m1"}
