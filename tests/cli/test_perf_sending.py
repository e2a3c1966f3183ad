"""barnabas.cli.perf_sending: payloads, a rate, and how long each record waited."""

from itertools import islice
from pathlib import Path

import click
import pytest

from barnabas.cli.perf_sending import Sending, numbered_payloads, payloads_of, random_payloads
from barnabas.cli.perf_stats import Meter
from barnabas.client.producer import Producer


def test_random_payloads_have_their_size_and_are_the_same_in_every_run() -> None:
    first, again = (list(islice(random_payloads(33), 50)) for _ in range(2))
    assert first == again
    assert {len(payload) for payload in first} == {33}
    assert len(set(first)) == 50
    assert all(payload.isalpha() and payload.isupper() for payload in first)


def test_numbers_rise() -> None:
    assert list(islice(numbered_payloads(), 3)) == [b"0", b"1", b"2"]


def test_payloads_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "payloads"
    file.write_bytes(b"a|b||c|")
    assert set(islice(payloads_of(file, b"|"), 100)) == {b"a", b"b", b"c"}
    file.write_bytes(b"")
    with pytest.raises(click.UsageError, match="is empty"):
        payloads_of(file, b"\n")


def test_every_record_is_counted_once_however_batches_end(bootstrap: str, topic: str) -> None:
    with Producer({"bootstrap.servers": bootstrap, "batch.size": "200", "linger.ms": "0"}) as producer:
        meter = Meter(3000)
        run = Sending(producer, topic, meter)
        seen: list[int] = []
        run.send(3000, random_payloads(10), -1, seen.append)
    assert (meter.records, meter.size_bytes, meter.measured, run.failed) == (3000, 30_000, 3000, 0)
    assert seen == [0, 2048]


def test_a_rate_is_kept(bootstrap: str, topic: str) -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        meter = Meter(20)
        Sending(producer, topic, meter).send(20, numbered_payloads(), 200, lambda done: None)
    assert meter.seconds >= 19 / 200
