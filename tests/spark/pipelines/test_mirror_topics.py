"""barnabas.spark.pipelines.mirror_topics: the target's topics follow the source's (M1-M3)."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from barnabas.base.types import TopicPartition, uuid_text
from barnabas.client.admin import Admin
from barnabas.client.admin_types import ConfigResource, ConfigSource
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.mirror_marks import KEPT_NOTE, kept_note
from barnabas.spark.pipelines.mirror_settings import MirrorPlan
from barnabas.spark.pipelines.mirror_topics import KEPT, MirrorTopics, Way, config_changes
from barnabas.testing import Broker
from tests.spark.pipelines._mirror import fill, fresh, plan, settings


class Pair:
    """The admins of two clusters."""

    def __init__(self, source: Admin, target: Admin, made: MirrorPlan) -> None:
        self.source, self.target, self.plan = source, target, made

    def refreshed(self, **changes: object) -> MirrorTopics:
        topics = MirrorTopics(replace(self.plan, **changes), self.source, self.target)  # type: ignore[arg-type]  # by name
        topics.refresh()
        return topics

    def set_at_target(self, topic: str) -> dict[str, str | None]:
        resource = ConfigResource.topic(topic)
        found = self.target.describe_configs([resource])[resource]
        return {
            entry.name: entry.value for entry in found.values() if entry.source is ConfigSource.DYNAMIC_TOPIC
        }

    def source_id(self, topic: str) -> str:
        return uuid_text(self.source.describe_topic(topic).id)


@pytest.fixture
def stem() -> str:
    return fresh("m")


@pytest.fixture
def pair(source: Broker, target: Broker, stem: str) -> Iterator[Pair]:
    with Admin(settings(source)) as one, Admin(settings(target)) as other:
        yield Pair(one, other, plan(source, target, f"{stem}-.*"))


class TestNew:
    def test_it_is_made_with_partitions_settings_and_kept_offsets(self, pair: Pair, stem: str) -> None:
        configs = {"retention.ms": "77", "cleanup.policy": "compact", "min.insync.replicas": "1"}
        pair.source.create_topic(f"{stem}-a", 3, 1, configs=configs)
        pair.source.create_topic("unrelated" + stem, 1, 1)
        found = pair.refreshed().topics
        assert [(t.name, t.target, t.partitions, t.way) for t in found.values()] == [
            (f"{stem}-a", f"{stem}-a", 3, Way.KEPT)
        ]
        assert pair.set_at_target(f"{stem}-a") == {
            "retention.ms": "77",
            "cleanup.policy": "compact",
            KEPT: "true",
        }
        tps = [TopicPartition(f"{stem}-a", number) for number in range(3)]
        marks = pair.target.list_group_offsets(pair.plan.group, tps)
        assert [mark and mark.metadata for mark in marks.values()] == [
            kept_note(pair.source_id(f"{stem}-a"))
        ] * 3

    def test_names_get_the_prefix(self, pair: Pair, stem: str) -> None:
        pair.source.create_topic(f"{stem}-a", 1, 1)
        assert pair.refreshed(prefix="east.").topics[f"{stem}-a"].target == f"east.{stem}-a"
        assert pair.target.describe_topic(f"east.{stem}-a").name == f"east.{stem}-a"

    def test_offsets_are_not_kept_when_not_wanted(self, pair: Pair, stem: str) -> None:
        pair.source.create_topic(f"{stem}-a", 1, 1)
        assert pair.refreshed(offsets="translated").topics[f"{stem}-a"].way is Way.TRANSLATED
        assert pair.set_at_target(f"{stem}-a") == {}

    def test_it_may_begin_at_the_end(self, source: Broker, pair: Pair, stem: str) -> None:
        pair.source.create_topic(f"{stem}-a", 1, 1)
        fill(source, f"{stem}-a", 30)
        pair.refreshed(start="latest")
        tp = TopicPartition(f"{stem}-a", 0)
        mark = pair.target.list_group_offsets(pair.plan.group, [tp])[tp]
        assert mark is not None
        assert mark.offset == 30

    def test_it_is_found_while_running(self, pair: Pair, stem: str) -> None:
        topics = pair.refreshed()
        assert topics.topics == {}
        pair.source.create_topic(f"{stem}-late", 1, 1)
        topics.refresh()
        assert list(topics.topics) == [f"{stem}-late"]
        pair.source.delete_topics([f"{stem}-late"]).check()
        topics.refresh()
        assert topics.topics == {}
        assert pair.target.describe_topic(f"{stem}-late")  # a copy is never deleted


class TestThere:
    def test_partitions_and_settings_follow(self, pair: Pair, stem: str) -> None:
        name = f"{stem}-a"
        pair.source.create_topic(name, 1, 1, configs={"retention.ms": "77", "segment.ms": "5000"})
        topics = pair.refreshed()
        pair.source.create_partitions({name: 4}).check()
        pair.source.alter_configs(
            {ConfigResource.topic(name): {"retention.ms": "88", "segment.ms": None, "flush.ms": "9"}}
        ).check()
        topics.refresh()
        assert topics.topics[name].partitions == 4
        assert len(pair.target.describe_topic(name).partitions) == 4
        assert pair.set_at_target(name) == {"retention.ms": "88", "flush.ms": "9", KEPT: "true"}

    def test_an_empty_topic_keeps_offsets_a_full_one_does_not(
        self, target: Broker, pair: Pair, stem: str
    ) -> None:
        for name in (f"{stem}-empty", f"{stem}-full"):
            pair.source.create_topic(name, 1, 1)
            pair.target.create_topic(name, 1, 1)
        fill(target, f"{stem}-full", 1)
        found = pair.refreshed().topics
        assert found[f"{stem}-empty"].way is Way.KEPT
        assert found[f"{stem}-full"].way is Way.TRANSLATED
        with pytest.raises(PipelineError, match="has records of its own and cannot keep offsets"):
            pair.refreshed(offsets="kept")

    def test_a_promoted_topic_is_left_alone(self, pair: Pair, stem: str) -> None:
        name = f"{stem}-a"
        pair.source.create_topic(name, 1, 1)
        topics = pair.refreshed()
        assert topics.topics[name].way is Way.KEPT
        pair.target.alter_configs({ConfigResource.topic(name): {KEPT: "false"}}).check()
        pair.source.create_partitions({name: 2}).check()
        for looking in (topics, pair.refreshed()):
            looking.refresh()
            assert looking.topics[name].way is Way.PROMOTED
        assert len(pair.target.describe_topic(name).partitions) == 1

    def test_a_note_that_is_missing_is_written(self, pair: Pair, stem: str) -> None:
        name = f"{stem}-a"
        pair.source.create_topic(name, 1, 1)
        pair.target.create_topic(name, 1, 1, configs={KEPT: "true"})
        pair.refreshed()
        tp = TopicPartition(name, 0)
        mark = pair.target.list_group_offsets(pair.plan.group, [tp])[tp]
        assert mark is not None
        assert (mark.offset, mark.metadata) == (0, kept_note(pair.source_id(name)))

    def test_a_note_without_an_id_gets_one_and_another_id_stays(self, pair: Pair, stem: str) -> None:
        name = f"{stem}-a"
        tp = TopicPartition(name, 0)
        pair.source.create_topic(name, 1, 1)
        pair.refreshed()
        for note, expected in ((KEPT_NOTE, kept_note(pair.source_id(name))), ("kept#other", "kept#other")):
            pair.target.alter_group_offsets(pair.plan.group, {tp: OffsetAndMetadata(0, note)}).check()
            pair.refreshed()
            mark = pair.target.list_group_offsets(pair.plan.group, [tp])[tp]
            assert mark is not None
            assert mark.metadata == expected

    def test_a_topic_that_keeps_offsets_cannot_be_translated(self, pair: Pair, stem: str) -> None:
        pair.source.create_topic(f"{stem}-a", 1, 1)
        pair.refreshed()
        with pytest.raises(PipelineError, match=r"keeps offsets; set barnabas\.offsets\.kept=false"):
            pair.refreshed(offsets="translated")

    def test_a_setting_that_the_target_refuses_is_told_and_the_rest_is_set(
        self, pair: Pair, stem: str
    ) -> None:
        topics = pair.refreshed()
        pair.target.create_topic(f"{stem}-a", 1, 1)
        assert not topics._alter(f"{stem}-a", {"no.such.setting": "1", "retention.ms": "5"})
        assert "no.such.setting" in topics.warnings[f"{stem}-a"]
        assert pair.set_at_target(f"{stem}-a") == {"retention.ms": "5"}


def test_what_belongs_to_a_cluster_is_not_copied() -> None:
    source = {"retention.ms": "1", "min.insync.replicas": "2", "barnabas.offsets.kept": "true"}
    target = {
        "retention.ms": "2",
        "segment.ms": "3",
        "min.insync.replicas": "1",
        "barnabas.offsets.kept": "false",
    }
    assert config_changes(source, target) == {"retention.ms": "1", "segment.ms": None}
    assert config_changes(source, {"retention.ms": "1"}) == {}
