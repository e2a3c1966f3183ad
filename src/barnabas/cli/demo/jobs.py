"""What a job on the orders tells while it runs, and the job for machines without Java.

A job reads the topic of orders and writes a sale with its total to another.  The one here is a consumer and
a producer of our client; the one on Spark is in spark_job.py.
"""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

__all__ = ["GROUP", "Job", "JobProgress", "PythonJob", "sale"]

GROUP: Final = "demo-sales"
_POLL_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class JobProgress:
    """Where a job is: sums since its start, and the time of its last batch."""

    state: str = "starting"
    rows_in: int = 0
    rows_out: int = 0
    batches: int = 0
    batch_ms: float = 0.0


class Job(Protocol):
    """One job, from `start` to `stop`.  `check` raises what made it fail."""

    title: str

    def start(self) -> None: ...

    def progress(self) -> JobProgress: ...

    def check(self) -> None: ...

    def stop(self) -> None: ...


def sale(order: Mapping[str, Any]) -> dict[str, Any]:
    """What becomes of one order; the SQL of the Spark job says the same."""
    total = round(order["quantity"] * order["unit_price"], 2)
    return {
        "order_id": order["order_id"],
        "region": order["region"],
        "product": order["product"],
        "total": total,
    }


class PythonJob:
    """Sales with a consumer group and a producer, on a thread of its own."""

    title = "Python consumer"

    def __init__(self, address: str, source: str, target: str) -> None:
        self._address = address
        self._source = source
        self._target = target
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-job", daemon=True)
        self._progress = JobProgress()
        self._failure: Exception | None = None

    def start(self) -> None:
        self._thread.start()

    def progress(self) -> JobProgress:
        return self._progress

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        from barnabas.client.consumer import Consumer
        from barnabas.client.producer import Producer

        there = {"bootstrap.servers": self._address, "bootstrap.timeout.ms": "0"}
        reading = {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        try:
            with (
                Producer(there) as producer,
                Consumer({**there, **reading}) as consumer,
            ):
                consumer.subscribe([self._source])
                while not self._stopping.is_set():
                    records = consumer.poll(_POLL_S, 20_000)
                    if not records:
                        continue
                    began = time.monotonic()
                    for record in records:
                        row = sale(json.loads(record.value or b"{}"))
                        producer.send(self._target, json.dumps(row).encode(), row["region"].encode())
                    producer.flush()
                    consumer.commit()
                    self._count(len(records), time.monotonic() - began)
        except Exception as error:  # raised by `check`, on the thread that looks after all
            self._failure = error

    def _count(self, count: int, took_s: float) -> None:
        before = self._progress
        self._progress = replace(
            before,
            state="running",
            rows_in=before.rows_in + count,
            rows_out=before.rows_out + count,
            batches=before.batches + 1,
            batch_ms=took_s * 1000,
        )
