"""The demo from its first to its last moment: broker, topics, orders, job, and what is shown of them.

D1  whatever ends it (time, a signal, an error), all processes and threads it started are gone when it returns
D2  it is bounded: start-up, run and drain have their own limits
D3  its data lives in one temporary folder, which goes with it unless it is to be kept or something failed
"""

import queue
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.base.errors import BarnabasError
from barnabas.cli.demo.child import Child
from barnabas.cli.demo.facts import Backlog, Facts, Flow, landed, remember
from barnabas.cli.demo.feed import Feed
from barnabas.cli.demo.results import Results

if TYPE_CHECKING:
    from barnabas.cli.demo.jobs import Job
    from barnabas.cli.demo.show import Show

__all__ = ["ORDERS", "PREFERRED_PORT", "SALES", "Demo", "DemoFailed", "Outcome", "Plan"]

ORDERS: Final = "orders"
SALES: Final = "sales"
PARTITIONS: Final = 3
PREFERRED_PORT: Final = 9092
_TICK_S: Final = 0.25
_BROKER_START_S: Final = 30.0
_JOB_START_S: Final = 300.0
_DRAIN_S: Final = 90.0
# One user and small topics: 50 partitions for offsets would only be waited for.
_BROKER_SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class DemoFailed(BarnabasError):
    """The demo could not go on; the text says where to look."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the user asked for."""

    seconds: float
    rate: float
    port: int | None
    """None: 9092 if nobody has it, else a free one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the demo comes to."""

    facts: Facts
    """The last moment, with everything drained."""
    highlight: Facts
    """The last moment at full flow, for the picture."""
    worst_lag_s: float
    counted: int
    """Different orders among the sales; all of them when it equals facts.orders."""
    repeated: int
    """Sales of orders that had one already."""
    landed_rows: int | None
    was_stopped: bool

    @property
    def is_exact(self) -> bool:
        orders = self.facts.orders
        return self.counted == orders and self.repeated == 0 and self.landed_rows in (None, orders)

    def json(self) -> dict[str, Any]:
        facts, landing = self.facts, self.facts.landing
        return {
            "engine": facts.engine,
            "address": facts.address,
            "seconds": round(facts.seconds, 3),
            "orders": facts.orders,
            "rows_in": facts.rows_in,
            "rows_out": facts.rows_out,
            "batches": facts.batches,
            "worst_lag_seconds": round(self.worst_lag_s, 3),
            "counted": self.counted,
            "repeated": self.repeated,
            "parquet": None
            if landing is None
            else {"files": landing.files, "bytes": landing.size_bytes, "rows": self.landed_rows},
            "exact": self.is_exact,
            "results": list(facts.results),
            "stopped": self.was_stopped,
        }


JobMaker = Callable[[str, Path], "Job"]
"""From the broker's address and the folder to the job."""


class Demo:
    """One run.  `stopping` may be set from a signal handler; then it ends early."""

    def __init__(
        self, plan: Plan, folder: Path, make_job: JobMaker, show: "Show", stopping: threading.Event
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._make_job = make_job
        self._show = show
        self._stopping = stopping
        self._landing = folder / "parquet"
        self._orders_flow, self._in_flow, self._out_flow = Flow(), Flow(), Flow()
        self._backlog = Backlog()
        self._history: deque[tuple[float, int]] = deque()
        self._worst_lag_s = 0.0

    def run(self) -> Outcome | None:
        """None when it was stopped before there was anything to tell.  Raises DemoFailed, KafkaError."""
        with ExitStack() as stack:
            address = self._start_broker(stack)
            if address is None:
                return None
            self._show.note(f"broker   {address}, embedded store, data in {self._folder}")
            self._create_topics(address)
            self._show.note(f"topics   {ORDERS} ({PARTITIONS} partitions), {SALES}")
            feed = self._start_feed(stack, address)
            results = Results(address, SALES)
            results.start()
            stack.callback(results.stop)
            job = self._make_job(address, self._folder)
            self._show.note(f"job      {job.title}")
            stack.callback(job.stop)
            job.start()
            return self._watch(address, feed, job, results)

    def _start_broker(self, stack: ExitStack) -> str | None:
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        port = self._plan.port
        if port is None:
            port = PREFERRED_PORT if _is_free(PREFERRED_PORT) else 0
        arguments = ["start", "--json", "--port", str(port), "--data-dir", str(self._folder / "data")]
        for name, value in _BROKER_SETTINGS.items():
            arguments += ["--set", f"{name}={value}"]
        log = self._folder / "broker.log"
        broker = stack.enter_context(
            Child("broker", arguments, log=log, on_line=lines.put, folder=self._folder)
        )
        deadline = time.monotonic() + _BROKER_START_S
        while lines.empty():
            if self._stopping.wait(0.01):
                return None
            broker.check()
            if time.monotonic() > deadline:
                raise DemoFailed(f"the broker did not start within {_BROKER_START_S:.0f} s; see {log}")
        import json

        self._broker = broker
        address: str = next(iter(json.loads(lines.get())["listeners"].values()))
        return address

    @staticmethod
    def _create_topics(address: str) -> None:
        from barnabas.client.admin import Admin

        with Admin({"bootstrap.servers": address}) as admin:
            admin.create_topic(ORDERS, PARTITIONS)
            admin.create_topic(SALES, PARTITIONS)

    def _start_feed(self, stack: ExitStack, address: str) -> Feed:
        from barnabas.client.producer import Producer

        producer = stack.enter_context(Producer({"bootstrap.servers": address, "linger.ms": "5"}))
        feed = Feed(producer, ORDERS, self._plan.rate)
        feed.start()
        stack.callback(feed.stop)
        return feed

    def _watch(self, address: str, feed: Feed, job: "Job", results: Results) -> Outcome:
        """Shows what happens: until the job works, then for the time asked for, then until all is drained."""
        started = time.monotonic()
        facts = Facts(address, job.title, "starting", 0.0, None, self._plan.seconds)
        ends_at: float | None = None
        while True:
            now = time.monotonic()
            self._check(feed, job, results)
            if ends_at is None and job.progress().batches:
                ends_at = now + self._plan.seconds
            elif ends_at is None and now - started > _JOB_START_S:
                raise DemoFailed(f"no batch came out of {job.title} within {_JOB_START_S:.0f} s")
            left_s = None if ends_at is None else max(ends_at - now, 0.0)
            facts = self._moment(facts, now - started, left_s, feed, job, results)
            self._show.update(facts)
            if self._stopping.is_set() or left_s == 0:
                break
            self._stopping.wait(_TICK_S if left_s is None else min(_TICK_S, left_s))
        highlight = facts
        feed.stop()
        facts = self._drain(facts, started, feed, job, results)
        job.stop()
        rows = None if facts.landing is None else _rows_landed(self._landing)
        was_stopped = self._stopping.is_set()
        return Outcome(
            facts, highlight, self._worst_lag_s, results.orders, results.repeated, rows, was_stopped
        )

    def _drain(self, facts: Facts, started: float, feed: Feed, job: "Job", results: Results) -> Facts:
        """Lets the job catch up with the last order."""
        deadline = time.monotonic() + _DRAIN_S
        while time.monotonic() < deadline and not self._stopping.is_set():
            self._check(feed, job, results)
            moment = self._moment(facts, time.monotonic() - started, 0.0, feed, job, results)
            facts = replace(moment, state="draining")
            self._show.update(facts)
            if results.orders >= feed.acknowledged and facts.rows_in >= feed.acknowledged:
                break
            self._stopping.wait(_TICK_S / 2)
        return facts

    def _check(self, feed: Feed, job: "Job", results: Results) -> None:
        self._broker.check()
        job.check()
        for failure in (feed.failure, results.failure):
            if failure is not None:
                raise failure

    def _moment(
        self, before: Facts, seconds: float, left_s: float | None, feed: Feed, job: "Job", results: Results
    ) -> Facts:
        told = job.progress()
        orders = feed.acknowledged
        lag_s = self._backlog.age(seconds, orders, told.rows_in)
        if before.lag_seconds is not None and before.rows_in > 0:  # that of the start-up is not the job's
            self._worst_lag_s = max(self._worst_lag_s, lag_s)
        facts = replace(
            before,
            state=told.state,
            seconds=seconds,
            left_s=left_s,
            orders=orders,
            orders_per_s=self._orders_flow.add(seconds, orders),
            orders_bytes=feed.size_bytes,
            rows_in=told.rows_in,
            rows_in_per_s=self._in_flow.add(seconds, told.rows_in),
            rows_out=results.count,
            rows_out_per_s=self._out_flow.add(seconds, results.count),
            batches=told.batches,
            batch_ms=told.batch_ms,
            lag_messages=max(orders - told.rows_in, 0),
            lag_seconds=lag_s,
            landing=landed(self._landing) if self._landing.exists() else before.landing,
            results=results.rows,
            latest=list(feed.latest),
        )
        remember(self._history, facts)
        return replace(facts, history=list(self._history))


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET) as probe:
        # As the broker does it: what waits in TIME_WAIT is no listener.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _rows_landed(folder: Path) -> int:
    import pyarrow.parquet as pq

    return sum(
        int(pq.read_metadata(path).num_rows)
        for path in folder.rglob("*.parquet")
        if not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)
    )
