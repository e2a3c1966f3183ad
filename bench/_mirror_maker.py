"""Kafka's own MirrorMaker 2 as a process, one run for each copy; its jars come as those of tests/_kafka do.

It has the settings that Kafka ships it with, but for one task for each partition, and for what one broker a
cluster asks for.  It delivers at least once.
"""

import subprocess
import tempfile
import time
from pathlib import Path

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.admin_types import OffsetSpec
from bench._brokers import Server, cpu_seconds
from tests._kafka import SERVER_JVM, VERSION, KafkaMissing, die_with_parent, fetched

ARTIFACTS = (("org.apache.kafka", "connect-mirror", VERSION), ("org.slf4j", "slf4j-simple", "1.7.36"))
SETTINGS = """
clusters = one, other
one.bootstrap.servers = {source}
other.bootstrap.servers = {target}
one->other.enabled = true
one->other.topics = {topic}
one->other.source.cluster.alias = {alias}
tasks.max = {partitions}
replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
config.storage.replication.factor = 1
emit.heartbeats.enabled = false
emit.checkpoints.enabled = false
sync.topic.acls.enabled = false
"""
LIMIT_S = 120.0


def why_missing() -> str | None:
    try:
        fetched("connect-mirror", ARTIFACTS)
    except KafkaMissing as missing:
        return str(missing)
    return None


def mirror(
    source: Server, target: Server, topic: str, partitions: int, records: int
) -> tuple[float, float, float]:
    """Copies a topic: which share of it was copied while it was watched, in how many seconds, CPU seconds.

    It is watched from when the first records have come: a JVM and a Connect worker take long to start.
    """
    alias = f"one{time.monotonic_ns()}"
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as folder:
        file = Path(folder, "mm2.properties")
        file.write_text(
            SETTINGS.format(
                source=source.bootstrap_servers,
                target=target.bootstrap_servers,
                topic=topic,
                alias=alias,
                partitions=partitions,
            )
        )
        jars = fetched("connect-mirror", ARTIFACTS)
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        command = ["java", *SERVER_JVM, quiet, "-cp", f"{jars}/*"]
        command += ["org.apache.kafka.connect.mirror.MirrorMaker", str(file)]
        with Path(folder, "mm2.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=die_with_parent)
        try:
            return _watched(process, target, f"{alias}.{topic}", partitions, records)
        except TimeoutError:
            print(Path(folder, "mm2.log").read_text(errors="replace")[-3000:])
            raise
        finally:
            process.kill()
            process.wait()


def _watched(
    process: "subprocess.Popen[bytes]", target: Server, copy: str, partitions: int, records: int
) -> tuple[float, float, float]:
    wanted = {TopicPartition(copy, number): OffsetSpec.LATEST for number in range(partitions)}
    total = records * partitions
    deadline = time.monotonic() + LIMIT_S
    first: tuple[int, float, float] | None = None
    with Admin({"bootstrap.servers": target.bootstrap_servers}) as admin:
        while time.monotonic() < deadline:
            found = admin.list_offsets(wanted).succeeded
            there = sum(each.offset for each in found.values())
            now, cpu = time.perf_counter(), cpu_seconds(process.pid)
            if first is None and there:
                first = there, now, cpu
            if first is not None and there >= total:
                admin.delete_topics([copy]).check()
                return (there - first[0]) / total, now - first[1], cpu - first[2]
            time.sleep(0.02)
    raise TimeoutError(f"MirrorMaker copied {there} of {total} records in {LIMIT_S} s")
