"""The two brokers of a comparison, started the way their users start them.

Apache Kafka runs with the heap and collector of its own start script.  CPU time and memory are those of the
broker process with all its threads, from /proc.
"""

import contextlib
from collections.abc import Iterator

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public by its docs

from tests._kafka import SERVER_JVM, KafkaServer
from tests.conformance._servers import BarnabasServer, Server, cpu_seconds, resident_bytes

__all__ = [
    "Server",
    "cpu_seconds",
    "create_topic",
    "create_topic_at",
    "delete_topic_at",
    "delete_topics",
    "make",
    "resident_bytes",
    "running",
]

# Both keep what they get, in segments of the usual size, without deleting or flushing in between.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
    "log.segment.delete.delay.ms": "1000",
}


def make(name: str) -> Server:
    """A stopped broker: "kafka" or "barnabas"."""
    if name == "kafka":
        return KafkaServer(SETTINGS, jvm=SERVER_JVM)
    return BarnabasServer(SETTINGS)


@contextlib.contextmanager
def running(names: list[str]) -> Iterator[dict[str, Server]]:
    with contextlib.ExitStack() as stack:
        servers: dict[str, Server] = {}
        for name in names:
            servers[name] = make(name)
            stack.callback(servers[name].close)
            servers[name].start()
        yield servers


def create_topic(server: Server, topic: str, partitions: int = 1) -> None:
    create_topic_at(server.bootstrap_servers, topic, partitions)


def create_topic_at(bootstrap_servers: str, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)


def delete_topic_at(bootstrap_servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    admin.delete_topics([topic])[topic].result(30)


def delete_topics(server: Server, topics: list[str]) -> None:
    if topics:
        admin = AdminClient({"bootstrap.servers": server.bootstrap_servers, "log_level": 0})
        for future in admin.delete_topics(topics).values():
            future.result(30)
