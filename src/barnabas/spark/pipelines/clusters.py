"""What the driver asks a cluster before a pipeline starts: are its topics there, where do they end, a sample.

Every error names the cluster or the topic, in one sentence.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from barnabas.base.errors import BarnabasError
from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.spec import Cluster, Flow, Source, TopicSink
from barnabas.spark.topic_patterns import TopicPattern

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

__all__ = ["check_flow", "end_offsets", "make_topics", "sample", "source_topics"]

SAMPLE_RECORDS: Final = 1_000
_PATIENCE: Final = {"bootstrap.timeout.ms": "3000"}


@contextmanager
def _admin(cluster: Cluster) -> "Iterator[Admin]":
    from barnabas.client.admin import Admin

    with Admin({**_PATIENCE, **cluster.settings()}) as admin:
        yield admin


def check_flow(flow: Flow) -> None:
    """Raises when a cluster is away or a topic to read is not there."""
    for source in flow.sources:
        source_topics(source)
    for sink in flow.sinks:
        if isinstance(sink, TopicSink):
            with _admin(sink.cluster) as admin:
                admin.list_topics()


def source_topics(source: Source) -> dict[str, int]:
    """Topic -> its partitions, of those that a source reads now."""
    from barnabas.client.errors import UnknownTopic

    with _admin(source.cluster) as admin:
        names = list(source.topics)
        if source.pattern is not None:
            try:
                wanted = TopicPattern(source.pattern)
            except ValueError as error:
                raise PipelineError(f"pattern {error}") from error
            names = [each.name for each in admin.list_topics() if wanted.matches(each.name)]
            if not names:
                raise PipelineError(f"no topic at {source.cluster.bootstrap} is like {source.pattern!r}")
        found = admin.describe_topics(names)
        for name, missing in found.errors.items():
            if isinstance(missing, UnknownTopic):
                # Brokers call it worth a retry; to a pipeline it is gone, or was never there.
                text = f"there is no topic {name} at {source.cluster.bootstrap}; create it, or mend the name"
                raise PipelineError(text) from missing
            text = f"topic {name} at {source.cluster.bootstrap}: {missing}"
            raise PipelineError(text, retriable=missing.retriable) from missing
        return {name: len(info.partitions) for name, info in found.succeeded.items()}


def make_topics(cluster: Cluster, topics: Sequence[str], partitions: int) -> None:
    """Makes the topics that are not there yet, with the cluster's own number of replicas."""
    with _admin(cluster) as admin:
        known = {each.name for each in admin.list_topics()}
        for topic in topics:
            if topic not in known:
                try:
                    admin.create_topic(topic, partitions, -1)
                except BarnabasError as error:
                    text = f"topic {topic} at {cluster.bootstrap}: {error}"
                    raise PipelineError(text, retriable=error.retriable) from error


def end_offsets(source: Source) -> str:
    """Where the topics end now, as the source's startingOffsets."""
    from barnabas.base.types import TopicPartition
    from barnabas.client.admin_types import OffsetSpec

    counts = source_topics(source)
    asked = {
        TopicPartition(topic, number): OffsetSpec.LATEST
        for topic, count in counts.items()
        for number in range(count)
    }
    with _admin(source.cluster) as admin:
        found = admin.list_offsets(asked, read_committed=source.isolation == "read_committed").check()
        ends: dict[str, dict[str, int]] = {topic: {} for topic in counts}
        for where, end in found.items():
            ends[where.topic][str(where.partition)] = end.offset
    return json.dumps(ends, sort_keys=True)


def sample(source: Source, count: int = SAMPLE_RECORDS) -> list[bytes | None]:
    """The first values of the topics."""
    from barnabas.base.types import TopicPartition
    from barnabas.client.consumer import Consumer

    partitions = [
        TopicPartition(topic, number)
        for topic, total in source_topics(source).items()
        for number in range(total)
    ]
    settings = {
        **_PATIENCE,
        **source.cluster.settings(),
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        "isolation.level": source.isolation,
    }
    values: list[bytes | None] = []
    with Consumer(settings) as consumer:
        consumer.assign(partitions)
        ends = consumer.end_offsets(*partitions)
        while len(values) < count and any(consumer.position(each) < ends[each] for each in partitions):
            values += [record.value for record in consumer.poll(0.5)]
    return values[:count]
