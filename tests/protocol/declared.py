"""Every declared message class, found by looking."""

from functools import cache
from importlib import import_module

from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.schema import Message
from barnabas.protocol.storage.stored import Stored

_STORAGE = ("consumer_groups", "consumer_protocol", "control", "offsets", "transactions")


@cache
def stored_classes() -> list[type[Stored]]:
    """What internal topics and group members hold."""
    modules = [import_module(f"barnabas.protocol.storage.{name}") for name in _STORAGE]
    found = [item for module in modules for item in vars(module).values() if isinstance(item, type)]
    return [item for item in found if issubclass(item, Stored) and item is not Stored]


@cache
def classes() -> dict[str, type[Message]]:
    """Every message class by its name."""
    exchanged = [cls for key in ApiKey for cls in (API[key].request, API[key].response)]
    return {cls.__name__: cls for cls in [*exchanged, *stored_classes()]}
