"""barnabas.cli.perf_lines: the lines of Kafka's perf tests."""

import pytest

from barnabas.cli.perf_lines import ConsumeLines, print_client_metrics, print_total, print_window
from barnabas.cli.perf_stats import MB, Meter, Window


def measured() -> Meter:
    clock = iter([0.0, 2.0])
    meter = Meter(4, now=lambda: next(clock))
    meter.add(4, 2 * MB, [1.0, 2.0, 3.0, 10.0])
    return meter


def test_a_window_of_the_producer(capsys: pytest.CaptureFixture[str]) -> None:
    print_window(Window(0.0, 100, 5 * MB, 100, 250.0, 7.5), 5.0)
    assert capsys.readouterr().out == (
        "100 records sent, 20.0 records/sec (1.00 MB/sec), 2.5 ms avg latency, 7.5 ms max latency.\n"
    )


def test_the_total_of_the_producer(capsys: pytest.CaptureFixture[str]) -> None:
    print_total(measured(), False, 0)
    assert capsys.readouterr().out == (
        "4 records sent, 2.0 records/sec (1.00 MB/sec), 4.00 ms avg latency, 10.00 ms max latency, "
        "3.00 ms 50th, 10.00 ms 95th, 10.00 ms 99th, 10.00 ms 99.9th.\n"
    )


def test_the_total_of_the_consumer(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ConsumeLines("yyyy", detailed=False, is_silent=False)
    lines.header()
    lines.total(measured(), 500)
    header, row = capsys.readouterr().out.splitlines()
    assert header.startswith("start.time, end.time, data.consumed.in.MB, MB.sec, ")
    assert row.split(", ")[2:] == ["2.0000", "1.0000", "4", "2.0000", "500", "1500", "1.3333", "2.6667"]


def test_the_details_of_the_consumer_go_on_counting(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ConsumeLines("HH", detailed=True, is_silent=False)
    lines.header()
    for _ in range(2):
        lines.window(Window(0.0, 10, MB), 1.0)
    lines.total(measured(), 0)
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.startswith("time, threadId, ")
    assert [row.split(", ")[2:6] for row in rows] == [
        ["1.0000", "1.0000", "10", "10.0000"],
        ["2.0000", "1.0000", "20", "10.0000"],
    ]


def test_nothing_is_printed_beside_json(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ConsumeLines("yyyy", detailed=False, is_silent=True)
    lines.header()
    lines.total(measured(), 0)
    assert capsys.readouterr().out == ""


def test_metrics_are_sorted(capsys: pytest.CaptureFixture[str]) -> None:
    print_client_metrics({"b": 2, "a": 1.5})
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["a", ":", "1.500"],
        ["b", ":", "2.000"],
    ]
