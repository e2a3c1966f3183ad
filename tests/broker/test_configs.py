"""barnabas.broker.configs: which value holds and why (L1, L2)."""

from pathlib import Path

import pytest

from barnabas.base.errors import BarnabasError, ConfigFault
from barnabas.broker.config import BROKER
from barnabas.broker.configs import ConfigAdmin, ConfigEntry, ConfigOperation, ConfigSource
from barnabas.controller.changes import CommandRefused, UnknownTopic
from barnabas.controller.topics import NewTopic
from barnabas.log.config import TOPIC
from barnabas.metadata.image import ConfigResourceType
from barnabas.metadata.names import InvalidTopicName
from tests.broker._parts import open_parts, run

OF_TOPIC, OF_BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER


def entry(configs: ConfigAdmin, kind: ConfigResourceType, name: str, setting: str) -> ConfigEntry:
    (found,) = configs.describe(kind, name, [setting])
    return found


async def put(configs: ConfigAdmin, kind: ConfigResourceType, name: str, setting: str, value: str) -> None:
    await configs.alter(kind, name, {setting: (ConfigOperation.SET, value)}, validate_only=False)


def test_topic_over_broker_over_all_brokers_over_file_over_default(folder: Path) -> None:
    async def main() -> None:
        async with open_parts(folder, {"log.segment.bytes": "2000000"}) as parts:
            configs = parts.configs
            await parts.topics.create(NewTopic("t"))
            steps = [(str(2_000_000), ConfigSource.STATIC_BROKER)]
            for kind, name, setting, value, source in (
                (OF_BROKER, "", "log.segment.bytes", "3000000", ConfigSource.DYNAMIC_DEFAULT_BROKER),
                (OF_BROKER, "1", "log.segment.bytes", "4000000", ConfigSource.DYNAMIC_BROKER),
                (OF_TOPIC, "t", "segment.bytes", "5000000", ConfigSource.TOPIC),
            ):
                await put(configs, kind, name, setting, value)
                steps.append((value, source))
                found = entry(configs, OF_TOPIC, "t", "segment.bytes")
                assert (found.value, found.source) == (value, source)
                assert configs.topic_config("t").segment_bytes == int(value)
                assert [(s.value, s.source) for s in found.synonyms] == [
                    *reversed(steps),
                    ("1073741824", ConfigSource.DEFAULT),
                ]

    run(main())


def test_hours_minutes_and_milliseconds_supply_one_topic_setting(folder: Path) -> None:
    async def main() -> None:
        async with open_parts(folder, {"log.retention.hours": "2"}) as parts:
            await parts.topics.create(NewTopic("t"))
            configs = parts.configs
            assert configs.topic_config("t").retention_ms == 7_200_000
            await put(configs, OF_BROKER, "", "log.retention.ms", "5")
            assert configs.topic_config("t").retention_ms == 5
            assert entry(configs, OF_TOPIC, "t", "retention.ms").value == "5"

    run(main())


def test_the_brokers_settings_follow_what_is_set(folder: Path) -> None:
    async def main() -> None:
        async with open_parts(folder, {"message.max.bytes": "10"}) as parts:
            configs = parts.configs
            assert configs.settings.integer("message.max.bytes") == 10
            await put(configs, OF_BROKER, "1", "message.max.bytes", "20")
            assert configs.settings.integer("message.max.bytes") == 20
            await configs.replace(OF_BROKER, "1", {}, validate_only=False)
            assert configs.settings.integer("message.max.bytes") == 10

    run(main())


@pytest.mark.parametrize(
    ("kind", "name", "setting", "value", "error", "text"),
    [
        (OF_TOPIC, "t", "x", "1", ConfigFault, "x: there is no such setting"),
        (OF_TOPIC, "t", "segment.ms", "x", ConfigFault, "segment.ms: 'x' is not a whole number"),
        (OF_TOPIC, "u", "segment.ms", "1", UnknownTopic, "The topic 'u' does not exist."),
        (OF_TOPIC, "?", "segment.ms", "1", InvalidTopicName, "Topic name is invalid:"),
        (
            OF_BROKER,
            "1",
            "listeners",
            "A://h:1",
            CommandRefused,
            "listeners: can only be set in the configuration file; it is read at the start",
        ),
        (
            OF_BROKER,
            "1",
            "message.max.bytes",
            "x",
            CommandRefused,
            "message.max.bytes: 'x' is not a whole number",
        ),
        (
            OF_BROKER,
            "9",
            "message.max.bytes",
            "1",
            CommandRefused,
            "Unexpected broker id, expected 1 or empty string, but received 9",
        ),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_what_cannot_be_set_is_refused_and_changes_nothing(
    folder: Path,
    kind: ConfigResourceType,
    name: str,
    setting: str,
    value: str,
    error: type[BarnabasError],
    text: str,
    validate_only: bool,
) -> None:
    async def main() -> None:
        async with open_parts(folder) as parts:
            await parts.topics.create(NewTopic("t"))
            before = parts.cluster.image
            change = {setting: (ConfigOperation.SET, value)}
            with pytest.raises(error) as caught:
                await parts.configs.alter(kind, name, change, validate_only=validate_only)
            assert str(caught.value).startswith(text)
            assert parts.cluster.image is before

    run(main())


def test_lists_are_added_to_and_taken_from(folder: Path) -> None:
    async def main() -> None:
        async with open_parts(folder) as parts:
            await parts.topics.create(NewTopic("t"))
            configs = parts.configs
            setting = "leader.replication.throttled.replicas"
            for operation, text, expected in (
                (ConfigOperation.APPEND, "0:1,1:1", "0:1,1:1"),
                (ConfigOperation.APPEND, "1:1,2:1", "0:1,1:1,2:1"),
                (ConfigOperation.SUBTRACT, "0:1,9:9", "1:1,2:1"),
                (ConfigOperation.SUBTRACT, "1:1,2:1", ""),
            ):
                await configs.alter(OF_TOPIC, "t", {setting: (operation, text)}, validate_only=False)
                assert entry(configs, OF_TOPIC, "t", setting).value == expected

    run(main())


def test_every_setting_is_described(folder: Path) -> None:
    async def main() -> None:
        async with open_parts(folder) as parts:
            await parts.topics.create(NewTopic("t"))
            configs = parts.configs
            assert [e.key for e in configs.describe(OF_TOPIC, "t")] == list(TOPIC)
            assert [e.key for e in configs.describe(OF_BROKER, "1")] == list(BROKER)
            assert configs.describe(OF_BROKER, "") == []
            assert configs.describe(OF_TOPIC, "t", []) == configs.describe(OF_TOPIC, "t")
            overrides = configs.describe_overrides({"segment.ms": "5"})
            assert {e.key.name: e.value for e in overrides}["segment.ms"] == "5"

    run(main())


def test_two_changes_at_once_both_count(folder: Path) -> None:
    import asyncio

    async def main() -> None:
        async with open_parts(folder) as parts:
            await parts.topics.create(NewTopic("t"))
            await asyncio.gather(
                put(parts.configs, OF_TOPIC, "t", "segment.ms", "5"),
                put(parts.configs, OF_TOPIC, "t", "retention.ms", "6"),
            )
            assert parts.cluster.image.config(OF_TOPIC, "t") == {"segment.ms": "5", "retention.ms": "6"}

    run(main())


def test_offsets_can_be_kept_only_before_anything_is_written(folder: Path) -> None:
    async def main() -> None:
        async with open_parts(folder) as parts:
            configs = parts.configs
            await parts.topics.create(NewTopic("empty"))
            await parts.topics.create(NewTopic("full"))
            await parts.topics.create(NewTopic("copy", config={"barnabas.offsets.kept": "true"}))
            configs.holds_records = {"empty": False, "full": True, "copy": True}.__getitem__
            await put(configs, OF_TOPIC, "empty", "barnabas.offsets.kept", "true")
            assert configs.topic_config("empty").offsets_kept
            with pytest.raises(ConfigFault, match="topic 'full' has given offsets of its own"):
                await put(configs, OF_TOPIC, "full", "barnabas.offsets.kept", "true")
            await put(configs, OF_TOPIC, "copy", "retention.ms", "5")
            await put(configs, OF_TOPIC, "copy", "barnabas.offsets.kept", "false")
            with pytest.raises(ConfigFault, match="topic 'copy' has given offsets of its own"):
                await put(configs, OF_TOPIC, "copy", "barnabas.offsets.kept", "true")

    run(main())
