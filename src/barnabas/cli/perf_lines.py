"""The lines of Kafka's perf tests: those of the producer with times finer than milliseconds."""

import time
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from barnabas.cli.output import document
from barnabas.cli.perf_stats import MB

if TYPE_CHECKING:
    from barnabas.cli.perf_stats import Meter, Window

__all__ = ["ConsumeLines", "print_client_metrics", "print_total", "print_window"]

_JAVA_DATE: Final = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def print_window(window: "Window", seconds: float) -> None:
    click.echo(
        f"{window.records} records sent, {window.records / seconds:.1f} records/sec "
        f"({window.size_bytes / MB / seconds:.2f} MB/sec), "
        f"{window.total_ms / window.measured:.1f} ms avg latency, {window.max_ms:.1f} ms max latency."
    )


def print_total(meter: "Meter", as_json: bool, failed: int, steady: "Meter | None" = None) -> None:
    """The sums of all records, and of those after the warm-up where there was one."""
    if as_json:
        more = {} if steady is None else {"steady": steady.facts()}
        document({**meter.facts(), "failed": failed, **more})
        return
    _print_sums(meter, "")
    if steady is not None:
        _print_sums(steady, " steady state")


def _print_sums(meter: "Meter", which: str) -> None:
    times = meter.facts()["latency_ms"]
    click.echo(
        f"{meter.records}{which} records sent, "
        f"{meter.records_per_s:.1f} records/sec ({meter.mb_per_s:.2f} MB/sec), "
        f"{times['avg']:.2f} ms avg latency, {times['max']:.2f} ms max latency, {times['p50']:.2f} ms 50th, "
        f"{times['p95']:.2f} ms 95th, {times['p99']:.2f} ms 99th, {times['p99.9']:.2f} ms 99.9th."
    )


class ConsumeLines:
    """The lines of Kafka's consumer perf test."""

    def __init__(self, date_format: str, *, detailed: bool, is_silent: bool) -> None:
        self._format = date_format
        self._detailed = detailed
        self._is_silent = is_silent
        self._started_ms = time.time() * 1000
        self._read_bytes = 0
        self._read = 0

    def header(self) -> None:
        first = "time, threadId" if self._detailed else "start.time, end.time"
        self._echo(
            f"{first}, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
            "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
        )

    def window(self, window: "Window", seconds: float) -> None:
        self._read_bytes += window.size_bytes
        self._read += window.records
        if not self._detailed:
            return
        mb_per_s, per_s = window.size_bytes / MB / seconds, window.records / seconds
        self._echo(
            f"{self._date(time.time() * 1000)}, 0, {self._read_bytes / MB:.4f}, {mb_per_s:.4f}, "
            f"{self._read}, {per_s:.4f}, 0, {round(seconds * 1000)}, {mb_per_s:.4f}, {per_s:.4f}"
        )

    def total(self, meter: "Meter", rebalance_ms: int) -> None:
        if self._detailed:
            return
        fetch_s = max(meter.seconds - rebalance_ms / 1000, 0.001)
        mb = meter.size_bytes / MB
        ended_ms = self._started_ms + meter.seconds * 1000
        self._echo(
            f"{self._date(self._started_ms)}, {self._date(ended_ms)}, {mb:.4f}, {meter.mb_per_s:.4f}, "
            f"{meter.records}, {meter.records_per_s:.4f}, {rebalance_ms}, {round(fetch_s * 1000)}, "
            f"{mb / fetch_s:.4f}, {meter.records / fetch_s:.4f}"
        )

    def _date(self, ms: float) -> str:
        moment = datetime.fromtimestamp(ms / 1000)
        pattern = self._format.replace("%", "%%")
        for java, ours in _JAVA_DATE.items():
            pattern = pattern.replace(java, ours)
        return moment.strftime(pattern.replace("SSS", f"{moment.microsecond // 1000:03d}"))

    def _echo(self, line: str) -> None:
        if not self._is_silent:
            click.echo(line)


def print_client_metrics(metrics: dict[str, float]) -> None:
    click.echo()
    for name, value in sorted(metrics.items()):
        click.echo(f"{name:<40} : {value:.3f}")
