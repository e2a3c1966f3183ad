"""The process environment, for the few switches that must be known while modules are imported.

Everything else a user sets is a row of a ConfigTable.
"""

import os

__all__ = ["switch"]


def switch(name: str) -> str | None:
    """The value of environment variable `name`, or None when it is unset or empty."""
    return os.environ.get(name) or None
