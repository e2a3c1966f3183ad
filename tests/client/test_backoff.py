"""Waits double up to a limit, are spread by chance, and begin anew after a success."""

import random

from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.backoff import Backoff


@given(st.integers(0, 5_000), st.integers(0, 60_000), st.integers(0, 2**32))
def test_each_wait_is_near_its_nominal_length(first_ms: int, most_ms: int, seed: int) -> None:
    backoff = Backoff(first_ms, most_ms, chance=random.Random(seed))
    for failures in range(100):
        assert backoff.failures == failures
        nominal = min(first_ms * 2 ** min(failures, 30), max(first_ms, most_ms))
        assert nominal * 0.8 <= backoff.next_ms() <= nominal * 1.2


def test_a_success_begins_anew() -> None:
    backoff = Backoff(100, 1_000)
    for _ in range(10):
        backoff.next_ms()
    backoff.reset()
    assert backoff.failures == 0
    assert backoff.next_ms() <= 120
