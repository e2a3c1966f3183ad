"""barnabas.spark.pipelines.mirror_groups: groups follow, never skip, never go back (G1, G2)."""

from collections.abc import Iterator

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.consumer import Consumer
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.spark.pipelines.mirror import run_here
from barnabas.spark.pipelines.mirror_groups import moves
from barnabas.spark.pipelines.mirror_marks import Mark
from barnabas.spark.pipelines.mirror_offsets import OffsetMap, Span
from barnabas.testing import Broker
from tests.spark.pipelines._mirror import fill, fresh, plan, rows, settings, transact

A, B, C = (TopicPartition(name, 0) for name in "abc")


def test_offsets_are_kept_bounded_by_what_is_there_or_translated() -> None:
    committed = {A: OffsetAndMetadata(70, "note"), B: OffsetAndMetadata(70), C: OffsetAndMetadata(70)}
    copies = {tp: TopicPartition("x." + tp.topic, 0) for tp in (A, B, C)}
    marks = {copies[C]: Mark(100, OffsetMap([Span(0, 5, 100)]))}
    assert moves(committed, copies, {copies[A]: 100, copies[B]: 60}, marks) == {
        copies[A]: OffsetAndMetadata(70, "note"),
        copies[B]: OffsetAndMetadata(60),
        copies[C]: OffsetAndMetadata(75),
    }
    assert moves(committed, copies, {}, {}) == {}


@pytest.fixture
def admins(source: Broker, target: Broker) -> Iterator[tuple[Admin, Admin]]:
    with Admin(settings(source)) as one, Admin(settings(target)) as other:
        yield one, other


@pytest.mark.parametrize("offsets", ["auto", "translated"])
class TestFollowing:
    def test_a_reader_that_moves_reads_what_it_has_not_read_and_nothing_is_skipped(
        self, source: Broker, target: Broker, admins: tuple[Admin, Admin], offsets: str
    ) -> None:
        topic, group = fresh(), fresh("group")
        tp = TopicPartition(topic, 0)
        source.create_topic(topic)
        made = plan(source, target, topic, offsets=offsets)
        for round_ in range(3):
            fill(source, topic, 20, first=100 * round_)
            transact(source, topic, [b"no"], commit=False)
            transact(source, topic, [b"t%d" % round_], commit=True)
            run_here(made, once=True)
        read = rows(source, topic)
        for at in (0, 5, 21, 22, 30, 45, 50, len(read) - 1):
            stands = read[at].offset
            admins[0].alter_group_offsets(group, {tp: stands}).check()
            if admins[1].list_groups():
                admins[1].delete_groups([group])
            run_here(made, once=True)
            moved = admins[1].list_group_offsets(group, [tp])[tp]
            assert moved is not None
            left = [row.value for row in rows(target, topic) if row.offset >= moved.offset]
            assert left == [row.value for row in read[at:]]

    def test_it_only_goes_forward_and_not_under_a_reader(
        self, source: Broker, target: Broker, admins: tuple[Admin, Admin], offsets: str
    ) -> None:
        topic, group = fresh(), fresh("group")
        tp = TopicPartition(topic, 0)
        source.create_topic(topic)
        fill(source, topic, 20)
        made = plan(source, target, topic, offsets=offsets)
        admins[0].alter_group_offsets(group, {tp: 10}).check()
        run_here(made, once=True)
        admins[1].alter_group_offsets(group, {tp: 15}).check()
        run_here(made, once=True)
        assert offset_of(admins[1], group, tp) == 15
        reader = {"group.id": group, "enable.auto.commit": False}
        with Consumer({**settings(target), **reader}) as consumer:
            consumer.subscribe([topic])
            while not consumer.assignment():
                consumer.poll(0.1)
            admins[0].alter_group_offsets(group, {tp: 20}).check()
            run_here(made, once=True)
            assert offset_of(admins[1], group, tp) == 15
        run_here(made, once=True)
        assert offset_of(admins[1], group, tp) == 20

    def test_only_groups_that_are_meant_follow(
        self, source: Broker, target: Broker, admins: tuple[Admin, Admin], offsets: str
    ) -> None:
        topic, stem = fresh(), fresh("group")
        tp = TopicPartition(topic, 0)
        source.create_topic(topic)
        fill(source, topic, 5)
        from barnabas.spark.pipelines.mirror_settings import names_of

        for name in (f"{stem}-yes", f"{stem}-no", f"mirror:{stem}"):
            admins[0].alter_group_offsets(name, {tp: 3}).check()
        groups = names_of([".*"], [f"{stem}-no"])
        run_here(plan(source, target, topic, offsets=offsets, groups=groups), once=True)
        there = {listed.id for listed in admins[1].list_groups()}
        assert f"{stem}-yes" in there
        assert not there & {f"{stem}-no", f"mirror:{stem}"}


def offset_of(admin: Admin, group: str, tp: TopicPartition) -> int:
    found = admin.list_group_offsets(group, [tp])[tp]
    assert found is not None
    return found.offset
