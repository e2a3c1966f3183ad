"""The newest batches of a segment in memory."""

from barnabas.log.tail import TAIL_BATCHES_MAX, Tail


def tail(*batches: tuple[int, int]) -> Tail:
    """(last offset, position) of each batch."""
    made = Tail()
    for last, position in batches:
        made.lasts.append(last)
        made.positions.append(position)
    return made


def test_an_empty_tail_knows_nothing() -> None:
    assert (tail().find(5), tail().boundary(5), tail().offset_before(5), len(tail())) == (-1, -1, -1, 0)


def test_a_batch_is_found_by_any_of_its_offsets() -> None:
    found = tail((9, 100), (14, 200), (19, 300))
    assert [found.find(offset) for offset in (10, 14, 15, 19)] == [1, 1, 2, 2]


def test_what_may_lie_before_the_tail_is_not_answered() -> None:
    assert tail((9, 100), (14, 200)).find(9) == -1
    assert tail((9, 0), (14, 200)).find(9) == 0


def test_boundaries() -> None:
    found = tail((9, 100), (14, 200), (19, 300))
    assert [found.boundary(position) for position in (99, 100, 250, 999)] == [-1, 100, 200, 300]
    assert [found.offset_before(position) for position in (100, 200, 300)] == [-1, 9, 14]


def test_a_cut_forgets_the_end() -> None:
    found = tail((9, 100), (14, 200), (19, 300))
    found.cut(200)
    assert (list(found.lasts), list(found.positions)) == ([9], [100])
    found.clear()
    assert len(found) == 0


def test_trimming_keeps_the_newer_half() -> None:
    found = tail(*((number, number * 10) for number in range(TAIL_BATCHES_MAX + 1)))
    found.trim()
    assert len(found) == TAIL_BATCHES_MAX // 2
    assert found.lasts[-1] == TAIL_BATCHES_MAX
