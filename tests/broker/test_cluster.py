"""barnabas.broker.cluster: the image, the tree behind it, and the one way to change both (C1, C2)."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from barnabas.broker.cluster import Cluster, load_image
from barnabas.controller.changes import Change, CommandRefused
from barnabas.controller.topics import NewTopic
from barnabas.metadata.deltas import Delta, DeltaRefused, TopicCreated
from barnabas.metadata.image import ClusterImage, ConfigResourceType
from barnabas.store import paths
from barnabas.store.embedded import open_embedded
from barnabas.store.errors import DocumentFault, NodeExists
from barnabas.store.tree import Create
from tests.broker._parts import open_parts, run


class TestLoading:
    def test_a_new_tree_gets_its_fixed_nodes_and_a_cluster_id(self, folder: Path) -> None:
        async def main() -> None:
            store = await open_embedded(str(folder / "db"))
            image = await load_image(store, new_cluster_id=lambda: "fresh")
            assert (image.cluster_id, dict(image.topics)) == ("fresh", {})
            for path in paths.PERSISTENT_PATHS:
                assert await store.exists(path) is not None
            again = await load_image(store, new_cluster_id=lambda: "other")
            assert again.cluster_id == "fresh"
            await store.close()

        run(main())

    def test_the_image_is_what_was_committed(self, folder: Path) -> None:
        async def main() -> None:
            async with open_parts(folder) as parts:
                await parts.topics.create(NewTopic("t", 3, config={"retention.ms": "5"}))
                await parts.topics.create(NewTopic("u"))
                await parts.configs.replace(
                    ConfigResourceType.BROKER, "", {"message.max.bytes": "9"}, validate_only=False
                )
                before = parts.cluster.image
                loaded = await load_image(parts.store, new_cluster_id=lambda: "no")
            assert loaded.topics == before.topics
            assert loaded.config(ConfigResourceType.TOPIC, "t") == {"retention.ms": "5"}
            assert loaded.config(ConfigResourceType.BROKER, "") == {"message.max.bytes": "9"}
            assert loaded.controller_epoch == before.controller_epoch

        run(main())

    def test_brokers_are_not_remembered_for_they_say_themselves_that_they_are_up(self, folder: Path) -> None:
        async def main() -> None:
            async with open_parts(folder):
                pass
            store = await open_embedded(str(folder / "metadata.db"))
            assert dict((await load_image(store, new_cluster_id=lambda: "no")).brokers) == {}
            await store.close()

        run(main())

    def test_a_topic_without_an_id_is_not_ours(self, folder: Path) -> None:
        async def main() -> None:
            store = await open_embedded(str(folder / "db"))
            await load_image(store, new_cluster_id=lambda: "c")
            await store.create(paths.topic("old"), b'{"version":1,"partitions":{"0":[1]}}')
            with pytest.raises(DocumentFault, match=r"^/brokers/topics/old: the topic has no id$"):
                await load_image(store, new_cluster_id=lambda: "c")
            await store.close()

        run(main())


class TestCommitting:
    def test_a_refused_change_changes_nothing(self, folder: Path) -> None:
        async def main() -> None:
            async with open_parts(folder) as parts:
                before = parts.cluster.image

                def refuse(image: ClusterImage) -> Change:
                    raise CommandRefused("no")

                with pytest.raises(CommandRefused):
                    await parts.cluster.commit(refuse)
                assert parts.cluster.image is before

        run(main())

    def test_an_image_never_shows_what_the_tree_refused(self, folder: Path) -> None:
        async def main() -> None:
            async with open_parts(folder) as parts:
                before = parts.cluster.image
                heard: list[object] = []

                async def hear(image: ClusterImage, deltas: Sequence[Delta]) -> None:
                    heard.append(deltas)

                parts.cluster.follow(hear)
                with pytest.raises(NodeExists):
                    await parts.cluster.commit(lambda _: Change((Create("/brokers"),), ()))
                assert parts.cluster.image is before
                assert heard == []

        run(main())

    def test_the_tree_is_not_asked_for_what_the_image_cannot_take(self, folder: Path) -> None:
        async def main() -> None:
            async with open_parts(folder) as parts:
                topic = await parts.topics.create(NewTopic("t"))
                with pytest.raises(DeltaRefused):
                    await parts.cluster.commit(
                        lambda _: Change((Create("/brokers/seqid/x"),), (TopicCreated(topic),))
                    )
                assert await parts.store.exists("/brokers/seqid/x") is None

        run(main())

    def test_followers_hear_of_every_change_in_order_before_it_returns(self, folder: Path) -> None:
        async def main() -> None:
            async with open_parts(folder) as parts:
                heard: list[str] = []

                async def hear(image: ClusterImage, deltas: Sequence[Delta]) -> None:
                    await asyncio.sleep(0)
                    heard.extend(delta.topic.name for delta in deltas if isinstance(delta, TopicCreated))
                    assert image is parts.cluster.image

                parts.cluster.follow(hear)
                await asyncio.gather(*(parts.topics.create(NewTopic(f"t{n}")) for n in range(5)))
                assert heard == [f"t{n}" for n in range(5)]

        run(main())

    def test_each_change_is_decided_on_what_the_one_before_left(self, folder: Path) -> None:
        async def main() -> None:
            async with open_parts(folder) as parts:
                results = await asyncio.gather(
                    *(parts.topics.create(NewTopic("same")) for _ in range(4)), return_exceptions=True
                )
                assert sum(isinstance(result, Exception) for result in results) == 3

        run(main())


def test_a_cluster_begins_with_the_image_it_is_given(folder: Path) -> None:
    async def main() -> None:
        store = await open_embedded(str(folder / "db"))
        image = ClusterImage()
        assert Cluster(store, image).image is image
        await store.close()

    run(main())
