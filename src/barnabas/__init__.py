"""The streaming stack Python people can install.

The root exports lazily: importing `barnabas` costs nothing, the first use of a name imports its home.
"""

from importlib import import_module
from typing import Any

__all__ = ["__version__"]

_HOMES = {"__version__": "barnabas._version"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'barnabas' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
