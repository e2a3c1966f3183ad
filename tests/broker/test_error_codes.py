"""barnabas.broker.error_codes: every error that a request can meet has its code."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest

from barnabas.base.errors import BarnabasError, ConfigFault, Misuse, PeerFault, StorageFault
from barnabas.broker.error_codes import CODES, code_of
from barnabas.log.errors import DiskFull
from barnabas.protocol.codes import ErrorCode
from barnabas.records.errors import CorruptBatch

PACKAGES = ("records", "log", "replication", "controller", "metadata", "store")

# Never an answer: they end a start, a connection, or are our own bug.
INTERNAL = {
    "barnabas.metadata.deltas.DeltaRefused": "an image and its deltas contradict each other: our bug",
    "barnabas.log.cleaner_jobs.Stopped": "a compaction that was told to give up",
    "barnabas.store.errors.BadPath": "our own bug",
    "barnabas.store.errors.NodeTooLarge": "commands are bounded before they become nodes",
    **{
        f"barnabas.store.errors.{name}": "the tree and the image contradict each other, or the tree is gone"
        for name in (
            "StoreError",
            "NoNode",
            "NodeExists",
            "BadVersion",
            "NotEmpty",
            "NoChildrenForEphemerals",
            "SessionExpired",
            "ConnectionLost",
        )
    },
}


def error_classes() -> Iterator[type[BarnabasError]]:
    seen: set[type[BarnabasError]] = set()
    for package in PACKAGES:
        folder = importlib.import_module(f"barnabas.{package}")
        for found in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
            if found.name.rsplit(".", 1)[-1].startswith("_"):
                continue
            for _, kind in inspect.getmembers(importlib.import_module(found.name), inspect.isclass):
                if kind.__name__.startswith("_") or kind.__module__ != found.name:
                    continue
                if issubclass(kind, BarnabasError) and kind not in seen:
                    seen.add(kind)
                    yield kind


@pytest.mark.parametrize("kind", list(error_classes()), ids=lambda kind: kind.__name__)
def test_it_has_a_code_or_is_listed_as_internal(kind: type[BarnabasError]) -> None:
    name = f"{kind.__module__}.{kind.__name__}"
    if name in INTERNAL:
        return
    assert any(each in CODES for each in kind.__mro__), f"{name} would be answered as UNKNOWN_SERVER_ERROR"


def test_what_is_listed_as_internal_exists_and_has_no_code() -> None:
    kinds = {f"{kind.__module__}.{kind.__name__}": kind for kind in error_classes()}
    assert set(INTERNAL) <= set(kinds)
    assert not any(kinds[name] in CODES for name in INTERNAL)


def test_the_nearest_class_above_counts() -> None:
    class Sharper(CorruptBatch):
        pass

    assert code_of(Sharper("x")) is ErrorCode.CORRUPT_MESSAGE
    assert code_of(DiskFull("path", "reason")) is ErrorCode.KAFKA_STORAGE_ERROR
    assert code_of(ConfigFault("x")) is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("kind", [Misuse, PeerFault, BarnabasError])
def test_what_has_none_is_our_own_trouble(kind: type[BarnabasError]) -> None:
    assert code_of(kind("x")) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_disk_in_trouble_is_told_as_such() -> None:
    storage = [kind for kind in CODES if issubclass(kind, StorageFault)]
    assert storage
    assert {CODES[kind] for kind in storage} <= {
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
