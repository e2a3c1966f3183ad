"""Both twins of the producer's per-record path, and a home for their batches."""

import importlib
from types import ModuleType
from typing import Any

import pytest

from barnabas.client import _hot_plain
from barnabas.records import _kernel_plain


def twins() -> list[Any]:
    """The plain twin with the plain builder and, where it was built, the compiled one."""
    found = [pytest.param((_hot_plain, _kernel_plain.PayloadBuilder), id="plain")]
    try:
        compiled = importlib.import_module("barnabas.client._hot")
        kernel = importlib.import_module("barnabas.records._kernel")
    except ImportError:
        return found
    return [*found, pytest.param((compiled, kernel.PayloadBuilder), id="compiled")]


class Home:
    """Notes who was hastened."""

    def __init__(self) -> None:
        self.hastened: list[object] = []

    def hasten(self, batch: object) -> None:
        self.hastened.append(batch)

    hasten_soon = hasten


class Twin:
    """One twin with the objects a test needs."""

    def __init__(self, chosen: tuple[ModuleType, type[Any]]) -> None:
        # Any: the two modules have the same names, and the compiled one no types of its own.
        self.module: Any = chosen[0]
        self.builder = chosen[1]
        self.home = Home()

    def batch(self, limit: int = 1000, partition: int = 0) -> Any:
        return self.module.BatchBase("t", partition, self.builder(limit), self.home)

    def appender(self, batches: list[Any], *, hashes_keys: bool = True, clock: Any = None) -> Any:
        """An appender of topic `t` with a lane per batch, None for one that is not open."""
        lanes = []
        for batch in batches:
            lane = self.module.Lane()
            lane.open = batch
            lanes.append(lane)
        appender = self.module.Appender(hashes_keys=hashes_keys, clock=clock)
        appender.topics["t"] = self.module.TopicLanes("t", lanes)
        return appender
