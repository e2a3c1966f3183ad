"""Declared pipelines: a small file becomes streaming queries that are kept going."""

from barnabas.spark.pipelines.errors import PipelineError, SpecError
from barnabas.spark.pipelines.files import load
from barnabas.spark.pipelines.progress import Progress
from barnabas.spark.pipelines.spec import Pipeline
from barnabas.spark.pipelines.supervisor import Outcome, Supervisor

__all__ = ["Outcome", "Pipeline", "PipelineError", "Progress", "SpecError", "Supervisor", "load"]
