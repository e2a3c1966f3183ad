"""barnabas.controller.changes: the reasons why a command is not carried out."""

from barnabas.base.errors import BarnabasError
from barnabas.controller import changes
from barnabas.controller.changes import CommandRefused


def test_every_reason_is_a_refusal_that_changed_nothing() -> None:
    reasons = [getattr(changes, name) for name in changes.__all__ if name != "Change"]
    assert all(issubclass(reason, CommandRefused) for reason in reasons)
    assert issubclass(CommandRefused, BarnabasError)
