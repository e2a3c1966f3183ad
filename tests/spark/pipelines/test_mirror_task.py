"""barnabas.spark.pipelines.mirror_task: every record once, whoever copies and whatever breaks (T1-T3)."""

import contextlib
import os
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.errors import KafkaError, ProducerFenced
from barnabas.client.producer import Producer
from barnabas.protocol.api import ApiKey
from barnabas.spark.pipelines.mirror_marks import Mark, read_mark
from barnabas.spark.pipelines.mirror_settings import MirrorPlan
from barnabas.spark.pipelines.mirror_task import (
    BrokenAtSource,
    Copied,
    LostAtSource,
    MirrorLinks,
    TopicEnded,
    Work,
    copy,
)
from barnabas.testing import Broker
from tests.client._faulty import FaultyBroker, faulty_broker
from tests.spark.pipelines._mirror import (
    contents,
    end_of,
    fill,
    fresh,
    place,
    plan,
    rows,
    settings,
    transact,
)

WAYS = [pytest.param(True, id="kept"), pytest.param(False, id="translated")]


def make_copy(target: Broker | str, topic: str, *, kept: bool, partitions: int = 1) -> None:
    configs = {"barnabas.offsets.kept": "true"} if kept else {}
    with Admin(settings(target)) as admin:
        admin.create_topic(topic, partitions, 1, configs=configs)


def copied(made: MirrorPlan, topic: str, end: int, *, kept: bool, target: str = "", start: int = 0) -> Copied:
    """One run with connections of its own."""
    with MirrorLinks(made) as links:
        (done,) = copy([Work(topic, 0, end, target or topic, kept, start)], links)
    return done


def mark_of(made: MirrorPlan, topic: str) -> Mark:
    tp = TopicPartition(topic, 0)
    with Admin(made.target) as admin:
        found = admin.list_group_offsets(made.group, [tp], require_stable=True)[tp]
    assert found is not None
    return read_mark((found.offset, found.metadata))


@pytest.mark.parametrize("kept", WAYS)
class TestCopying:
    def test_records_times_keys_and_headers_are_the_same(
        self, source: Broker, target: Broker, kept: bool
    ) -> None:
        topic = fresh()
        source.create_topic(topic)
        make_copy(target, topic, kept=kept)
        fill(source, topic, 500)
        fill(source, topic, 500, first=500, compression_type="zstd")
        made = plan(source, target, topic)
        done = copied(made, topic, 1_000, kept=kept)
        assert (done.start, done.end, done.records, done.lost) == (0, 1_000, 1_000, 0)
        assert rows(target, topic) == rows(source, topic)

    def test_again_copies_only_what_is_new(self, source: Broker, target: Broker, kept: bool) -> None:
        topic = fresh()
        source.create_topic(topic)
        make_copy(target, topic, kept=kept)
        made = plan(source, target, topic)
        with MirrorLinks(made) as links:
            for count in (10, 0, 25):
                before = end_of(source, topic)
                fill(source, topic, count, first=before)
                (done,) = copy([Work(topic, 0, before + count, topic, kept)], links)
                assert (done.start, done.end, done.records) == (before, before + count, count)
        assert contents(rows(target, topic)) == contents(rows(source, topic))

    def test_only_what_is_committed_is_copied(self, source: Broker, target: Broker, kept: bool) -> None:
        topic = fresh()
        source.create_topic(topic)
        make_copy(target, topic, kept=kept)
        fill(source, topic, 5)
        transact(source, topic, [b"yes", b"also"], commit=True)
        transact(source, topic, [b"no"] * 3, commit=False)
        fill(source, topic, 5, first=5)
        transact(source, topic, [b"no"], commit=False)
        done = copied(plan(source, target, topic), topic, end_of(source, topic), kept=kept)
        assert done.records == 12
        assert done.end == end_of(source, topic)
        assert contents(rows(target, topic)) == contents(rows(source, topic))
        if kept:
            assert rows(target, topic) == rows(source, topic)

    def test_gaps_of_compaction_lose_nothing(self, source: Broker, target: Broker, kept: bool) -> None:
        topic = fresh()
        place(source, topic, {7: [b"a", b"b"], 40: [b"c"], 2**33: [b"d"]})
        make_copy(target, topic, kept=kept)
        made = plan(source, target, topic)
        assert copied(made, topic, 2**33 + 1, kept=kept).records == 4
        assert contents(rows(target, topic)) == contents(rows(source, topic))
        if kept:
            assert rows(target, topic) == rows(source, topic)

    def test_it_may_begin_in_the_middle_of_a_batch(self, source: Broker, target: Broker, kept: bool) -> None:
        topic = fresh()
        place(source, topic, {0: [b"a", b"b", b"c"], 3: [b"d"]})
        make_copy(target, topic, kept=kept)
        copied(plan(source, target, topic), topic, 4, kept=kept, start=2)
        assert [row.value for row in rows(target, topic)] == [b"c", b"d"]

    def test_two_at_once_write_it_once(self, source: Broker, target: Broker, kept: bool) -> None:
        topic = fresh()
        source.create_topic(topic)
        make_copy(target, topic, kept=kept)
        fill(source, topic, 3_000, batch_size=2_000)
        made = replace(plan(source, target, topic), transaction_bytes=5_000)
        gate = threading.Barrier(3)

        def attempt() -> bool:
            gate.wait()
            try:
                copied(made, topic, 3_000, kept=kept)
            except ProducerFenced:
                return False
            return True

        with ThreadPoolExecutor(3) as pool:
            finished = [pool.submit(attempt) for _ in range(3)]
            ended = [each.result() for each in finished]
        assert any(ended)
        assert contents(rows(target, topic)) == contents(rows(source, topic))

    def test_what_the_source_deleted_is_an_error_or_is_counted(
        self, source: Broker, target: Broker, kept: bool
    ) -> None:
        topic = fresh()
        source.create_topic(topic)
        make_copy(target, topic, kept=kept)
        fill(source, topic, 10)
        made = plan(source, target, topic)
        copied(made, topic, 5, kept=kept)  # the batch is whole, so all of it
        fill(source, topic, 10, first=10)
        fill(source, topic, 10, first=20)
        with Admin(settings(source)) as admin:
            admin.delete_records({TopicPartition(topic, 0): 25}).check()
        with pytest.raises(LostAtSource, match=rf"offsets 10 to 24 of {topic}-0 were deleted at the source"):
            copied(made, topic, 30, kept=kept)
        done = copied(replace(made, skip_lost=True), topic, 30, kept=kept)
        assert (done.start, done.end, done.records, done.lost) == (10, 30, 5, 15)
        assert [row.value for row in rows(target, topic)] == [
            b"v%d" % number for number in [*range(10), *range(25, 30)]
        ]

    def test_a_batch_that_is_broken_at_the_source_is_not_passed_on(self, target: Broker, kept: bool) -> None:
        topic = fresh()
        make_copy(target, topic, kept=kept)
        with TemporaryDirectory() as folder, Broker(data_dir=folder) as source:
            source.create_topic(topic)
            fill(source, topic, 10)
            made = plan(source, target, topic)
            assert copied(made, topic, 10, kept=kept).records == 10
            fill(source, topic, 10, first=10)
            (stored,) = Path(folder).rglob(f"{topic}-0/*.log")
            with stored.open("r+b") as file:
                file.seek(-3, os.SEEK_END)
                file.write(b"?")
            with pytest.raises(
                BrokenAtSource, match=f"{topic}-0 is broken at the source: batch at offset 10"
            ):
                copied(made, topic, 20, kept=kept)
        assert len(rows(target, topic)) == 10

    def test_a_first_copy_begins_where_the_source_begins(
        self, source: Broker, target: Broker, kept: bool
    ) -> None:
        topic = fresh()
        source.create_topic(topic)
        make_copy(target, topic, kept=kept)
        fill(source, topic, 10)
        with Admin(settings(source)) as admin:
            admin.delete_records({TopicPartition(topic, 0): 4}).check()
        done = copied(plan(source, target, topic), topic, 10, kept=kept)
        assert (done.records, done.lost) == (6, 0)
        assert [row.value for row in rows(target, topic)] == [b"v%d" % number for number in range(4, 10)]


class TestKept:
    def test_several_partitions_go_side_by_side(self, source: Broker, target: Broker) -> None:
        topic = fresh()
        source.create_topic(topic, 5)
        make_copy(target, topic, kept=True, partitions=5)
        for number in range(5):
            fill(source, topic, 100 * number, partition=number)
        with MirrorLinks(plan(source, target, topic)) as links:
            done = copy([Work(topic, n, 100 * n, topic, True) for n in range(5)], links)
        assert [each.records for each in done] == [0, 100, 200, 300, 400]
        for number in range(5):
            assert rows(target, topic, number) == rows(source, topic, number)

    def test_a_topic_that_was_promoted_is_not_written_to(self, source: Broker, target: Broker) -> None:
        topic = fresh()
        source.create_topic(topic)
        make_copy(target, topic, kept=False)
        fill(source, topic, 10)
        with pytest.raises(KafkaError, match="there is more than one batch of records"):
            copied(plan(source, target, topic), topic, 10, kept=True)
        assert rows(target, topic) == []


class TestTranslated:
    def test_the_mark_is_committed_with_the_records(self, source: Broker, target: Broker) -> None:
        topic = fresh()
        source.create_topic(topic)
        make_copy(target, topic, kept=False)
        fill(target, topic, 4)
        fill(source, topic, 100)
        made = plan(source, target, topic)
        copied(made, topic, 100, kept=False)
        mark = mark_of(made, topic)
        assert mark.position == 100
        assert [mark.offsets.translate(at) for at in (0, 50, 100)] == [4, 54, 104]

    def test_a_partition_goes_on_where_the_mark_says_whatever_the_plan_starts_with(
        self, source: Broker, target: Broker
    ) -> None:
        topic = fresh()
        source.create_topic(topic)
        make_copy(target, topic, kept=False)
        fill(source, topic, 100)
        made = plan(source, target, topic)
        copied(made, topic, 100, kept=False)
        fill(source, topic, 10, first=100)
        assert copied(made, topic, 110, kept=False, start=105).records == 10

    def test_who_comes_later_fences_who_was_first(self, source: Broker, target: Broker) -> None:
        topic = fresh()
        source.create_topic(topic)
        make_copy(target, topic, kept=False)
        made = plan(source, target, topic)
        with MirrorLinks(made) as zombie:
            fill(source, topic, 10)
            copy([Work(topic, 0, 10, topic, False)], zombie)
            fill(source, topic, 10, first=10)
            assert copied(made, topic, 20, kept=False).records == 10
            fill(source, topic, 10, first=20)
            # What it began is refused; the next try takes the id over again.
            with contextlib.suppress(ProducerFenced):
                copy([Work(topic, 0, 30, topic, False)], zombie)
            copy([Work(topic, 0, 30, topic, False)], zombie)
        assert contents(rows(target, topic)) == contents(rows(source, topic))

    def test_a_source_that_was_made_again_is_not_mixed_into_the_copy(
        self, source: Broker, target: Broker
    ) -> None:
        topic = fresh()
        source.create_topic(topic)
        make_copy(target, topic, kept=False)
        fill(source, topic, 100)
        made = plan(source, target, topic)
        copied(made, topic, 100, kept=False)
        with Admin(settings(source)) as admin:
            admin.delete_topics([topic]).check()
            admin.create_topic(topic, 1, 1)
        fill(source, topic, 5)
        with pytest.raises(TopicEnded, match="copied up to offset 100, but the log ends at offset 5 now"):
            copied(made, topic, 120, kept=False)


@pytest.fixture
def shaky() -> Iterator[tuple[FaultyBroker, FaultyBroker]]:
    """A source and a target behind fault proxies."""
    with ExitStack() as stack:
        yield stack.enter_context(faulty_broker()), stack.enter_context(faulty_broker())


FAST = {
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 50,
    "retry_backoff_ms": 10,
    "request_timeout_ms": 2_000,
}


def shaky_plan(shaky: tuple[FaultyBroker, FaultyBroker], topic: str) -> MirrorPlan:
    made = plan(shaky[0].bootstrap_servers, shaky[1].bootstrap_servers, topic)
    more = {name.replace("_", "."): str(value) for name, value in FAST.items()}
    return replace(
        made,
        source={**made.source, **more},
        target={**made.target, **more, "delivery.timeout.ms": "8000"},
        transaction_bytes=20_000,
        timeout_ms=15_000,
    )


@pytest.mark.slow
@pytest.mark.parametrize("kept", WAYS)
class TestBroken:
    def test_connections_that_break_all_the_time(
        self, shaky: tuple[FaultyBroker, FaultyBroker], kept: bool
    ) -> None:
        source, target = shaky
        topic = fresh()
        source.broker.create_topic(topic)
        make_copy(target.direct, topic, kept=kept)
        made = shaky_plan(shaky, topic)
        chance = random.Random(7)
        total = 0
        for _ in range(4):
            fill(source.direct, topic, 2_000, first=total, batch_size=3_000)
            total += 2_000
            source.proxy.cut_after(chance.randrange(150_000, 300_000))
            target.proxy.cut_after(chance.randrange(150_000, 300_000), reset=True)
            _copy_until(made, topic, total, kept)
            source.proxy.heal()
            target.proxy.heal()
        assert contents(rows(target.direct, topic)) == contents(rows(source.direct, topic))

    def test_brokers_that_restart_meanwhile(
        self, shaky: tuple[FaultyBroker, FaultyBroker], kept: bool
    ) -> None:
        source, target = shaky
        topic = fresh()
        source.broker.create_topic(topic)
        make_copy(target.direct, topic, kept=kept)
        made = shaky_plan(shaky, topic)
        fill(source.direct, topic, 20_000, batch_size=3_000)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(_copy_until, made, topic, 20_000, kept)
            target.restart()
            source.restart()
            running.result()
        assert contents(rows(target.direct, topic)) == contents(rows(source.direct, topic))

    def test_answers_that_never_come(self, shaky: tuple[FaultyBroker, FaultyBroker], kept: bool) -> None:
        source, target = shaky
        topic = fresh()
        source.broker.create_topic(topic)
        make_copy(target.direct, topic, kept=kept)
        made = shaky_plan(shaky, topic)
        fill(source.direct, topic, 5_000, batch_size=3_000)
        with MirrorLinks(made) as links:
            copy([Work(topic, 0, 100, topic, kept)], links)
            target.proxy.stall(answers_only=True)
            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(copy, [Work(topic, 0, 5_000, topic, kept)], links)
                threading.Event().wait(0.3)  # requests arrive, answers do not
                target.proxy.cut()
                target.proxy.resume()
                running.result()
        assert contents(rows(target.direct, topic)) == contents(rows(source.direct, topic))


LOSSES = [
    *((True, api) for api in (ApiKey.LIST_OFFSETS, ApiKey.PRODUCE)),
    *(
        (False, api)
        for api in (
            ApiKey.INIT_PRODUCER_ID,
            ApiKey.OFFSET_FETCH,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            ApiKey.PRODUCE,
            ApiKey.ADD_OFFSETS_TO_TXN,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.END_TXN,
        )
    ),
]


@pytest.fixture(scope="module", params=[1, 2], ids=["txn-v1", "txn-v2"])
def lossy(request: pytest.FixtureRequest) -> Iterator[FaultyBroker]:
    with faulty_broker({"barnabas.transaction.version": str(request.param)}) as broker:
        yield broker


class TestLostAnswers:
    """The target does what it was asked to, and nobody hears of it."""

    @pytest.mark.parametrize(
        ("kept", "api"), LOSSES, ids=lambda each: each.name if isinstance(each, ApiKey) else str(each)
    )
    def test_one_of_any_kind(self, source: Broker, lossy: FaultyBroker, kept: bool, api: ApiKey) -> None:
        topic = fresh()
        source.create_topic(topic)
        make_copy(lossy.direct, topic, kept=kept)
        fill(source, topic, 400, batch_size=2_000)
        made = replace(
            plan(source, lossy.bootstrap_servers, topic), transaction_bytes=5_000, timeout_ms=10_000
        )
        lossy.proxy.lose_answers(api, times=1)
        try:
            done = copied(made, topic, 400, kept=kept)
        finally:
            lossy.proxy.heal()
        assert done.end == 400
        assert contents(rows(lossy.direct, topic)) == contents(rows(source, topic))

    def test_a_commit_that_is_never_answered_is_found_by_the_next_attempt(
        self, source: Broker, lossy: FaultyBroker
    ) -> None:
        topic = fresh()
        source.create_topic(topic)
        make_copy(lossy.direct, topic, kept=False)
        fill(source, topic, 100)
        made = plan(source, lossy.bootstrap_servers, topic)
        impatient = replace(made, target={**made.target, "max.block.ms": "300"})
        lossy.proxy.lose_answers(ApiKey.END_TXN)
        try:
            assert copied(impatient, topic, 100, kept=False).end == 100
        finally:
            lossy.proxy.heal()
        assert contents(rows(lossy.direct, topic)) == contents(rows(source, topic))


def _copy_until(made: MirrorPlan, topic: str, end: int, kept: bool) -> None:
    """As Spark does: whatever fails is tried again."""
    for _ in range(50):
        try:
            if copied(made, topic, end, kept=kept).end >= end:
                return
        except KafkaError:
            continue
    raise AssertionError(f"{topic} never got to {end}")


def test_idle_producers_make_room() -> None:
    """More partitions than producers are kept: the oldest goes, and may come back."""
    with Broker() as source, Broker() as target:
        topic = fresh()
        source.create_topic(topic, 40)
        make_copy(target, topic, kept=False, partitions=40)
        with Producer(settings(source)) as producer:
            for number in range(40):
                producer.send(topic, b"x", partition=number)
        with MirrorLinks(plan(source, target, topic)) as links:
            for _ in range(2):
                done = copy([Work(topic, number, 1, topic, False) for number in range(40)], links)
                assert [each.end for each in done] == [1] * 40
