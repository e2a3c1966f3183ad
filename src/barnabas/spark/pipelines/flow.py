"""Sources, SQL or a function, sinks: the queries of `land` and `transform`.

One query per sink, with its own checkpoint below that of the pipeline, and one for the dead letters.  All
read from the same offsets.  A query is called as the pipeline, with its sink behind a dot if it has several.
"""

from typing import TYPE_CHECKING, Any, Final

from barnabas.spark.pipelines import clusters, sources
from barnabas.spark.pipelines.build import Run
from barnabas.spark.pipelines.dead_letters import dead_rows, decodes
from barnabas.spark.pipelines.driver import open_callbacks
from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.files import find_function
from barnabas.spark.pipelines.jobs import Job, QueryJob
from barnabas.spark.pipelines.landing_files import files_for
from barnabas.spark.pipelines.sinks import start_sink
from barnabas.spark.pipelines.spec import Flow, Pipeline, TopicSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["start_flow"]

DEAD_LETTERS: Final = "dead-letters"


def start_flow(pipeline: Pipeline, run: Run, *, trigger_ms: int) -> list[Job]:
    """Starts every query of a flow; when one cannot start, those before it are stopped."""
    flow: Flow = pipeline.plan
    interval_ms = trigger_ms if pipeline.trigger_ms is None else pipeline.trigger_ms
    started: list[QueryJob] = []
    if flow.output != "append" or not all(isinstance(sink, TopicSink) for sink in flow.sinks):
        open_callbacks(run.spark)
    _make_topics(flow)
    try:
        for sink in flow.sinks:
            name = pipeline.name if len(flow.sinks) == 1 else f"{pipeline.name}.{sink.label}"
            rows = _result(pipeline, run, name)
            job = start_sink(
                rows,
                sink,
                run,
                name=name,
                pipeline=pipeline.name,
                output=flow.output,
                checkpoint=f"{run.checkpoint}/{sink.label}",
                interval_ms=interval_ms,
            )
            started.append(job)
            job.settle()
        if flow.dead_letters is not None and any(decodes(source) for source in flow.sources):
            name = f"{pipeline.name}.{DEAD_LETTERS}"
            started.append(_start_dead_letters(pipeline, run, name, interval_ms))
    except BaseException:
        for job in started:
            job.stop()
        raise
    return list(started)


def _make_topics(flow: Flow) -> None:
    """Topics that are written to are made with as many partitions as those that are read have at most."""
    partitions = max(max(clusters.source_topics(source).values(), default=1) for source in flow.sources)
    for sink in flow.sinks:
        if isinstance(sink, TopicSink):
            clusters.make_topics(sink.cluster, [sink.topic], partitions)
    if flow.dead_letters is not None:
        clusters.make_topics(flow.sources[0].cluster, [flow.dead_letters], 1)


def _result(pipeline: Pipeline, run: Run, query: str) -> "DataFrame":
    """What the sinks get: the sources through SQL or the function."""
    flow: Flow = pipeline.plan
    files = files_for(run.spark, run.checkpoint)
    views: dict[str, DataFrame] = {}
    for source in flow.sources:
        schema = sources.pinned_schema(files, run.checkpoint, source)
        starting = sources.pinned_start(files, run.checkpoint, source)
        rows = sources.raw_rows(run.spark, source, query=query, starting=starting)
        views[source.view] = sources.typed_rows(
            rows, source, schema, keep_going=flow.dead_letters is not None
        )
    function = flow.function
    if flow.function_ref is not None:
        function = find_function(flow.function_ref, pipeline.origin)
    if function is not None:
        result = function(*views.values())
        if not _is_stream(result):
            raise PipelineError(
                f"{pipeline.origin}: the function of {pipeline.name} must give a streaming DataFrame, "
                f"not {type(result).__name__}"
            )
        found: DataFrame = result
        return found
    if flow.sql is None:
        return next(iter(views.values()))
    for view, rows in views.items():
        rows.createOrReplaceTempView(view)
    return run.spark.sql(flow.sql)


def _is_stream(result: Any) -> bool:
    return bool(getattr(result, "isStreaming", False))


def _start_dead_letters(pipeline: Pipeline, run: Run, name: str, interval_ms: int) -> QueryJob:
    flow: Flow = pipeline.plan
    assert flow.dead_letters is not None, pipeline
    files = files_for(run.spark, run.checkpoint)
    found: DataFrame | None = None
    for source in flow.sources:
        if not decodes(source):
            continue
        schema = sources.pinned_schema(files, run.checkpoint, source)
        starting = sources.pinned_start(files, run.checkpoint, source)
        rows = sources.raw_rows(run.spark, source, query=name, starting=starting, headers=True)
        dead = dead_rows(rows, source, schema, pipeline.name)
        found = dead if found is None else found.unionByName(dead)
    assert found is not None, pipeline
    return start_sink(
        found,
        TopicSink(flow.dead_letters, flow.sources[0].cluster, label=DEAD_LETTERS),
        run,
        name=name,
        pipeline=pipeline.name,
        output="append",
        checkpoint=f"{run.checkpoint}/{DEAD_LETTERS}",
        interval_ms=interval_ms,
    )
