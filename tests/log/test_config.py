"""Topic and broker settings: Kafka's names and defaults, each declared once."""

import pytest

from barnabas.base.errors import ConfigFault
from barnabas.log.config import BROKER_LOG, TOPIC, LogConfig
from barnabas.records.codecs import Codec


def test_the_typed_defaults_are_those_of_the_table() -> None:
    assert LogConfig.of(TOPIC.parse({})) == LogConfig()


def test_given_values_arrive_typed() -> None:
    config = LogConfig.of(
        TOPIC.parse(
            {
                "cleanup.policy": "compact,delete",
                "segment.bytes": "1048576",
                "message.timestamp.type": "LogAppendTime",
                "compression.type": "zstd",
                "compression.zstd.level": "7",
                "min.cleanable.dirty.ratio": "0.1",
            }
        )
    )
    assert (config.compact, config.delete) == (True, True)
    assert (config.segment_bytes, config.log_append_time) == (1048576, True)
    assert (config.codec, config.codec_level, config.min_cleanable_dirty_ratio) == (Codec.ZSTD, 7, 0.1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cleanup.policy", "shrink"),
        ("segment.bytes", "1"),
        ("compression.type", "brotli"),
        ("retention.ms", "-2"),
    ],
)
def test_wrong_values_are_refused(name: str, text: str) -> None:
    with pytest.raises(ConfigFault, match=name):
        TOPIC.parse({name: text})


def test_every_supplier_of_a_topic_setting_is_a_broker_setting() -> None:
    for key in TOPIC:
        for synonym in key.synonyms:
            assert synonym.name in BROKER_LOG


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("log.retention.hours", 168),
        ("log.retention.minutes", None),
        ("log.retention.ms", None),
        ("log.roll.hours", 168),
        ("log.segment.bytes", 2**30),
        ("message.max.bytes", 2**20 + 12),
        ("log.flush.interval.ms", None),
        ("log.flush.scheduler.interval.ms", 2**63 - 1),
        ("log.cleaner.min.cleanable.ratio", 0.5),
        ("min.insync.replicas", 1),
        ("producer.id.expiration.ms", 86_400_000),
        ("log.dirs", None),
    ],
)
def test_the_brokers_defaults_are_kafkas(name: str, default: object) -> None:
    assert BROKER_LOG[name].default == default
