"""barnabas.broker.replicas: a log for every partition that the image places here, and no other (R1, R2)."""

import shutil
from pathlib import Path

from barnabas.base.types import TopicPartition
from barnabas.controller.topics import NewTopic, delete_topic
from barnabas.metadata.image import ConfigResourceType
from barnabas.records.builder import build_batch
from tests.broker._parts import open_log_parts, open_parts, run

DELETED = "-delete"


def folders(data: Path) -> set[str]:
    return {each.name for each in data.iterdir() if each.is_dir()}


class TestFollowingTheImage:
    def test_new_topics_and_partitions_are_led_at_once(self, folder: Path) -> None:
        async def main() -> None:
            async with open_log_parts(folder) as parts:
                await parts.topics.create(NewTopic("t", 2))
                await parts.topics.add_partitions("t", 3, None, validate_only=False)
                assert [p.topic_partition for p in parts.led] == [("t", 0), ("t", 1), ("t", 2)]
                assert {p.leader_epoch for p in parts.led} == {0}
                assert {p.topic_id for p in parts.led} == {parts.cluster.image.topics["t"].id}
                assert {"t-0", "t-1", "t-2"} <= folders(folder)

        run(main())

    def test_many_partitions_leave_other_work_its_turn(self, folder: Path) -> None:
        async def main() -> None:
            async with open_log_parts(folder) as parts:
                await parts.topics.create(NewTopic("t", 60))
                assert len(parts.partitions) == 60

        run(main())

    def test_a_deleted_topic_goes_from_the_table_and_then_from_the_disk(self, folder: Path) -> None:
        async def main() -> None:
            async with open_log_parts(folder) as parts:
                await parts.topics.create(NewTopic("t"))
                (partition,) = parts.partitions
                await parts.topics.delete("t")
                assert parts.gone == [partition]
                assert partition.state is None
                assert parts.moved[-1] == TopicPartition("t", 0), "who waits is woken"
                assert "t-0" not in folders(folder)
                assert any(name.endswith(DELETED) for name in folders(folder))
                parts.clock.advance(60_000)
                parts.directories.purge()
                assert not any(name.endswith(DELETED) for name in folders(folder))

        run(main())

    def test_changed_settings_reach_the_logs(self, folder: Path) -> None:
        async def main() -> None:
            async with open_log_parts(folder) as parts:
                await parts.topics.create(NewTopic("own", config={"retention.ms": "5"}))
                await parts.topics.create(NewTopic("plain", 2))

                def retention(topic: str) -> set[int]:
                    return {p.log.config.retention_ms for p in parts.partitions.of_topic(topic)}

                assert retention("own") == {5}
                await parts.configs.replace(
                    ConfigResourceType.BROKER, "", {"log.retention.ms": "7"}, validate_only=False
                )
                assert (retention("own"), retention("plain")) == ({5}, {7})
                await parts.configs.replace(
                    ConfigResourceType.BROKER, "1", {"log.retention.ms": "8"}, validate_only=False
                )
                assert (retention("own"), retention("plain")) == ({5}, {8})
                await parts.configs.replace(ConfigResourceType.TOPIC, "own", {}, validate_only=False)
                assert retention("own") == {8}

        run(main())


class TestStarting:
    def test_logs_are_found_again_and_led_in_the_next_epoch(self, folder: Path) -> None:
        async def main() -> None:
            async with open_log_parts(folder) as parts:
                await parts.topics.create(NewTopic("t"))
                (partition,) = parts.partitions
                batch = memoryview(build_batch([(1, None, b"x", ())]))
                partition.append(batch, acks_all=True, now_ms=1)
            async with open_log_parts(folder) as parts:
                (partition,) = parts.partitions
                assert (partition.leader_epoch, partition.high_watermark) == (1, 1)

        run(main())

    def test_logs_of_topics_that_are_gone_go(self, folder: Path) -> None:
        async def main() -> None:
            async with open_log_parts(folder) as parts:
                await parts.topics.create(NewTopic("gone"))
                await parts.topics.create(NewTopic("stays"))
            async with open_parts(folder) as parts:
                await parts.cluster.commit(lambda image: delete_topic(image, "gone"))
            async with open_log_parts(folder) as parts:
                assert [p.topic_partition for p in parts.partitions] == [("stays", 0)]
                parts.directories.purge()
                assert not any(name.startswith("gone") for name in folders(folder))

        run(main())

    def test_a_log_of_an_earlier_topic_of_the_same_name_goes_too(self, folder: Path) -> None:
        async def main() -> None:
            async with open_log_parts(folder) as parts:
                await parts.topics.create(NewTopic("t"))
                partition = parts.partitions.get("t", 0)
                assert partition is not None
                batch = memoryview(build_batch([(1, None, b"old", ())]))
                partition.append(batch, acks_all=True, now_ms=1)
                old_id = partition.topic_id
            async with open_parts(folder) as parts:
                await parts.cluster.commit(lambda image: delete_topic(image, "t"))
                await parts.topics.create(NewTopic("t"))
                assert parts.cluster.image.topics["t"].id != old_id
            async with open_log_parts(folder) as parts:
                partition = parts.partitions.get("t", 0)
                assert partition is not None
                assert (partition.log.log_end_offset, partition.topic_id != old_id) == (0, True)

        run(main())

    def test_a_lost_log_is_made_anew(self, folder: Path) -> None:
        async def main() -> None:
            async with open_log_parts(folder) as parts:
                await parts.topics.create(NewTopic("t"))
            shutil.rmtree(folder / "t-0")
            async with open_log_parts(folder) as parts:
                (partition,) = parts.partitions
                assert partition.log.log_end_offset == 0

        run(main())
