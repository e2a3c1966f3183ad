"""The kind `replay`: a range of a topic, or a Parquet landing, back into a topic at a chosen rate.

    name: orders-again
    kind: replay
    source: {topic: orders, from: -2h, to: latest}      # or {parquet: lake/orders}
    target: {topic: orders-again}
    rate: 5000/s                                        # 10mb/s, x2 (twice as fast as recorded), max

It runs in the driver, in threads: what a rate bounds does not need a cluster.  Once for each id.
"""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.base.clock import SystemClock
from barnabas.base.errors import ConfigFault
from barnabas.spark.pipelines.fields import Fields
from barnabas.spark.pipelines.jobs import BatchReport
from barnabas.spark.pipelines.landing_files import needs_hadoop
from barnabas.spark.pipelines.mirror_settings import known_settings
from barnabas.spark.pipelines.mirror_task import Copied
from barnabas.spark.pipelines.replay_files import FilesReplay
from barnabas.spark.pipelines.replay_plan import ReplayPlan, parse_edge, parse_rate
from barnabas.spark.pipelines.replay_topic import Estimate, TopicReplay
from barnabas.spark.pipelines.spec import Cluster, Pipeline, read_cluster

if TYPE_CHECKING:
    from barnabas.spark.pipelines.build import Run
    from barnabas.spark.pipelines.jobs import Job

__all__ = ["ReplayJob", "check", "estimate", "parse", "run_replay", "start"]


def parse(fields: Fields, cluster: Cluster) -> ReplayPlan:
    """The plan of a replay; its id is the pipeline's name unless one is given."""
    source, target = fields.section("source"), fields.section("target")
    if source is None or target is None:
        raise fields.fault(None, f"wants the key {'source' if source is None else 'target'!r}")
    now_ms = SystemClock().now_ms()
    path = source.text("parquet", "")
    topic = source.text("topic", "") if path else source.text("topic")
    try:
        begin = parse_edge(source.value("from", "earliest"), now_ms=now_ms)
        end = parse_edge(source.value("to", "latest"), now_ms=now_ms)
        rate = parse_rate(fields.text("rate", "max"))
    except ConfigFault as fault:
        raise fields.fault(None, str(fault)) from None
    plan = ReplayPlan(
        _settings(source, cluster),
        _settings(target, cluster),
        into=target.text("topic"),
        id=fields.text("id", fields.text("name")),
        topic=topic,
        path=path,
        begin=begin,
        end=end,
        partitions=_partitions(source),
        rate=rate,
    )
    source.finish()
    target.finish()
    return plan


def _settings(section: Fields, default: Cluster) -> dict[str, str]:
    settings = read_cluster(section, default).settings()
    if unknown := known_settings(settings)[1]:
        raise section.fault("client", f"has the setting {unknown[0]!r}, which no client has")
    return settings


def _partitions(source: Fields) -> tuple[int, ...]:
    given = source.value("partitions", ())
    several = given if isinstance(given, list | tuple) else str(given).split(",")
    try:
        return tuple(int(each) for each in several)
    except (TypeError, ValueError):
        raise source.fault("partitions", f"must be numbers, not {given}") from None


def estimate(plan: ReplayPlan) -> Estimate:
    """What the replay would do; writes nothing.  Raises KafkaError, PipelineError."""
    if plan.path:
        return FilesReplay(plan).estimate()
    with TopicReplay(plan) as replay:
        return replay.estimate()


def check(pipeline: Pipeline) -> None:
    """Raises what keeps it from starting; what only Hadoop can read, Spark looks at when it is there."""
    if not needs_hadoop(pipeline.plan.path):
        estimate(pipeline.plan)


def run_replay(
    plan: ReplayPlan,
    stop: threading.Event | None = None,
    on_copied: Callable[[list[Copied]], None] | None = None,
) -> dict[int, int]:
    """Replays until it is done or `stop` is set; how far each partition is.

    May be called again after whatever happened: what was replayed under the plan's id is not done twice.
    """
    if plan.path:
        return FilesReplay(plan).run(stop, on_copied)
    with TopicReplay(plan) as replay:
        return replay.run(stop, on_copied)


def start(pipeline: Pipeline, run: "Run") -> "list[Job]":
    return [ReplayJob(pipeline.name, pipeline.plan)]


class ReplayJob:
    """A replay in a thread of its own."""

    def __init__(self, name: str, plan: ReplayPlan) -> None:
        self._name = name
        self._plan = plan
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._reports: list[BatchReport] = []
        self._done: dict[tuple[str, int], int] = {}
        self._batch = 0
        self._since = time.monotonic()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"replay {name}", daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        return self._name

    def _run(self) -> None:
        try:
            run_replay(self._plan, self._stop, self._copied)
        except Exception as error:  # the supervisor decides what to do about it
            self._failure = error

    def _copied(self, copied: list[Copied]) -> None:
        now = time.monotonic()
        rows = sum(each.records for each in copied)
        with self._lock:
            self._done |= {(each.topic, each.partition): each.end for each in copied}
            took_ms = int((now - self._since) * 1000)
            self._reports.append(BatchReport(self._batch, rows, rows, took_ms, dict(self._done)))
            self._batch += 1
        self._since = now

    def reports(self) -> list[BatchReport]:
        with self._lock:
            found, self._reports = self._reports, []
        return found

    def is_active(self) -> bool:
        return self._thread.is_alive()

    def failure(self) -> BaseException | None:
        return None if self._thread.is_alive() else self._failure

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def described(plan: ReplayPlan, found: Estimate) -> dict[str, Any]:
    """An estimate for people and machines."""
    return {
        "id": plan.id,
        "source": plan.path or plan.topic,
        "target": plan.into,
        "rate": str(plan.rate),
        "partitions": {str(n): {"start": e.start, "end": e.end} for n, e in found.partitions.items()},
        "records": found.records,
        "records_are_exact": found.is_exact,
        "bytes": found.size_bytes,
        "seconds": None if found.seconds is None else round(found.seconds, 3),
    }
