"""Who may connect."""

import pytest

from barnabas.net.admission import Admission
from barnabas.net.limits import ServerLimits


def test_the_total_is_limited() -> None:
    admission = Admission(ServerLimits(connections_max=2))
    assert admission.admit("a", "L", 10) is None
    assert admission.admit("b", "L", 10) is None
    assert admission.admit("c", "L", 10) == "there are 2 connections already (max.connections)"
    admission.release("a", "L")
    assert admission.admit("c", "L", 10) is None


def test_each_listener_is_limited() -> None:
    admission = Admission(ServerLimits())
    assert admission.admit("a", "L", 1) is None
    assert admission.admit("a", "L", 1) == "the listener has 1 connections already (max.connections)"
    assert admission.admit("a", "M", 1) is None


def test_each_address_is_limited_and_some_have_other_limits() -> None:
    admission = Admission(ServerLimits(connections_per_host_max=1, connections_per_host={"b": 2, "c": 0}))
    assert admission.admit("a", "L", 9) is None
    assert admission.admit("a", "L", 9) == "a has 1 connections already (max.connections.per.ip)"
    assert [admission.admit("b", "L", 9) is None for _ in range(3)] == [True, True, False]
    assert admission.admit("c", "L", 9) == "c has 0 connections already (max.connections.per.ip)"
    assert admission.total == 3


def test_limits_can_change_while_in_use() -> None:
    admission = Admission(ServerLimits())
    assert admission.admit("a", "L", 9) is None
    admission.limits = ServerLimits(connections_max=1)
    assert admission.admit("a", "L", 9) is not None


def test_a_second_has_its_share_of_new_connections() -> None:
    admission = Admission(ServerLimits(connections_per_second_max=2))
    for _ in range(2):
        assert admission.wait_ms(10_300) == 0
        admission.count_accepted()
    assert admission.wait_ms(10_300) == 700
    assert admission.wait_ms(11_000) == 0


def test_a_release_too_many_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="A1: a was released too often"):
        Admission(ServerLimits()).release("a", "L")
