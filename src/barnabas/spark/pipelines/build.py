"""The kinds of pipelines, and how each is read and started.

A kind is a module with two functions (and an optional third), imported when it is needed:

    parse(fields: Fields, cluster: Cluster) -> Plan      pure, no Spark; reads the keys that are its own
    start(pipeline: Pipeline, run: Run) -> list[Job]     starts everything the pipeline consists of
    check(pipeline: Pipeline) -> None                    optional: raises what keeps it from starting before
                                                         a session is made (broker away, topic unknown)

`parse` calls nothing but `fields`; the caller refuses keys it did not ask for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final

from barnabas.spark.pipelines.fields import Fields
from barnabas.spark.pipelines.spec import Cluster, Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.spark.pipelines.jobs import Job

__all__ = ["KINDS", "Run", "check", "readers", "start"]

KINDS: Final[Mapping[str, str]] = {
    "land": "barnabas.spark.pipelines.land",
    "transform": "barnabas.spark.pipelines.transform",
    "mirror": "barnabas.spark.pipelines.mirror",
    "replay": "barnabas.spark.pipelines.replay",
}
"""Kind -> its module."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a pipeline is started with."""

    spark: "SparkSession"
    """A session of its own: views and settings of pipelines do not meet."""
    checkpoint: str
    """The folder of this pipeline; every query takes one of its own below."""
    once: bool = False
    """Take what is there now, then end."""
    write: Callable[[str, Mapping[str, object]], None] | None = None
    """Where the console sink prints: pipeline, row."""

    def trigger(self, interval_ms: int) -> dict[str, bool | str]:
        """The arguments of DataStreamWriter.trigger."""
        return {"availableNow": True} if self.once else {"processingTime": f"{interval_ms} milliseconds"}


def readers() -> dict[str, Callable[[Fields, Cluster], object]]:
    """Kind -> who reads its keys."""

    def reader(kind: str) -> Callable[[Fields, Cluster], object]:
        return lambda fields, cluster: _module(kind).parse(fields, cluster)

    return {kind: reader(kind) for kind in KINDS}


def check(pipeline: Pipeline) -> None:
    """Raises what keeps a pipeline from starting, as far as it can be told without Spark."""
    checker = getattr(_module(pipeline.kind), "check", None)
    if checker is not None:
        checker(pipeline)


def start(pipeline: Pipeline, run: Run) -> "list[Job]":
    """Starts the queries of a pipeline.  When one does not start, those before it are stopped."""
    jobs: list[Job] = _module(pipeline.kind).start(pipeline, run)
    return jobs


def _module(kind: str) -> ModuleType:
    return import_module(KINDS[kind])
