"""`kind: transform`: topics through SQL or a function to topics, files and the console."""

from typing import Final

from barnabas.spark.pipelines import clusters
from barnabas.spark.pipelines.build import Run
from barnabas.spark.pipelines.fields import Fields
from barnabas.spark.pipelines.jobs import Job
from barnabas.spark.pipelines.spec import Cluster, Flow, Pipeline, parse_flow

__all__ = ["check", "parse", "start"]

TRIGGER_MS: Final = 0
"""A batch follows the other at once: what is computed is wanted soon."""


def parse(fields: Fields, cluster: Cluster) -> Flow:
    return parse_flow(fields, cluster, files_only=False)


def check(pipeline: Pipeline) -> None:
    clusters.check_flow(pipeline.plan)


def start(pipeline: Pipeline, run: Run) -> list[Job]:
    from barnabas.spark.pipelines.flow import start_flow

    return start_flow(pipeline, run, trigger_ms=TRIGGER_MS)
