"""What all calls share: items asked again when that can help, errors kept apart, deadlines kept."""

import asyncio
from collections.abc import Mapping

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.admin_base import AdminBase, by_topic
from barnabas.client.errors import ClusterAuthorization, ConnectionLost, KafkaError, UnknownTopic, error_for
from barnabas.protocol.codes import ErrorCode
from tests.client._fake import FakeBroker
from tests.client._kit import settings_for
from tests.net._kit import run


class Asked:
    """Answers items from a script: the first answer the first time, and so on."""

    def __init__(self, script: Mapping[str, list[int | KafkaError]]) -> None:
        self.script = script
        self.asked: list[list[str]] = []

    async def __call__(self, items: list[str]) -> Mapping[str, int | KafkaError]:
        self.asked.append(items)
        return {item: self.script[item].pop(0) for item in items}


class TestEachItem:
    def test_only_what_another_try_can_help_is_asked_again(self) -> None:
        async def main() -> None:
            moved = error_for(ErrorCode.NOT_CONTROLLER)
            missing = UnknownTopic("missing")
            asked = Asked({"a": [1], "b": [moved, moved, 2], "c": [missing], "d": [moved, missing]})
            async with FakeBroker() as broker, AdminBase(settings_for(broker.address)) as admin:
                results = await admin._each("abcda", asked, None)
            assert asked.asked == [["a", "b", "c", "d"], ["b", "d"], ["b"]]
            assert results.succeeded == {"a": 1, "b": 2}
            assert results.errors == {"c": missing, "d": missing}
            assert list(results) == ["a", "b", "c", "d"]

        run(main())

    def test_the_last_error_stays_when_the_time_is_up(self) -> None:
        async def main() -> None:
            asked = Asked({"a": [error_for(ErrorCode.NOT_CONTROLLER)] * 1000})
            async with FakeBroker() as broker, AdminBase(settings_for(broker.address)) as admin:
                results = await admin._each(["a"], asked, 30)
            assert results.errors["a"].code is ErrorCode.NOT_CONTROLLER

        run(main())

    def test_what_fails_for_the_whole_call_raises(self) -> None:
        async def main() -> None:
            errors: list[KafkaError] = [ConnectionLost("gone"), ClusterAuthorization("no")]

            async def ask(items: list[str]) -> Mapping[str, int]:
                raise errors.pop(0)

            async with FakeBroker() as broker, AdminBase(settings_for(broker.address)) as admin:
                with pytest.raises(ClusterAuthorization):
                    await admin._each(["a"], ask, None)

        run(main())


class TestEachPartition:
    def test_a_broker_that_fails_fails_only_its_own_partitions(self, bootstrap: str, topic: str) -> None:
        async def main() -> None:
            where, missing = TopicPartition(topic, 0), TopicPartition(f"{topic}-missing", 0)

            async def ask(node: int, items: list[TopicPartition]) -> Mapping[TopicPartition, int]:
                raise UnknownTopic("no")

            async with AdminBase(settings_for(bootstrap)) as admin:
                await admin._cluster.topic(topic, timeout_ms=10_000, create=True)
                results = await admin._each_partition([where, missing], ask, None)
            assert str(results.errors[where]) == "no"
            assert f"topic '{topic}-missing'" in str(results.errors[missing])

        run(main())

    def test_a_partition_that_the_broker_leaves_out_is_an_error(self, bootstrap: str, topic: str) -> None:
        async def main() -> None:
            async def ask(node: int, items: list[TopicPartition]) -> Mapping[TopicPartition, int]:
                await asyncio.sleep(0)
                return {}

            async with AdminBase(settings_for(bootstrap)) as admin:
                await admin._cluster.topic(topic, timeout_ms=10_000, create=True)
                results = await admin._each_partition([TopicPartition(topic, 0)], ask, None)
            assert "left it out of its answer" in str(results.errors[TopicPartition(topic, 0)])

        run(main())


def test_partitions_are_grouped_by_topic_in_order() -> None:
    partitions = [TopicPartition("b", 1), TopicPartition("a", 0), TopicPartition("b", 0)]
    assert by_topic(partitions) == {"b": [1, 0], "a": [0]}
