"""The kind `mirror`: topics of one cluster copied to another, with their settings and groups.

    name: to-dr
    kind: mirror
    source: {bootstrap: "east:9092"}
    target: {bootstrap: "west:9092"}
    topics: ["orders.*", payments]

`start` runs it as a stream of Spark (`mirror_source`); `run_here` does the same in this process, in threads.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from barnabas.base.errors import ConfigFault
from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.config import ADMIN, settings_for
from barnabas.spark.pipelines.fields import Fields
from barnabas.spark.pipelines.jobs import BatchReport, QueryJob
from barnabas.spark.pipelines.mirror_settings import (
    GROUP_PREFIX,
    MirrorPlan,
    OffsetMode,
    known_settings,
    names_of,
)
from barnabas.spark.pipelines.mirror_task import Copied, MirrorLinks, copy
from barnabas.spark.pipelines.mirror_upkeep import MirrorUpkeep, share
from barnabas.spark.pipelines.spec import Cluster, Pipeline, read_cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from barnabas.spark.pipelines.build import Run
    from barnabas.spark.pipelines.jobs import Job

__all__ = ["MirrorJob", "check", "parse", "resolved", "run_here", "start"]

TRIGGER_MS: Final = 500
_IDLE_S: Final = 0.3
_ROUND_OFFSETS: Final = 200_000


def parse(fields: Fields, cluster: Cluster) -> MirrorPlan:
    """The plan of a mirror; the group is that of the source cluster unless it is named (see `resolved`)."""
    source = _settings(fields, "source", cluster)
    if (there := fields.section("target")) is None:
        raise fields.fault(None, "wants the key 'target', with the bootstrap of the target")
    if not there.has("bootstrap"):
        raise there.fault(None, "wants the key 'bootstrap'")
    target = _settings(fields, "target", Cluster("", {}))
    if source["bootstrap.servers"] == target["bootstrap.servers"] and not fields.has("prefix"):
        raise fields.fault(
            "target", "is the same cluster as the source; give a prefix for the copies, or another one"
        )
    try:
        topics = names_of(fields.texts("topics"), fields.texts("exclude", ()))
        groups = names_of(fields.texts("groups", (".*",)), fields.texts("exclude_groups", ()))
    except ConfigFault as fault:
        raise fields.fault("topics", str(fault)) from None
    return MirrorPlan(
        source,
        target,
        topics,
        group=fields.text("group", ""),
        groups=groups,
        prefix=fields.text("prefix", ""),
        offsets=cast(OffsetMode, fields.choice("offsets", ("auto", "kept", "translated"), "auto")),
        start=cast(Any, fields.choice("start", ("earliest", "latest"), "earliest")),
        sync_configs=fields.boolean("sync_configs", True),
        sync_groups=fields.boolean("sync_groups", True),
        replication_factor=fields.integer("replication_factor", -1, least=1),
        tasks=fields.integer("tasks", 0, least=1),
        skip_lost=fields.boolean("skip_lost", False),
        sync_interval_ms=fields.duration_ms("sync_interval", 10_000),
    )


def _settings(fields: Fields, name: str, default: Cluster) -> dict[str, str]:
    section = fields.section(name)
    cluster = default if section is None else read_cluster(section, default if name == "source" else None)
    if section is not None:
        section.finish()
    settings = cluster.settings()
    if unknown := known_settings(settings)[1]:
        raise fields.fault(name, f"has the setting {unknown[0]!r}, which no client has")
    return settings


def resolved(plan: MirrorPlan) -> MirrorPlan:
    """The plan with its group: by the source cluster's id, so that it is found again under any address."""
    if plan.group:
        return plan
    with Admin(settings_for(ADMIN, plan.source)) as source:
        return replace(plan, group=f"{GROUP_PREFIX}{source.describe_cluster().id}")


def check(pipeline: Pipeline) -> None:
    """Raises what keeps the mirror from running: a cluster that is away.  Changes nothing."""
    MirrorUpkeep(resolved(pipeline.plan)).close()


def start(pipeline: Pipeline, run: "Run") -> "list[Job]":
    """Starts the stream."""
    from barnabas.spark.pipelines.mirror_source import FORMAT, PLAN_OPTION, MirrorSource, plan_text

    plan: MirrorPlan = resolved(pipeline.plan)
    if not plan.tasks:
        plan = replace(plan, tasks=max(run.spark.sparkContext.defaultParallelism, 1))
    run.spark.dataSource.register(MirrorSource)
    rows = run.spark.readStream.format(FORMAT).option(PLAN_OPTION, plan_text(plan)).load()
    told: list[tuple[int, list[Copied]]] = []

    def tell(frame: "DataFrame", batch_id: int) -> None:
        told.append((batch_id, [Copied(*tuple(row)[:-1]) for row in frame.collect()]))

    writer = rows.writeStream.queryName(pipeline.name).foreachBatch(tell)
    interval_ms = TRIGGER_MS if pipeline.trigger_ms is None else pipeline.trigger_ms
    query = (
        writer.option("checkpointLocation", f"{run.checkpoint}/mirror")
        .trigger(**cast(Any, run.trigger(interval_ms)))
        .start()
    )
    return [MirrorJob(pipeline.name, query, told)]


class MirrorJob(QueryJob):
    """The stream of a mirror; its reports count records, not the rows about them."""

    def __init__(self, name: str, query: "StreamingQuery", told: list[tuple[int, list[Copied]]]) -> None:
        super().__init__(name, query)
        self._told = told
        self._copied: dict[int, int] = {}

    def reports(self) -> list[BatchReport]:
        while self._told:
            batch_id, rows = self._told.pop(0)
            self._copied[batch_id] = sum(row.records for row in rows)
        found = []
        for report in super().reports():
            count = self._copied.pop(report.batch_id, 0)
            found.append(replace(report, rows_in=count, rows_out=count))
        return found


def run_here(
    plan: MirrorPlan,
    *,
    once: bool,
    stop: threading.Event | None = None,
    on_copied: Callable[[list[Copied]], None] | None = None,
) -> list[Copied]:
    """Mirrors without Spark until `stop` is set, or with `once` until all that is there now is copied.

    What was done for each partition.  Raises what `copy` raises: whoever calls may call again.
    """
    plan = resolved(plan)
    stop = stop or threading.Event()
    done: dict[TopicPartition, Copied] = {}
    threads = max(plan.tasks, 1)
    links = [MirrorLinks(plan) for _ in range(threads)]
    frozen: dict[TopicPartition, int] | None = None
    try:
        with MirrorUpkeep(plan) as upkeep, ThreadPoolExecutor(threads) as pool:
            while not stop.is_set():
                if upkeep.look():
                    upkeep.check_ends()
                    # A first look is cheap, and from there rounds can be short: a stop is heard after each.
                    frozen = frozen if frozen is not None or not once else upkeep.ends()
                copied = _round(upkeep, frozen or upkeep.ends(), done, links, pool)
                if copied and on_copied is not None:
                    on_copied(copied)
                if not copied and once:
                    upkeep.sync_groups()
                    break
                if not copied:
                    stop.wait(_IDLE_S)
    finally:
        for each in links:
            each.close()
    return list(done.values())


def _round(
    upkeep: MirrorUpkeep,
    ends: Mapping[TopicPartition, int],
    done: dict[TopicPartition, Copied],
    links: list[MirrorLinks],
    pool: ThreadPoolExecutor,
) -> list[Copied]:
    """Copies some of what is there; what was done, nothing if all was done before."""
    new = [tp for tp in ends if tp not in done]
    if new:
        positions = upkeep.positions()
        done |= {tp: Copied(*tp, at, at) for tp in new for at in [positions.get(tp, 0)]}
    moved = {tp: min(end, done[tp].end + _ROUND_OFFSETS) for tp, end in ends.items() if done[tp].end < end}
    sizes = {tp: end - done[tp].end for tp, end in moved.items()}
    parts = share(upkeep.works(moved), sizes, len(links)) if moved else []
    copied = [each for part in pool.map(copy, parts, links[: len(parts)]) for each in part]
    for each in copied:
        total = done[TopicPartition(each.topic, each.partition)]
        if not total.records:
            total.start = each.start
        total.end = each.end
        total.records += each.records
        total.size_bytes += each.size_bytes
        total.lost += each.lost
    return copied
