"""Switches of the process environment."""

import pytest

from barnabas.base.environment import switch


def test_a_switch_that_is_unset_or_empty_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BARNABAS_TEST_SWITCH", raising=False)
    assert switch("BARNABAS_TEST_SWITCH") is None
    monkeypatch.setenv("BARNABAS_TEST_SWITCH", "")
    assert switch("BARNABAS_TEST_SWITCH") is None


def test_a_switch_that_is_set_has_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARNABAS_TEST_SWITCH", "plain")
    assert switch("BARNABAS_TEST_SWITCH") == "plain"
