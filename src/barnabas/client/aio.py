"""The asynchronous clients: the names and methods of the synchronous ones, on the caller's event loop."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.client.aio_admin import Admin as Admin
    from barnabas.client.aio_consumer import Consumer as Consumer
    from barnabas.client.aio_producer import Producer as Producer

__all__ = ["Admin", "Consumer", "Producer"]

_HOMES = {
    "Admin": "barnabas.client.aio_admin",
    "Consumer": "barnabas.client.aio_consumer",
    "Producer": "barnabas.client.aio_producer",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'barnabas.client.aio' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
