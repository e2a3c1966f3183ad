"""Replica placement: even, apart, and the same for the same arguments."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.placement import InvalidPartitionCount, InvalidReplicationFactor, place_replicas

brokers_drawn = st.dictionaries(
    st.integers(0, 50), st.none() | st.sampled_from("abc"), min_size=1, max_size=9
)
racked = st.dictionaries(st.integers(0, 50), st.sampled_from("abc"), min_size=1, max_size=9)


@given(brokers_drawn, st.integers(1, 40), st.integers(0, 20), st.data())
def test_leaders_are_even_and_replicas_distinct(
    brokers: dict[int, str | None], count: int, start: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    placed = place_replicas(brokers, count, factor, start_index=start)
    assert len(placed) == count
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert set(replicas) <= set(brokers)
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - (min(leaders.values()) if len(leaders) == len(brokers) else 0) <= 1


@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 20), st.data())
def test_without_racks_whole_rounds_load_every_broker_alike(
    size: int, rounds: int, start: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, size))
    placed = place_replicas(dict.fromkeys(range(size)), size * rounds, factor, start_index=start)
    load = Counter(broker for replicas in placed for broker in replicas)
    assert set(load.values()) == {rounds * factor}


@given(racked, st.integers(1, 40), st.integers(0, 20), st.data())
def test_a_partition_covers_as_many_racks_as_it_can(
    brokers: dict[int, str | None], count: int, start: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    rack_count = len(set(brokers.values()))
    for replicas in place_replicas(brokers, count, factor, start_index=start):
        assert len({brokers[broker] for broker in replicas}) == min(factor, rack_count)


@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 9))
def test_equal_racks_are_loaded_alike(per_rack: int, rounds: int, start: int) -> None:
    brokers: dict[int, str | None] = {number: "abc"[number % 3] for number in range(3 * per_rack)}
    placed = place_replicas(brokers, len(brokers) * rounds, 3, start_index=start)
    load = Counter(broker for replicas in placed for broker in replicas)
    assert set(load.values()) == {3 * rounds}


def test_the_followers_of_a_broker_are_spread_over_the_others() -> None:
    placed = place_replicas(dict.fromkeys(range(5)), 20, 2, start_index=0)
    followers = {replicas[1] for replicas in placed if replicas[0] == 0}
    assert followers == {1, 2, 3, 4}


def test_a_small_cluster_by_hand() -> None:
    assert place_replicas(dict.fromkeys([1, 2, 3]), 4, 2, start_index=0) == [(1, 2), (2, 3), (3, 1), (1, 3)]
    racks: dict[int, str | None] = {0: "r1", 1: "r3", 2: "r3", 3: "r2", 4: "r2", 5: "r1"}
    placed = place_replicas(racks, 7, 3, start_index=0)
    assert placed[:6] == [(0, 3, 1), (3, 1, 5), (1, 5, 4), (5, 4, 2), (4, 2, 0), (2, 0, 3)]
    assert placed[6] == (0, 4, 2), "the second round shifts the followers"


@given(brokers_drawn, st.integers(1, 20), st.integers(1, 20), st.integers(0, 9))
def test_partitions_added_later_carry_on(
    brokers: dict[int, str | None], first: int, more: int, start: int
) -> None:
    whole = place_replicas(brokers, first + more, 1, start_index=start)
    later = place_replicas(brokers, more, 1, start_index=start, first_partition=first)
    assert whole[first:] == later


def test_impossible_requests_are_refused_with_kafkas_text() -> None:
    with pytest.raises(
        InvalidPartitionCount, match="Number of partitions was set to an invalid non-positive value"
    ):
        place_replicas({1: None}, 0, 1, start_index=0)
    with pytest.raises(
        InvalidReplicationFactor, match="Invalid replication factor 0: the replication factor must"
    ):
        place_replicas({1: None}, 1, 0, start_index=0)
    with pytest.raises(InvalidReplicationFactor) as caught:
        place_replicas({1: None}, 1, 3, start_index=0)
    assert str(caught.value) == (
        "The target replication factor of 3 cannot be reached because only 1 broker(s) are registered."
    )
