"""A mirror that runs while its source changes: partitions come, topics go, records age out."""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.spark.pipelines.mirror import run_here
from barnabas.spark.pipelines.mirror_settings import MirrorPlan
from barnabas.spark.pipelines.mirror_task import Copied, LostAtSource, TopicEnded
from barnabas.testing import Broker
from tests.spark.pipelines._mirror import contents, end_of, fill, fresh, plan, rows, settings

WAYS = ("auto", "translated")
LIMIT_S = 30.0


class Running:
    """A mirror in a thread, and what it has told."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._seen = threading.Condition()
        self._at: dict[tuple[str, int], int] = {}
        self.lost = 0

    def tell(self, copied: list[Copied]) -> None:
        with self._seen:
            for each in copied:
                self._at[each.topic, each.partition] = each.end
                self.lost += each.lost
            self._seen.notify_all()

    def wait_for(self, topic: str, end: int, partition: int = 0) -> None:
        """Returns when a partition is copied up to `end`."""
        with self._seen:
            reached = self._seen.wait_for(
                lambda: self.stop.is_set() or self._at.get((topic, partition), 0) >= end, LIMIT_S
            )
        assert reached, f"{topic}-{partition} is at {self._at} and not at {end}"
        assert not self.stop.is_set(), "the mirror ended"

    def ended(self) -> None:
        with self._seen:
            self.stop.set()
            self._seen.notify_all()


@contextmanager
def running(made: MirrorPlan) -> Iterator[Running]:
    """Mirrors until the end of the block, or until it fails; then raises what it failed with."""
    run = Running()

    def mirror() -> None:
        try:
            run_here(made, once=False, stop=run.stop, on_copied=run.tell)
        finally:
            run.ended()

    with ThreadPoolExecutor(1) as pool:
        failure = pool.submit(mirror)
        try:
            yield run
        finally:
            run.stop.set()
        failure.result(LIMIT_S)


@pytest.mark.parametrize("offsets", WAYS)
def test_partitions_are_added(source: Broker, target: Broker, offsets: str) -> None:
    topic = fresh()
    source.create_topic(topic)
    fill(source, topic, 20)
    with running(plan(source, target, topic, offsets=offsets, sync_interval_ms=50)) as run:
        run.wait_for(topic, 20)
        with Admin(settings(source)) as admin:
            admin.create_partitions({topic: 3}).check()
        fill(source, topic, 10, partition=2)
        fill(source, topic, 10, first=20)
        run.wait_for(topic, 10, partition=2)
        run.wait_for(topic, 30)
    for number in range(3):
        assert contents(rows(target, topic, number)) == contents(rows(source, topic, number))


def make_again(source: Broker, topic: str, grown: int, run: Running) -> None:
    run.wait_for(topic, 50)
    with Admin(settings(source)) as admin:
        admin.delete_topics([topic]).check()
        admin.create_topic(topic, 1, 1)
    fill(source, topic, grown, first=1_000)
    assert run.stop.wait(LIMIT_S), "the mirror goes on"


@pytest.mark.parametrize("offsets", WAYS)
@pytest.mark.parametrize("grown", [5, 90], ids=["shorter", "longer"])
def test_a_topic_is_deleted_and_made_again(source: Broker, target: Broker, offsets: str, grown: int) -> None:
    topic, other = fresh(), fresh()
    source.create_topic(topic)
    fill(source, topic, 50)
    made = plan(source, target, f"{topic}|{other}", offsets=offsets, sync_interval_ms=50)
    with pytest.raises(TopicEnded, match=f"{topic}.* made again"), running(made) as run:
        make_again(source, topic, grown, run)


@pytest.mark.parametrize("offsets", WAYS)
def test_a_topic_is_deleted_and_the_others_go_on(source: Broker, target: Broker, offsets: str) -> None:
    stem = fresh("gone")
    gone, stays = f"{stem}-gone", f"{stem}-stays"
    for name in (gone, stays):
        source.create_topic(name)
        fill(source, name, 10)
    with running(plan(source, target, f"{stem}-.*", offsets=offsets, sync_interval_ms=50)) as run:
        run.wait_for(gone, 10)
        run.wait_for(stays, 10)
        with Admin(settings(source)) as admin:
            admin.delete_topics([gone]).check()
        fill(source, stays, 10, first=10)
        run.wait_for(stays, 20)
    assert len(rows(target, gone)) == 10
    assert contents(rows(target, stays)) == contents(rows(source, stays))


def age(source: Broker, topic: str, chance: random.Random) -> None:
    """Takes some of the oldest records away, as retention does."""
    end = end_of(source, topic)
    with Admin(settings(source)) as admin:
        admin.delete_records({TopicPartition(topic, 0): chance.randrange(end // 2, end + 1)}).check()


def aged_out(source: Broker, target: Broker, offsets: str, rounds: int, seed: int) -> None:
    """Grows and ages at once: what the target has is in order, once, and the rest is counted as lost."""
    topic, chance = fresh("aged"), random.Random(seed)
    source.create_topic(topic)
    made = plan(source, target, topic, offsets=offsets, skip_lost=True, sync_interval_ms=50)
    total = 0
    with running(made) as run:
        for _ in range(rounds):
            count = chance.randrange(1, 400)
            fill(source, topic, count, first=total, batch_size=chance.choice([500, 4_000]))
            total += count
            if chance.random() < 0.7:
                age(source, topic, chance)
        run.wait_for(topic, total)
    found = [int(row.value[1:]) for row in rows(target, topic) if row.value is not None]
    assert found == sorted(set(found))
    # What was gone before the first copy was never asked for, and counts neither way.
    assert total - found[0] - len(found) <= run.lost <= total - len(found)


@pytest.mark.slow
@pytest.mark.parametrize("offsets", WAYS)
def test_records_age_out_while_it_runs(source: Broker, target: Broker, offsets: str) -> None:
    aged_out(source, target, offsets, rounds=8, seed=3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("offsets", WAYS)
def test_records_age_out_at_many_times(source: Broker, target: Broker, offsets: str, seed: int) -> None:
    aged_out(source, target, offsets, rounds=40, seed=seed)


@pytest.mark.parametrize("offsets", WAYS)
def test_records_that_age_out_before_they_are_copied_end_it(
    source: Broker, target: Broker, offsets: str
) -> None:
    topic = fresh()
    source.create_topic(topic)
    fill(source, topic, 10)
    made = plan(source, target, topic, offsets=offsets, sync_interval_ms=50)
    run_here(made, once=True)
    fill(source, topic, 10, first=10)
    fill(source, topic, 10, first=20)
    with Admin(settings(source)) as admin:
        admin.delete_records({TopicPartition(topic, 0): 25}).check()
    with (
        pytest.raises(LostAtSource, match=f"offsets 10 to 24 of {topic}-0 were deleted"),
        running(made) as run,
    ):
        assert run.stop.wait(LIMIT_S), "the mirror goes on"
    assert len(rows(target, topic)) == 10


def test_a_small_limit_of_the_copy_is_kept_to(source: Broker, target: Broker) -> None:
    """Batches that the target refused for their size would be cut up, and their offsets not be known."""
    topic, group = fresh("small"), fresh("group")
    tp = TopicPartition(topic, 0)
    source.create_topic(topic, config={"max.message.bytes": "5000"})
    fill(source, topic, 2_000, batch_size=2_000)
    with Admin(settings(source)) as admin:
        admin.alter_group_offsets(group, {tp: 1_234}).check()
    made = plan(source, target, topic, offsets="translated")
    for _ in range(2):  # into a topic that is made, and into one that is there
        run_here(made, once=True)
        fill(source, topic, 500, first=end_of(source, topic), batch_size=2_000)
    assert contents(rows(target, topic)) == contents(rows(source, topic))[:2_500]
    with Admin(settings(target)) as admin:
        moved = admin.list_group_offsets(group, [tp])[tp]
    assert moved is not None
    assert next(row for row in rows(target, topic) if row.offset >= moved.offset).value == b"v1234"
