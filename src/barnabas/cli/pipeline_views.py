"""What `pipeline validate` and `pipeline status` show of a pipeline."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from barnabas.base.errors import BarnabasError

if TYPE_CHECKING:
    from barnabas.spark.pipelines.spec import Flow, Pipeline

__all__ = ["described", "status_rows"]


def described(pipeline: "Pipeline", *, offline: bool) -> dict[str, Any]:
    """What a pipeline reads and writes; with the brokers' word on its topics, unless `offline`."""
    from barnabas.spark.pipelines import build
    from barnabas.spark.pipelines.spec import Flow

    if not offline:
        build.check(pipeline)
    plan = pipeline.plan
    if not isinstance(plan, Flow):
        reads, writes = getattr(plan, "reads", None), getattr(plan, "writes", None)
        return {
            "name": pipeline.name,
            "kind": pipeline.kind,
            "reads": reads,
            "writes": writes,
            "schemas": {},
        }
    return {
        "name": pipeline.name,
        "kind": pipeline.kind,
        "reads": [source.label for source in plan.sources],
        "writes": _targets(plan),
        "schemas": {} if offline else _schemas(plan),
    }


def _targets(flow: "Flow") -> list[str]:
    from barnabas.spark.pipelines.spec import FileSink, TopicSink

    targets = []
    for sink in flow.sinks:
        match sink:
            case TopicSink():
                targets.append(sink.topic)
            case FileSink():
                targets.append(sink.path)
            case _:
                targets.append("console")
    return targets + ([flow.dead_letters] if flow.dead_letters else [])


def _schemas(flow: "Flow") -> dict[str, str]:
    """The schemas that were not declared, as they would be learnt now."""
    from barnabas.spark.pipelines import clusters
    from barnabas.spark.pipelines.schemas import learn_ddl

    return {
        source.view: learn_ddl(clusters.sample(source), source.label)
        for source in flow.sources
        if source.format == "json" and source.schema is None
    }


def status_rows(pipeline: "Pipeline", checkpoint: str | None) -> list[dict[str, Any]]:
    """A row for each part of a pipeline; one row when nothing of it ever ran."""
    from barnabas.spark.pipelines.files import checkpoint_of
    from barnabas.spark.pipelines.status import local_folder, read_status

    place = checkpoint_of(pipeline, checkpoint)
    found = read_status(pipeline.name, place)
    silent = "never ran" if local_folder(place) is not None else "unknown"
    parts: list[Mapping[str, Any]] = list(found.parts) or [{"part": pipeline.name}]
    rows = []
    for part in parts:
        state = part.get("state", silent)
        if state in ("starting", "running", "waiting") and not found.is_running:
            state = "killed"  # it had no time to say that it ended
        lag = _lag(pipeline, part["part"])
        rows.append(
            {
                "pipeline": pipeline.name,
                "part": part["part"],
                "state": state,
                "batch": part.get("batch_id"),
                "rows_per_s": part.get("rows_per_s_in") if state == "running" else None,
                "lag_messages": lag[0],
                "lag_seconds": lag[1],
                "restarts": part.get("restarts", 0),
                "last_error": part.get("last_error"),
                "at_ms": found.at_ms,
            }
        )
    return rows


def _lag(pipeline: "Pipeline", part: str) -> tuple[int | None, float | None]:
    """What the brokers say about the group of a query; unknown when they do not answer or know it."""
    from barnabas.client.admin import Admin
    from barnabas.spark.pipelines.spec import Flow

    if not isinstance(pipeline.plan, Flow):
        return None, None
    settings = {"bootstrap.timeout.ms": "0", **pipeline.plan.sources[0].cluster.settings()}
    try:
        with Admin(settings) as admin:
            lag = admin.group_lag(f"spark:{part}")
    except BarnabasError:
        return None, None
    return lag.messages, lag.seconds
