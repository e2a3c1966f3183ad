"""kcat on Debian's librdkafka 2.0, which turns on a feature only where exact old versions are offered."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.conformance._client import eventually
from tests.conformance._servers import Server
from tests.conformance._setup import ClientMissing, kcat

TIMEOUT_S = 60


class Kcat:
    def __init__(self, program: str, server: Server) -> None:
        self._command = [program, "-b", server.bootstrap_servers]

    def run(self, *arguments: str, stdin: bytes = b"", status: int = 0) -> bytes:
        done = subprocess.run(
            [*self._command, *arguments], input=stdin, capture_output=True, timeout=TIMEOUT_S
        )
        assert done.returncode == status, done
        return done.stdout if status == 0 else done.stderr

    def produce(self, topic: str, lines: bytes, *more: str) -> None:
        self.run("-P", "-t", topic, *more, stdin=lines)

    def consume(self, topic: str, *more: str) -> list[bytes]:
        """Everything in the topic up to its end."""
        return self.run("-C", "-q", "-e", "-X", "fetch.wait.max.ms=20", "-t", topic, *more).splitlines()


@pytest.fixture
def program(cluster: Server) -> Kcat:
    try:
        return Kcat(kcat(), cluster)
    except ClientMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize(
    ("codec", "acks"),
    [("none", "0"), ("gzip", "1"), ("snappy", "all"), ("lz4", "0"), ("zstd", "1"), ("none", "all")],
)
def test_lines_come_back_with_key_and_headers(program: Kcat, topic: str, codec: str, acks: str) -> None:
    program.run("-L", "-t", topic)  # makes the topic, so that acks=0 finds a leader
    options = ("-z", codec, "-X", f"acks={acks}", "-p", "1", "-K", ":", "-H", "h=1", "-H", "h=2", "-H", "n")
    program.produce(topic, b"a:one\nb:two\n:three\n", *options)
    wanted = [b"1 0 a=one h=1,h=2,n=NULL", b"1 1 b=two h=1,h=2,n=NULL", b"1 2 =three h=1,h=2,n=NULL"]
    shown = ("-p", "1", "-f", r"%p %o %k=%s %h\n")
    eventually(lambda: len(program.consume(topic, *shown)) >= 3, what="three lines")
    assert program.consume(topic, *shown) == wanted


def test_nulls_and_empties_differ(program: Kcat, topic: str) -> None:
    program.produce(topic, b"a:\n:b\n", "-p", "0", "-K", ":", "-Z")
    shown = [json.loads(line) for line in program.consume(topic, "-p", "0", "-J")]
    assert [(each["key"], each["payload"]) for each in shown] == [("a", None), (None, "b")]
    assert [each["offset"] for each in shown] == [0, 1]


def test_reading_starts_where_it_is_told(program: Kcat, topic: str) -> None:
    program.produce(topic, b"".join(b"%d\n" % number for number in range(10)), "-p", "0")
    assert program.consume(topic, "-p", "0", "-o", "7") == [b"7", b"8", b"9"]
    assert program.consume(topic, "-p", "0", "-o", "-2") == [b"8", b"9"]
    assert program.consume(topic, "-p", "0", "-o", "beginning", "-c", "2") == [b"0", b"1"]
    assert program.consume(topic, "-p", "0", "-o", "end") == []
    stamps = program.consume(topic, "-p", "0", "-f", r"%T\n")
    later = int(stamps[-1]) + 1
    assert program.consume(topic, "-p", "0", "-o", f"s@{stamps[0].decode()}") == [
        b"%d" % n for n in range(10)
    ]
    assert program.run("-Q", "-t", f"{topic}:0:{later}").split()[-2:] == [b"offset", b"-1"]


def test_a_file_is_one_message_and_a_large_one_is_refused(program: Kcat, topic: str, tmp_path: Path) -> None:
    program.run("-L", "-t", topic)
    data = bytes(range(256)) * 3_000
    whole = tmp_path / "whole"
    whole.write_bytes(data)
    program.run("-P", "-t", topic, "-p", "0", str(whole))
    assert program.run("-C", "-q", "-e", "-t", topic, "-p", "0", "-f", "%s") == data
    whole.write_bytes(data * 2)
    large = ("-P", "-t", topic, "-p", "0", "-X", "message.max.bytes=5000000", str(whole))
    assert b"Message size too large" in program.run(*large, status=1)


def test_a_balanced_group_commits_and_resumes(program: Kcat, topic: str, group: str) -> None:
    program.produce(topic, b"".join(b"%d\n" % number for number in range(6)), "-p", "1")
    settings = ("-X", "auto.offset.reset=earliest", "-X", "heartbeat.interval.ms=100", "-q")
    first = program.run("-G", group, *settings, "-c", "4", topic).split()
    assert first == [b"0", b"1", b"2", b"3"]
    rest = program.run("-G", group, *settings, "-c", "2", topic).split()
    assert rest == [b"4", b"5"]


def test_metadata_names_brokers_topics_and_leaders(program: Kcat, topic: str, cluster: Server) -> None:
    program.produce(topic, b"x\n")
    listed = json.loads(program.run("-L", "-J", "-t", topic))
    [broker] = listed["brokers"]
    assert broker["name"] == cluster.bootstrap_servers
    [found] = listed["topics"]
    assert [each["leader"] for each in found["partitions"]] == [broker["id"]] * 2
    assert [each["isrs"] for each in found["partitions"]] == [[{"id": broker["id"]}]] * 2


def test_an_idempotent_producer_writes_each_line_once(program: Kcat, topic: str) -> None:
    lines = [b"%d" % number for number in range(5000)]
    program.produce(topic, b"\n".join(lines) + b"\n", "-p", "0", "-X", "enable.idempotence=true")
    assert program.consume(topic, "-p", "0") == lines
