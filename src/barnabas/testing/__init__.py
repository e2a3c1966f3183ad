"""What tests of applications and of Barnabas itself use: a real broker in the process, fixtures, suites."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker as Broker

__all__ = ["Broker"]

_HOMES = {"Broker": "barnabas.testing.broker"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'barnabas.testing' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
