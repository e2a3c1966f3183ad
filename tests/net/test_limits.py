"""Limits refuse values that would stop everything."""

from typing import Any

import pytest

from barnabas.net.limits import ConnectionLimits, ServerLimits


@pytest.mark.parametrize(
    "name", ["request_bytes_max", "requests_open_max", "unsent_bytes_max", "idle_ms_max"]
)
def test_a_connection_is_granted_something(name: str) -> None:
    values: dict[str, Any] = {name: 0}
    with pytest.raises(AssertionError):
        ConnectionLimits(**values)


@pytest.mark.parametrize("name", ["held_bytes_max", "stalled_ms_max", "connections_per_second_max"])
def test_a_server_is_granted_something(name: str) -> None:
    values: dict[str, Any] = {name: 0}
    with pytest.raises(AssertionError):
        ServerLimits(**values)
