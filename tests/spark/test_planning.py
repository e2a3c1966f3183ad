"""Ranges cut into tasks: every offset once, the same tasks every time, Spark's rules of splitting."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from barnabas.spark.planning import OffsetRange, ReadTask, plan_tasks

RANGES = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 5)),
    st.tuples(st.integers(0, 10**12), st.integers(0, 200_000)),
    max_size=12,
).map(lambda found: [OffsetRange(t, p, start, start + size) for (t, p), (start, size) in found.items()])


def covered(tasks: list[tuple[OffsetRange, ...]]) -> list[OffsetRange]:
    """The pieces of all tasks, those that touch put together."""
    whole: list[OffsetRange] = []
    for piece in sorted(piece for task in tasks for piece in task):
        if whole and whole[-1][:2] == piece[:2] and whole[-1].end == piece.start:
            whole[-1] = whole[-1]._replace(end=piece.end)
        else:
            whole.append(piece)
    return whole


def one(size: int, partition: int = 0) -> OffsetRange:
    return OffsetRange("t", partition, 0, size)


@given(
    RANGES,
    st.none() | st.integers(1, 40),
    st.none() | st.integers(100, 50_000),
    st.integers(0, 50_000),
)
def test_every_offset_is_in_exactly_one_task(
    ranges: list[OffsetRange], least: int | None, most: int | None, pack: int
) -> None:
    tasks = plan_tasks(ranges, min_partitions=least, max_records_per_partition=most, pack_records=pack)
    assert covered(tasks) == sorted(each for each in ranges if each.size)
    assert all(task for task in tasks)


@given(RANGES, st.randoms())
def test_the_order_in_which_ranges_come_changes_nothing(ranges: list[OffsetRange], random: object) -> None:
    mixed = list(ranges)
    random.shuffle(mixed)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    assert plan_tasks(mixed) == plan_tasks(ranges)
    assert plan_tasks(mixed, min_partitions=7) == plan_tasks(ranges, min_partitions=7)


@given(RANGES, st.integers(1, 100_000))
def test_no_task_passes_max_records_per_partition(ranges: list[OffsetRange], most: int) -> None:
    most = max(most, 1 + max((each.size for each in ranges), default=0) // 500)
    tasks = plan_tasks(ranges, max_records_per_partition=most)
    assert all(sum(each.size for each in task) <= most for task in tasks)


@given(RANGES)
def test_partitions_stay_whole_unless_a_split_is_asked_for(ranges: list[OffsetRange]) -> None:
    pieces = [piece for task in plan_tasks(ranges) for piece in task]
    assert sorted(pieces) == sorted(each for each in ranges if each.size)


class TestPacking:
    def test_small_partitions_share_a_task(self) -> None:
        assert plan_tasks([one(10, n) for n in range(50)]) == [tuple(one(10, n) for n in range(50))]

    def test_large_partitions_have_a_task_each(self) -> None:
        assert plan_tasks([one(100_000, n) for n in range(3)]) == [(one(100_000, n),) for n in range(3)]

    def test_a_task_for_every_partition_when_packing_is_off(self) -> None:
        assert len(plan_tasks([one(1, n) for n in range(9)], pack_records=0)) == 9

    def test_an_empty_batch_has_no_task(self) -> None:
        assert plan_tasks([one(0)]) == []


class TestSplittingAsSparkDoes:
    """By the rules of Spark's own source."""

    def test_one_partition_in_even_parts(self) -> None:
        tasks = plan_tasks([one(10)], min_partitions=4)
        assert [task[0].size for task in tasks] == [2, 2, 3, 3]

    def test_enough_partitions_are_left_alone(self) -> None:
        ranges = [one(100, n) for n in range(3)]
        assert plan_tasks(ranges, min_partitions=3) == [(each,) for each in ranges]

    def test_large_partitions_get_more_of_the_parts(self) -> None:
        tasks = plan_tasks([one(1000, 0), one(3000, 1)], min_partitions=8)
        assert [task[0].partition for task in tasks] == [0, 0, 1, 1, 1, 1, 1, 1]

    def test_small_ones_stay_whole_and_leave_the_parts_to_the_rest(self) -> None:
        tasks = plan_tasks([one(1, 0), one(1, 1), one(10_000, 2)], min_partitions=10)
        assert [task[0].partition for task in tasks] == [0, 1, *[2] * 8]

    def test_first_by_size_then_by_number(self) -> None:
        ranges = [one(100, 0), one(10, 1)]
        assert [t[0].size for t in plan_tasks(ranges, max_records_per_partition=50)] == [50, 50, 10]
        both = plan_tasks(ranges, max_records_per_partition=50, min_partitions=6)
        assert [t[0].size for t in both] == [16, 17, 17, 16, 17, 17, 10]


def test_a_task_travels_and_prints() -> None:
    task = ReadTask([one(5), one(7, 1)])
    copy = pickle.loads(pickle.dumps(task))
    assert (copy, hash(copy), copy.ranges) == (task, hash(task), task.ranges)
    assert repr(copy) == "ReadTask(t-0[0, 5), t-1[0, 7))"
    assert task != ReadTask([one(5)])
