"""Answers leave in order, and only when told."""

from barnabas.coordinator.outbox import Outbox


def test_nothing_leaves_before_the_flush() -> None:
    outbox, seen = Outbox(), list[int]()
    outbox.post(seen.append, 1)
    assert seen == []
    outbox.flush()
    assert seen == [1]


def test_answers_leave_in_the_order_they_were_posted_those_of_replies_last() -> None:
    outbox, seen = Outbox(), list[int]()

    def call_back(result: int) -> None:
        seen.append(result)
        outbox.post(seen.append, 3)
        outbox.flush()

    outbox.post(call_back, 1)
    outbox.post(seen.append, 2)
    outbox.flush()
    assert seen == [1, 2, 3]
