"""barnabas.spark.pipelines.replay_pace: never ahead of the rate, partitions together (P1, P2)."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.spark.pipelines.replay_pace import Extent, due_ms, duration_s, ends_by_count, in_records
from barnabas.spark.pipelines.replay_plan import Rate

TWO = {0: Extent(0, 100), 1: Extent(50, 350)}


def test_partitions_get_their_share() -> None:
    assert ends_by_count(TWO, {0: 0, 1: 50}, 40, 5) == {0: 50, 1: 200}
    assert ends_by_count(TWO, {0: 0, 1: 50}, 40, 500) == {0: 100, 1: 350}
    assert ends_by_count(TWO, {0: 100, 1: 350}, 40, 0) == {0: 100, 1: 350}


def test_it_goes_on_from_where_it_was() -> None:
    assert ends_by_count(TWO, {0: 100, 1: 150}, 10, 10) == {0: 100, 1: 250}


@given(
    st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 1_000)), min_size=1, max_size=6),
    st.floats(0.1, 1e6),
    st.floats(0, 1e4),
)
def test_it_is_never_ahead(sizes: list[tuple[int, int]], per_second: float, elapsed_s: float) -> None:
    extents = {number: Extent(start, start + size) for number, (start, size) in enumerate(sizes)}
    done = {number: extent.start for number, extent in extents.items()}
    ends = ends_by_count(extents, done, per_second, elapsed_s)
    moved = sum(ends[number] - done[number] for number in extents)
    assert moved <= per_second * elapsed_s + 1e-6 or moved == 0
    assert all(done[number] <= ends[number] <= extents[number].end for number in extents)


def test_moments_of_the_recording() -> None:
    assert due_ms(1_000, 2.0, 1.5) == 4_000


def test_how_long_it_takes() -> None:
    assert duration_s(Rate("records", 100), 1_000, 0, 0) == 10
    assert duration_s(Rate("bytes", 100), 0, 500, 0) == 5
    assert duration_s(Rate("speed", 2), 0, 0, 60_000) == 30
    assert duration_s(Rate(), 1, 1, 1) is None


def test_bytes_become_records() -> None:
    assert in_records(Rate("bytes", 1_000), 100) == Rate("records", 10)
    assert in_records(Rate("records", 5), 100) == Rate("records", 5)
