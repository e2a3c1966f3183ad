"""The per-record path of the producer: compiled where it could be built, else plain.

Chosen as the record kernel is: BARNABAS_KERNEL=plain or =compiled.  Both twins pass the same tests.
"""

import importlib
from typing import TYPE_CHECKING, Final

from barnabas.client import _hot_plain
from barnabas.records.kernel import IMPLEMENTATION as _KERNEL

if TYPE_CHECKING:
    from barnabas.client._hot_plain import Appender, BatchBase, Lane, RecordFuture, TopicLanes, murmur2

__all__ = ["IMPLEMENTATION", "Appender", "BatchBase", "Lane", "RecordFuture", "TopicLanes", "murmur2"]


def _load() -> object:
    if _KERNEL == "plain":
        return _hot_plain
    try:
        return importlib.import_module("barnabas.client._hot")
    except ImportError:
        return _hot_plain


_chosen: Final = _load()
IMPLEMENTATION: Final = "plain" if _chosen is _hot_plain else "compiled"

if not TYPE_CHECKING:
    Appender = _chosen.Appender
    BatchBase = _chosen.BatchBase
    Lane = _chosen.Lane
    RecordFuture = _chosen.RecordFuture
    TopicLanes = _chosen.TopicLanes
    murmur2 = _chosen.murmur2
