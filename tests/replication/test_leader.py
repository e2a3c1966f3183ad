"""barnabas.replication.leader: the high watermark and the in-sync set."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.replication.leader import LeaderState


def leader(in_sync: set[int] | None = None, log_end: int = 10, high_watermark: int = 0) -> LeaderState:
    return LeaderState(
        local=1,
        replicas=(1, 2, 3),
        in_sync=in_sync if in_sync is not None else {1, 2, 3},
        log_end=log_end,
        high_watermark=high_watermark,
    )


class TestHighWatermark:
    def test_a_single_replica_commits_what_it_has(self) -> None:
        state = LeaderState(local=1, replicas=(1,), in_sync=(1,), log_end=5, high_watermark=0)
        assert state.high_watermark == 5
        assert state.log_grew(7) is True
        assert state.high_watermark == 7
        assert state.log_grew(7) is False

    def test_it_is_the_least_end_of_the_in_sync_set(self) -> None:
        state = leader()
        assert state.high_watermark == 0
        assert state.follower_fetched(2, 8, now_ms=1) is False
        assert state.follower_fetched(3, 6, now_ms=2) is True
        assert state.high_watermark == 6

    def test_a_replica_outside_the_set_does_not_hold_it_back(self) -> None:
        state = leader(in_sync={1, 2})
        assert state.follower_fetched(2, 9, now_ms=1) is True
        assert state.high_watermark == 9

    def test_it_moves_when_a_laggard_leaves_the_set(self) -> None:
        state = leader()
        state.follower_fetched(2, 10, now_ms=1)
        assert state.in_sync_changed({1, 2}) is True
        assert state.high_watermark == 10

    def test_it_never_passes_the_local_end(self) -> None:
        state = leader(in_sync={1, 2}, log_end=10)
        state.follower_fetched(2, 50, now_ms=1)
        assert state.high_watermark == 10

    def test_a_mark_read_from_disk_is_cut_to_the_log(self) -> None:
        assert leader(log_end=3, high_watermark=9).high_watermark == 3

    def test_truncation_cuts_it(self) -> None:
        state = leader(high_watermark=8)
        state.log_truncated(5)
        assert state.high_watermark == 5

    @given(st.lists(st.tuples(st.sampled_from([2, 3]), st.integers(0, 40)), max_size=40))
    def test_it_never_falls_within_an_epoch(self, fetches: list[tuple[int, int]]) -> None:
        state, end, seen = leader(), 10, 0
        for node, offset in fetches:
            end += 1
            state.log_grew(end)
            state.follower_fetched(node, offset, now_ms=end)
            assert seen <= state.high_watermark <= end
            seen = state.high_watermark


class TestInSyncSet:
    def test_the_leader_is_always_in_it(self) -> None:
        with pytest.raises(AssertionError, match="R1"):
            leader(in_sync={2, 3})
        with pytest.raises(AssertionError, match="R1"):
            leader().in_sync_changed({2})

    def test_a_follower_that_stops_fetching_lags(self) -> None:
        state = leader()
        state.follower_fetched(2, 10, now_ms=1_000)
        state.follower_fetched(3, 4, now_ms=1_000)
        assert state.lagging(now_ms=12_000, lag_ms_max=10_000) == {3}

    def test_a_follower_that_has_everything_never_lags(self) -> None:
        state = leader()
        state.follower_fetched(2, 10, now_ms=0)
        state.follower_fetched(3, 10, now_ms=0)
        assert state.lagging(now_ms=10**9, lag_ms_max=10_000) == frozenset()

    def test_one_round_trip_behind_still_counts_as_keeping_up(self) -> None:
        state = leader()
        state.follower_fetched(2, 9, now_ms=9_000)
        state.log_grew(20)
        state.follower_fetched(2, 10, now_ms=15_000)
        assert 2 not in state.lagging(now_ms=18_000, lag_ms_max=10_000)
        assert 2 in state.lagging(now_ms=20_000, lag_ms_max=10_000)

    def test_a_follower_joins_at_the_high_watermark(self) -> None:
        state = leader(in_sync={1, 2})
        state.follower_fetched(2, 7, now_ms=1)
        state.follower_fetched(3, 6, now_ms=1)
        assert state.ready_to_join() == frozenset()
        state.follower_fetched(3, 7, now_ms=2)
        assert state.ready_to_join() == {3}

    def test_a_stranger_changes_nothing(self) -> None:
        state = leader()
        assert state.follower_fetched(9, 100, now_ms=1) is False
        assert state.ready_to_join() == frozenset()
