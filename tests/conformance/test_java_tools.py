"""Kafka's own command-line tools, as an operator runs them.

All run in one JVM: the tools' main methods with their own streams, see `tool` in drivers/JavaDriver.java.
"""

import re
from pathlib import Path
from typing import ClassVar

import pytest

from tests.conformance._client import Client, Message, eventually
from tests.conformance._scenarios import now_ms
from tests.conformance._servers import Server

CLIENT = "java"
TOPICS = "org.apache.kafka.tools.TopicCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONFIGS = "kafka.admin.ConfigCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
CLUSTER = "org.apache.kafka.tools.ClusterTool"


class Tools:
    def __init__(self, client: Client, server: Server) -> None:
        self._client = client
        self._at = ("--bootstrap-server", server.bootstrap_servers)

    def run(self, main: str, *arguments: str, stdin: str = "", status: int = 0) -> str:
        """What the tool prints; it must end with `status`."""
        done = self._client.call("tool", main=main, arguments=[*arguments], stdin=stdin)
        assert done["status"] == status, done
        return str(done["stdout"]) + (str(done["stderr"]) if status else "")

    def at(self, main: str, *arguments: str, stdin: str = "", status: int = 0) -> str:
        """The same, told where the broker is."""
        return self.run(main, *self._at, *arguments, stdin=stdin, status=status)


@pytest.fixture
def tools(client: Client, cluster: Server) -> Tools:
    return Tools(client, cluster)


class TestTopics:
    def test_topics_are_created_described_altered_listed_and_deleted(self, tools: Tools, topic: str) -> None:
        made = tools.at(
            TOPICS, "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=5000000"
        )
        assert f"Created topic {topic}." in made
        described = tools.at(TOPICS, "--describe", "--topic", topic)
        assert re.search(
            r"PartitionCount: 2\s+ReplicationFactor: 1\s+Configs: .*retention.ms=5000000", described
        )
        assert re.search(r"Partition: 1\s+Leader: \d+\s+Replicas: \d+\s+Isr: \d+", described)
        assert re.search(r"TopicId: [\w-]{22}", described)
        tools.at(TOPICS, "--alter", "--topic", topic, "--partitions", "3")
        assert "PartitionCount: 3" in tools.at(TOPICS, "--describe", "--topic", topic)
        assert topic in tools.at(TOPICS, "--list").split()
        tools.at(TOPICS, "--delete", "--topic", topic)
        eventually(lambda: topic not in tools.at(TOPICS, "--list").split(), what="the topic being gone")

    def test_a_second_creation_fails_in_words(self, tools: Tools, topic: str) -> None:
        tools.at(TOPICS, "--create", "--topic", topic)
        again = tools.at(TOPICS, "--create", "--topic", topic, status=1)
        assert f"Topic '{topic}' already exists" in again


class TestConsole:
    LINES: ClassVar = ["a\tone", "b\ttwo", "a\tthree"]

    @pytest.mark.parametrize("codec", ["none", "zstd"])
    def test_lines_typed_are_lines_read(self, tools: Tools, topic: str, codec: str) -> None:
        tools.at(TOPICS, "--create", "--topic", topic)
        lines = "".join(f"{line}\n" for line in self.LINES)
        tools.at(
            PRODUCER,
            "--topic",
            topic,
            "--reader-property",
            "parse.key=true",
            "--compression-codec",
            codec,
            stdin=lines,
        )
        printed = tools.at(
            CONSUMER,
            "--topic",
            topic,
            "--from-beginning",
            "--max-messages",
            "3",
            "--timeout-ms",
            "15000",
            "--formatter-property",
            "print.key=true",
        )
        assert printed.splitlines() == self.LINES


class TestGroups:
    def test_a_group_is_described_reset_and_deleted(
        self, tools: Tools, client: Client, topic: str, group: str
    ) -> None:
        client.create_topic(topic)
        client.produce(topic, [Message(b"%d" % number) for number in range(10)])
        member = client.member(group, topic)
        member.await_received(10)
        member.commit()
        live = tools.at(GROUPS, "--describe", "--group", group)
        assert re.search(rf"{group}\s+{topic}\s+0\s+10\s+10\s+0\s+consumer-", live)
        state = tools.at(GROUPS, "--describe", "--group", group, "--state")
        assert re.search(rf"{group}\s.*\sStable\s+1", state)
        members = tools.at(GROUPS, "--describe", "--group", group, "--members", "--verbose")
        assert re.search(rf"{group}\s+consumer-.*{topic}.*0", members)
        member.close()
        assert group in tools.at(GROUPS, "--list").split()
        reset = ("--reset-offsets", "--group", group, "--topic", topic, "--execute")
        tools.at(GROUPS, *reset, "--to-offset", "4")
        assert client.committed(group, topic) == 4
        tools.at(GROUPS, *reset, "--shift-by", "2")
        assert client.committed(group, topic) == 6
        tools.at(GROUPS, *reset, "--to-earliest")
        assert client.committed(group, topic) == 0
        tools.at(GROUPS, *reset, "--to-latest")
        assert client.committed(group, topic) == 10
        tools.at(GROUPS, "--delete-offsets", "--group", group, "--topic", topic)
        assert client.committed(group, topic) is None
        tools.at(GROUPS, *reset, "--to-offset", "1")
        tools.at(GROUPS, "--delete", "--group", group)
        assert group not in tools.at(GROUPS, "--list").split()


class TestConfigs:
    def test_settings_of_a_topic_change_one_by_one(self, tools: Tools, topic: str) -> None:
        tools.at(TOPICS, "--create", "--topic", topic)
        where = ("--entity-type", "topics", "--entity-name", topic)
        tools.at(
            CONFIGS, *where, "--alter", "--add-config", "retention.ms=7000000,cleanup.policy=[compact,delete]"
        )
        described = tools.at(CONFIGS, *where, "--describe")
        assert "retention.ms=7000000" in described
        assert "cleanup.policy=compact,delete" in described
        assert "DYNAMIC_TOPIC_CONFIG:retention.ms=7000000" in described
        tools.at(CONFIGS, *where, "--alter", "--delete-config", "cleanup.policy")
        described = tools.at(CONFIGS, *where, "--describe")
        assert "cleanup.policy" not in described
        everything = tools.at(CONFIGS, *where, "--describe", "--all")
        assert re.search(r"segment.bytes=1073741824 sensitive=false synonyms=\{.*DEFAULT_CONFIG", everything)

    def test_settings_of_the_broker_change_without_a_restart(self, tools: Tools, client: Client) -> None:
        where = ("--entity-type", "brokers", "--entity-default")
        tools.at(CONFIGS, *where, "--alter", "--add-config", "log.retention.ms=900000000")
        try:
            eventually(
                lambda: "log.retention.ms=900000000" in tools.at(CONFIGS, *where, "--describe"),
                what="the new default",
            )
        finally:
            tools.at(CONFIGS, *where, "--alter", "--delete-config", "log.retention.ms")
        eventually(
            lambda: "log.retention.ms" not in tools.at(CONFIGS, *where, "--describe"), what="the old default"
        )

    def test_a_wrong_setting_is_named(self, tools: Tools, topic: str) -> None:
        tools.at(TOPICS, "--create", "--topic", topic)
        wrong = ("--alter", "--add-config", "retention.mss=1")
        said = tools.at(CONFIGS, "--entity-type", "topics", "--entity-name", topic, *wrong, status=1)
        assert "retention.mss" in said


class TestOffsetsAndRecords:
    def test_offsets_are_printed_for_every_kind_of_time(
        self, tools: Tools, client: Client, topic: str
    ) -> None:
        client.create_topic(topic)
        stamps = [5_000, 1_000, 9_000, 2_000]
        start = now_ms() - 60_000
        client.produce(topic, [Message(b"x", timestamp=start + stamp) for stamp in stamps])
        asked = {
            "-1": "4",
            "latest": "4",
            "-2": "0",
            "earliest": "0",
            "-3": "2",
            "max-timestamp": "2",
            str(start + 5_001): "2",
        }
        for time, offset in asked.items():
            printed = tools.at(OFFSETS, "--topic", topic, "--time", time)
            assert printed.split() == [f"{topic}:0:{offset}"], time

    def test_records_are_deleted_by_a_file_of_offsets(
        self, tools: Tools, client: Client, topic: str, tmp_path: Path
    ) -> None:
        client.create_topic(topic)
        client.produce(topic, [Message(b"%d" % number) for number in range(10)])
        wanted = tmp_path / "offsets.json"
        wanted.write_text(
            f'{{"partitions": [{{"topic": "{topic}", "partition": 0, "offset": 7}}], "version": 1}}'
        )
        said = tools.at(DELETE_RECORDS, "--offset-json-file", str(wanted))
        assert f"partition: {topic}-0\tlow_watermark: 7" in said
        assert [each.value for each in client.read(topic, 3, start=7)] == [b"7", b"8", b"9"]

    def test_the_segment_files_are_read_by_dump_log(
        self, tools: Tools, client: Client, cluster: Server, topic: str
    ) -> None:
        client.create_topic(topic)
        client.produce(topic, [Message(b"v%d" % number, b"k") for number in range(5)], codec="zstd")
        segment = cluster.data_dir / f"{topic}-0" / "00000000000000000000.log"
        dumped = tools.run(DUMP, "--files", str(segment), "--print-data-log", "--deep-iteration")
        assert "compresscodec: zstd" in dumped
        assert "isvalid: true" in dumped
        assert re.findall(r"offset: (\d+) .*payload: (v\d)", dumped) == [(str(n), f"v{n}") for n in range(5)]

    @pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
    def test_a_topic_packs_what_it_is_given_its_own_way(
        self, tools: Tools, client: Client, cluster: Server, topic: str, codec: str
    ) -> None:
        client.create_topic(topic, configs={"compression.type": codec})
        sent = [Message(b"value " * 100, b"k%d" % number, timestamp=now_ms()) for number in range(5)]
        client.produce(topic, sent, codec="zstd" if codec == "uncompressed" else "none")
        segment = cluster.data_dir / f"{topic}-0" / "00000000000000000000.log"
        dumped = tools.run(DUMP, "--files", str(segment))
        assert f"compresscodec: {'none' if codec == 'uncompressed' else codec}" in dumped
        assert [each.content() for each in client.read(topic, 5)] == sent


class TestPerformance:
    def test_the_perf_tests_run_to_their_end(self, tools: Tools, cluster: Server, topic: str) -> None:
        tools.at(TOPICS, "--create", "--topic", topic)
        produced = tools.at(
            PRODUCER_PERFORMANCE,
            "--topic",
            topic,
            "--num-records",
            "20000",
            "--record-size",
            "100",
            "--throughput",
            "-1",
            "--command-property",
            "acks=all",
        )
        assert "20000 records sent" in produced
        consumed = tools.at(
            CONSUMER_PERFORMANCE, "--topic", topic, "--num-records", "20000", "--timeout", "20000"
        )
        # start, end, MB, MB/s, messages, ...
        assert consumed.splitlines()[1].split(",")[4].strip() == "20000"


class TestCluster:
    def test_the_offered_apis_are_listed(self, tools: Tools) -> None:
        printed = tools.at(VERSIONS)
        assert re.search(r"Produce\(0\): 0 to \d+ \[usable: \d+\]", printed)
        assert re.search(r"Metadata\(3\): 0 to \d+ \[usable: \d+\]", printed)

    def test_the_log_folders_are_described(
        self, tools: Tools, client: Client, topic: str, cluster: Server
    ) -> None:
        client.create_topic(topic)
        client.produce(topic, [Message(b"x" * 1000)])
        printed = tools.at(LOG_DIRS, "--describe", "--topic-list", topic)
        size = re.search(rf'"partition":"{topic}-0","size":(\d+)', printed)
        assert size is not None
        assert 1_000 < int(size[1]) < 1_200
        assert str(cluster.data_dir) in printed

    def test_the_cluster_has_an_id(self, tools: Tools) -> None:
        assert re.search(r"Cluster ID: \S{22}", tools.run(CLUSTER, "cluster-id", *tools._at))
