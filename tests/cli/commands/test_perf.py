"""barnabas perf."""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli._command import barnabas
from tests.cli.conftest import Tool

TOTAL = re.compile(
    r"(\d+) records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, "
    r"[\d.]+ ms max latency, [\d.]+ ms 50th, [\d.]+ ms 95th, [\d.]+ ms 99th, [\d.]+ ms 99\.9th\."
)
CONSUMED = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
    "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


def end(tool: Tool, topic: str) -> int:
    return sum(span["end"] for span in tool("offsets", "get", topic, "--json").ok().json)


class TestProduce:
    def test_the_line_of_kafka(self, tool: Tool, topic: str) -> None:
        found = TOTAL.fullmatch(tool("perf", "produce", topic, "-n", "500").ok().out.strip())
        assert found
        assert found[1] == "500"
        assert end(tool, topic) == 500

    def test_kafkas_flags(self, tool: Tool, topic: str, bootstrap: str) -> None:
        flags = ["--topic", topic, "--num-records", "300", "--record-size", "50", "--throughput", "-1"]
        props = ["--producer-props", f"bootstrap.servers={bootstrap}", "acks=1", "linger.ms=0"]
        lines = tool("perf", "produce", *flags, *props, "--print-metrics").ok().lines
        assert TOTAL.fullmatch(lines[0])
        assert any(line.startswith("record-send-total") for line in lines)

    def test_a_line_for_every_interval(self, tool: Tool, topic: str) -> None:
        flags = ["-n", "300", "--throughput", "1000", "--reporting-interval", "50"]
        *windows, total = tool("perf", "produce", topic, *flags).ok().lines
        assert windows
        assert all(line.endswith(" ms max latency.") for line in windows)
        assert TOTAL.fullmatch(total)

    def test_json_and_a_plot(self, tool: Tool, topic: str, tmp_path: Path) -> None:
        plot = tmp_path / "out.svg"
        done = tool("perf", "produce", topic, "-n", "200", "--plot", str(plot), "--json")
        assert (done.code, done.err) == (0, f"Drawn in {plot}.\n")
        assert (done.json["records"], done.json["bytes"], done.json["failed"]) == (200, 20_000, 0)
        assert set(done.json["latency_ms"]) == {"avg", "max", "p50", "p95", "p99", "p99.9"}
        ElementTree.fromstring(plot.read_text())

    def test_other_payloads(self, tool: Tool, topic: str, tmp_path: Path) -> None:
        tool("perf", "produce", topic, "-n", "3", "--payload-monotonic").ok()
        assert sorted(tool("consume", topic, "--from-beginning", "-e").ok().lines) == ["0", "1", "2"]
        file = tmp_path / "payloads.txt"
        file.write_text("only this;")
        tool(
            "perf", "produce", topic, "-n", "1", "--payload-file", str(file), "--payload-delimiter", ";"
        ).ok()
        assert "only this" in tool("consume", topic, "--from-beginning", "-e").ok().lines

    def test_transactions_are_committed_all_of_them(
        self, tool: Tool, topic: str, name: Callable[[str], str]
    ) -> None:
        tid = name("tx")
        flags = [
            "-n",
            "400",
            "--throughput",
            "2000",
            "--transaction-duration-ms",
            "50",
            "--transactional-id",
            tid,
        ]
        assert TOTAL.fullmatch(tool("perf", "produce", topic, *flags).ok().out.strip())
        reading = ["--from-beginning", "-e", "--isolation-level", "read_committed"]
        assert len(tool("consume", topic, *reading).ok().lines) == 400
        assert end(tool, topic) > 401  # a marker for each transaction and partition
        (found,) = tool("transactions", "describe", tid, "--json").ok().json
        assert found["state"] == "CompleteCommit"

    @pytest.mark.parametrize(
        "flags", [["--transaction-duration-ms", "1000"], ["--producer-props", "transactional.id=props-tx"]]
    )
    def test_either_flag_means_transactions(self, tool: Tool, topic: str, flags: list[str]) -> None:
        tool("perf", "produce", topic, "-n", "10", *flags).ok()
        assert end(tool, topic) > 10

    def test_the_warm_up_is_left_out_of_a_second_line(self, tool: Tool, topic: str) -> None:
        flags = ["-n", "3000", "--warmup-records", "500", "--producer-props", "batch.size=4000"]
        total, steady = tool("perf", "produce", topic, *flags).ok().lines
        assert TOTAL.fullmatch(total)
        assert TOTAL.fullmatch(steady.replace(" steady state", ""))
        assert 1000 < int(steady.split()[0]) <= 2500
        found = tool("perf", "produce", topic, *flags, "--json").ok().json
        assert (found["records"], found["steady"]["records"] <= 2500) == (3000, True)

    def test_records_that_fail_are_counted(self, tool: Tool, topic: str) -> None:
        tool("configs", "set", "topic", topic, "max.message.bytes=500").ok()
        done = tool("perf", "produce", topic, "-n", "3", "-s", "5000", "--json")
        assert (done.code, done.json["failed"], done.json["records"]) == (1, 3, 0)
        assert done.err.startswith("barnabas: 3 records failed; the first: ")

    @pytest.mark.parametrize(
        ("flags", "why"),
        [
            (["t"], "Missing option"),
            (["-n", "5"], "Name the topic."),
            (["t", "-n", "0"], "not in the range"),
            (["t", "-n", "1", "--payload-monotonic", "-s", "5"], "Say once what to send"),
            (["t", "-n", "1", "--producer-props", "acks"], "--producer-props takes NAME=VALUE, not 'acks'."),
        ],
    )
    def test_wrong_usage(self, tool: Tool, flags: list[str], why: str) -> None:
        done = tool("perf", "produce", *flags)
        assert done.code == 2
        assert why in done.err

    def test_a_plot_that_cannot_be_drawn(self, tool: Tool, topic: str) -> None:
        done = tool("perf", "produce", topic, "-n", "1", "--plot", "x.gif")
        assert (done.code, done.err) == (1, "barnabas: x.gif: a plot is a file that ends in .svg or .png\n")
        assert end(tool, topic) == 0


class TestConsume:
    @pytest.fixture
    def filled(self, tool: Tool, topic: str) -> str:
        tool("perf", "produce", topic, "-n", "1000").ok()
        return topic

    def test_the_lines_of_kafka(self, tool: Tool, filled: str) -> None:
        header, row = tool("perf", "consume", "--topic", filled, "--messages", "1000").ok().lines
        assert header == CONSUMED
        cells = row.split(", ")
        assert len(cells) == len(header.split(", "))
        assert (cells[4], cells[6]) == ("1000", "0")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}", cells[0])
        assert float(cells[2]) == pytest.approx(1000 * 100 / 2**20, abs=1e-4)

    def test_a_group_and_details(self, tool: Tool, filled: str, name: Callable[[str], str]) -> None:
        flags = ["-n", "1000", "--group", name("g"), "--show-detailed-stats", "--reporting-interval", "1"]
        lines = tool("perf", "consume", filled, *flags, "--hide-header", "--date-format", "HH.mm").ok().lines
        assert all(re.match(r"\d\d\.\d\d, 0, ", line) for line in lines)

    def test_json_and_a_plot(self, tool: Tool, filled: str, tmp_path: Path) -> None:
        plot = tmp_path / "out.svg"
        done = tool("perf", "consume", filled, "-n", "1000", "--plot", str(plot), "--json")
        assert (done.code, done.json["records"], done.json["expected"]) == (0, 1000, 1000)
        ElementTree.fromstring(plot.read_text())

    def test_too_few_records(self, tool: Tool, filled: str) -> None:
        done = tool("perf", "consume", filled, "-n", "2000", "--timeout", "200")
        assert done.code == 1
        assert done.err == "barnabas: only 1000 of 2000 records came; then none for 200 ms\n"

    def test_an_unknown_topic(self, tool: Tool) -> None:
        done = tool("perf", "consume", "nosuch", "-n", "1")
        assert (done.code, done.err) == (1, "barnabas: topic 'nosuch': there is none of this name\n")


@pytest.mark.slow
def test_the_real_command(bootstrap: str, topic: str) -> None:
    env = {"BARNABAS_BOOTSTRAP": bootstrap}
    assert TOTAL.fullmatch(barnabas("perf", "produce", topic, "-n", "100", env=env).stdout.strip())
    assert barnabas("perf", "consume", topic, "-n", "100", env=env).stdout.startswith(CONSUMED)
    assert barnabas("perf", "consume", topic, "-n", "100", "-b", "localhost:1").returncode == 1
