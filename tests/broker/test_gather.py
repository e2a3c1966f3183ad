"""barnabas.broker.gather: one answer for several calls."""

from barnabas.broker.gather import Gather


def test_the_answer_comes_with_the_last_result() -> None:
    answers: list[dict[str, int]] = []
    gather: Gather[str, int] = Gather(["a", "b"], answers.append)
    gather.done("b", 2)
    assert answers == []
    gather.done("a", 1)
    assert answers == [{"a": 1, "b": 2}]


def test_nothing_to_wait_for_is_answered_at_once() -> None:
    answers: list[dict[str, int]] = []
    Gather([], answers.append)
    assert answers == [{}]
