"""The streaming stack Python people can install.

    from barnabas import Producer, Consumer, Admin      # blocking, thread-safe
    from barnabas.aio import Producer, Consumer, Admin  # the same names for asyncio

The root exports lazily: importing `barnabas` costs nothing, the first use of a name imports its home.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas._version import __version__ as __version__
    from barnabas.client.admin import Admin as Admin
    from barnabas.client.consumer import Consumer as Consumer
    from barnabas.client.errors import KafkaError as KafkaError
    from barnabas.client.producer import Producer as Producer

__all__ = ["Admin", "Consumer", "KafkaError", "Producer", "__version__"]

_HOMES = {
    "Admin": "barnabas.client.admin",
    "Consumer": "barnabas.client.consumer",
    "KafkaError": "barnabas.client.errors",
    "Producer": "barnabas.client.producer",
    "__version__": "barnabas._version",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'barnabas' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
