"""Two clusters, records in the one, and what came of them in the other: for tests of mirror and replay."""

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.admin_types import OffsetSpec
from barnabas.client.bulk_fetch import BulkFetcher
from barnabas.client.producer import Producer
from barnabas.client.run_sender import RunSender
from barnabas.records.batch import iter_batches
from barnabas.records.builder import build_batch
from barnabas.records.columns import AbortedFilter
from barnabas.spark.pipelines.mirror_settings import MirrorPlan, names_of
from barnabas.testing import Broker

_numbers = itertools.count(1)

LIMIT = 10**9


def fresh(stem: str = "topic") -> str:
    """A name that no other test uses."""
    return f"{stem}{next(_numbers)}"


class Row(NamedTuple):
    """A record as a reader sees it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def settings(broker: Broker | str, **more: object) -> dict[str, object]:
    address = broker if isinstance(broker, str) else broker.bootstrap_servers
    return {"bootstrap.servers": address, **{name.replace("_", "."): value for name, value in more.items()}}


def end_of(broker: Broker | str, topic: str, partition: int = 0) -> int:
    tp = TopicPartition(topic, partition)
    with Admin(settings(broker)) as admin:
        return admin.list_offsets({tp: OffsetSpec.LATEST}, read_committed=True)[tp].offset


def rows(broker: Broker | str, topic: str, partition: int = 0) -> list[Row]:
    """All committed records of a partition, read without any of the code under test."""
    found: list[Row] = []
    with BulkFetcher(settings(broker)) as fetcher:
        ranges = [(topic, partition, 0, end_of(broker, topic, partition))]
        for chunk in fetcher.read(ranges, isolation="read_committed", timeout_ms=10_000):
            dropping = AbortedFilter(chunk.aborted or ())
            for batch in iter_batches(chunk.records):
                if not dropping.drops(batch) and not batch.is_control:
                    found += [
                        Row(r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
                        for r in batch.records(limit=LIMIT)
                    ]
    return found


def contents(found: Iterable[Row]) -> list[tuple[object, ...]]:
    """The rows without their offsets."""
    return [row[1:] for row in found]


def fill(
    broker: Broker | str, topic: str, count: int, *, partition: int = 0, first: int = 0, **more: object
) -> None:
    """Records k<i> -> v<i> at times of their own, some with headers."""
    with Producer(settings(broker, **more)) as producer:
        for number in range(first, first + count):
            producer.send(
                topic,
                b"v%d" % number,
                key=b"k%d" % number,
                partition=partition,
                timestamp_ms=1_700_000_000_000 + number,
                headers=[("n", b"%d" % number)] if number % 3 == 0 else [],
            )
        producer.flush()


def transact(
    broker: Broker | str, topic: str, values: Iterable[bytes], *, commit: bool, partition: int = 0
) -> None:
    """The values in one transaction."""
    with Producer(settings(broker, transactional_id=fresh("txn"))) as producer:
        producer.begin_transaction()
        for value in values:
            producer.send(topic, value, partition=partition)
        if commit:
            producer.commit_transaction()
        else:
            producer.flush()
            producer.abort_transaction()


def place(broker: Broker, topic: str, at: dict[int, list[bytes]], *, partition: int = 0) -> None:
    """Batches at offsets of our choice, as compaction leaves them: gaps between batches and inside them."""
    broker.create_topic(topic, partition + 1, config={"barnabas.offsets.kept": "true"})
    with RunSender(settings(broker)) as sender:
        end = 0
        for base, values in at.items():
            data = build_batch([(1_000 + base, b"k", value, ()) for value in values], base_offset=base)
            sender.append(topic, partition, [memoryview(data)], log_end=end)
            end = base + len(values)
        sender.flush()


def plan(source: Broker | str, target: Broker | str, topics: str, **more: object) -> MirrorPlan:
    given: dict[str, object] = {"group": f"mirror:{fresh('g')}", "timeout_ms": 20_000, **more}
    return MirrorPlan(
        {k: str(v) for k, v in settings(source).items()},
        {k: str(v) for k, v in settings(target).items()},
        names_of([topics]),
        **given,  # type: ignore[arg-type]  # fields of the plan by name
    )


def brokers() -> Iterator[tuple[Broker, Broker]]:
    with Broker() as source, Broker() as target:
        yield source, target
