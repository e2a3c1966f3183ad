"""The same tasks done by Kafka's own tools and by our commands give the same results.

Asked for by BARNABAS_CONFORMANCE=barnabas,kafka (or one of the two), because every run of a tool starts a
Java machine: against our broker, and against Apache Kafka itself.
"""

import json
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests import _kafka
from tests.cli._command import barnabas

KINDS = os.environ.get("BARNABAS_CONFORMANCE", "").split(",")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        KINDS == [""], reason="Kafka's tools run only when BARNABAS_CONFORMANCE names a broker"
    ),
]

TOPICS = "org.apache.kafka.tools.TopicCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
CONFIGS = "kafka.admin.ConfigCommand"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
PRODUCER_PERF = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERF = "org.apache.kafka.tools.ConsumerPerformance"


@pytest.fixture(scope="module", params=KINDS)
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    if (reason := _kafka.why_missing()) is not None:
        pytest.skip(reason)
    if request.param == "kafka":
        with _kafka.KafkaServer({"group.initial.rebalance.delay.ms": "0"}) as server:
            yield server.bootstrap_servers
    else:
        with Broker() as broker:
            yield broker.bootstrap_servers


@pytest.fixture
def topic(address: str) -> str:
    name = f"t-{uuid.uuid4().hex[:8]}"
    ours(address, "topics", "create", name, "-p", "2")
    return name


def ours(address: str, *arguments: str, stdin: str = "") -> str:
    done = barnabas(*arguments, stdin=stdin, env={"BARNABAS_BOOTSTRAP": address}, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def theirs(address: str, tool: str, *arguments: str, stdin: str = "") -> str:
    done = _kafka.run_tool(tool, "--bootstrap-server", address, *arguments, stdin=stdin)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def words(line: str) -> list[str]:
    return line.split()


def test_topics_are_described_alike(address: str, topic: str) -> None:
    ours(address, "configs", "set", "topic", topic, "retention.ms=5000")
    flags = ["--describe", "--topic", topic]
    mine = [words(line) for line in ours(address, "topics", *flags).splitlines()]
    kafkas = [words(line) for line in theirs(address, TOPICS, *flags).splitlines()]
    assert mine[0][:8] == kafkas[0][:8], "name, id, partitions, replication factor"
    assert "retention.ms=5000" in mine[0][-1]
    assert "retention.ms=5000" in kafkas[0][-1]
    assert [row[:10] for row in mine[1:]] == [row[:10] for row in kafkas[1:]]


def test_a_topic_made_by_one_is_listed_by_the_other(address: str) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    theirs(address, TOPICS, "--create", "--topic", name, "--partitions", "3", "--replication-factor", "1")
    assert name in ours(address, "topics", "--list").splitlines()
    (shown,) = json.loads(ours(address, "topics", "describe", name, "--json"))
    assert len(shown["partitions"]) == 3
    ours(address, "topics", "--delete", "--topic", name)
    assert name not in theirs(address, TOPICS, "--list").splitlines()


def test_records_of_either_producer_are_printed_alike_by_either_consumer(address: str, topic: str) -> None:
    properties = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    ours(address, "produce", "--topic", topic, *properties, stdin="a:1\nb:2\n")
    theirs(address, PRODUCER, "--topic", topic, *properties, stdin="a:3\nb:4\n")
    printed = ("print.key=true", "print.partition=true", "print.headers=true")
    shown = [flag for each in printed for flag in ("--formatter-property", each)]
    flags = ["--topic", topic, "--from-beginning", "--max-messages", "4", *shown]
    mine = ours(address, "consume", *flags).splitlines()
    assert sorted(mine) == sorted(theirs(address, CONSUMER, *flags).splitlines())
    assert [line.split("\t")[-1] for line in mine if "\ta\t" in line] == ["1", "3"]


def test_offsets_are_printed_alike(address: str, topic: str) -> None:
    ours(address, "produce", topic, "-p", "1", stdin="x\ny\n")
    for time in ("-1", "-2", "-3"):
        flags = ["--topic", topic, "--time", time]
        mine, kafkas = ours(address, "offsets", *flags), theirs(address, OFFSETS, *flags)
        # Of a partition without records Kafka's tool leaves out the line, or the number.
        assert [line for line in mine.splitlines() if not line.endswith(":")] == [
            line for line in kafkas.splitlines() if not line.endswith(":-1")
        ]


def test_groups_are_moved_and_described_alike(address: str, topic: str) -> None:
    ours(address, "produce", topic, "-p", "0", stdin="1\n2\n3\n4\n")
    group = f"g-{uuid.uuid4().hex[:8]}"
    theirs(
        address, GROUPS, "--group", group, "--topic", topic, "--reset-offsets", "--to-earliest", "--execute"
    )
    shift = ["--reset-offsets", "--group", group, "--topic", f"{topic}:0", "--shift-by", "3"]
    plans = [ours(address, "groups", *shift, "--dry-run"), theirs(address, GROUPS, *shift, "--dry-run")]
    assert [words(line)[:4] for line in plans[0].splitlines()[1:]] == [
        words(line)[:4] for line in plans[1].splitlines() if line.startswith(group)
    ]
    ours(address, "groups", *shift, "--execute")
    flags = ["--describe", "--group", group]
    mine = [
        words(line)[:6] for line in ours(address, "groups", *flags).splitlines() if line.startswith(group)
    ]
    kafkas = [
        words(line)[:6] for line in theirs(address, GROUPS, *flags).splitlines() if line.startswith(group)
    ]
    assert sorted(mine) == sorted(kafkas)
    assert [group, topic, "0", "3", "4", "1"] in mine


def test_settings_made_by_one_are_seen_by_the_other(address: str, topic: str) -> None:
    entity = ["--entity-type", "topics", "--entity-name", topic]
    theirs(
        address, CONFIGS, *entity, "--alter", "--add-config", "retention.ms=7,cleanup.policy=[compact,delete]"
    )
    (shown,) = json.loads(ours(address, "configs", "--describe", *entity, "--json"))
    found = {entry["name"]: entry["value"] for entry in shown["configs"]}
    assert found == {"retention.ms": "7", "cleanup.policy": "compact,delete"}
    ours(address, "configs", "--alter", *entity, "--delete-config", "retention.ms")
    described = theirs(address, CONFIGS, *entity, "--describe")
    assert "cleanup.policy=compact,delete" in described
    assert "retention.ms" not in described


def test_records_are_deleted_by_the_same_file(address: str, topic: str, tmp_path: Path) -> None:
    ours(address, "produce", topic, "-p", "0", stdin="1\n2\n3\n4\n")
    file = tmp_path / "offsets.json"
    for tool, offset in (("ours", 1), ("theirs", 3)):
        rows = [{"topic": topic, "partition": 0, "offset": offset}]
        file.write_text(json.dumps({"partitions": rows, "version": 1}))
        if tool == "ours":
            ours(address, "delete-records", "--offset-json-file", str(file))
        else:
            theirs(address, DELETE_RECORDS, "--offset-json-file", str(file))
        assert (
            ours(address, "offsets", "--topic", topic, "--time", "earliest", "-p", "0")
            == f"{topic}:0:{offset}\n"
        )


def test_perf_lines_have_the_same_columns(address: str, topic: str) -> None:
    flags = ["--topic", topic, "--num-records", "2000", "--record-size", "100", "--throughput", "-1"]
    props = ["--producer-props", f"bootstrap.servers={address}", "acks=1"]
    done = _kafka.run_tool(PRODUCER_PERF, *flags, *props)
    mine, kafkas = ours(address, "perf", "produce", *flags, *props), done.stdout
    shapes = [re.sub(r"[0-9.]+(?= )", "N", text.splitlines()[-1]) for text in (mine, kafkas)]
    assert shapes[0] == shapes[1]
    flags = ["--topic", topic, "--num-records", "4000"]
    mine = ours(address, "perf", "consume", *flags)
    kafkas = theirs(address, CONSUMER_PERF, *flags)
    assert mine.splitlines()[0] == kafkas.splitlines()[0]
    assert mine.splitlines()[1].split(", ")[4] == kafkas.splitlines()[-1].split(", ")[4] == "4000"


def test_the_doctor_finds_nothing_wrong(address: str) -> None:
    found = json.loads(ours(address, "doctor", address, "--write", "--json"))
    assert found["healthy"] is True
    assert json.loads(ours(address, "cluster", "describe", "--json"))["brokers"]
