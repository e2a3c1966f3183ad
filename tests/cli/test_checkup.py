"""barnabas.cli.checkup: the way to a cluster, a step at a time."""

import pytest

from barnabas.base.errors import ConfigFault
from barnabas.cli.checkup import Outcome, examine
from barnabas.cli.connection import Connection


def test_every_step_says_what_it_saw_and_how_long_it_took(bootstrap: str) -> None:
    checks = {check.stage: check for check in examine(Connection(bootstrap), write=False)}
    assert {check.outcome for check in checks.values()} == {Outcome.OK, Outcome.SKIPPED}
    assert checks["DNS"].detail == "127.0.0.1 is a number, no look-up needed"
    assert "of them spoken by this client" in checks["ApiVersions"].detail
    assert checks["metadata"].detail.endswith(", 1 brokers")
    assert all(check.took_ms >= 0 for check in checks.values())


def test_an_address_that_fails_does_not_hide_one_that_works(bootstrap: str) -> None:
    checks = list(examine(Connection(f"localhost:1,{bootstrap}"), write=True))
    assert [check.stage for check in checks if check.outcome is Outcome.FAILED] == ["connect"]
    assert "topics" in [check.stage for check in checks]
    assert "produce" not in [check.stage for check in checks], "what is not sound is not written to"


def test_a_wrong_address_is_a_wrong_setting() -> None:
    with pytest.raises(ConfigFault, match="is not of the form host:port"):
        list(examine(Connection("localhost"), write=False))
