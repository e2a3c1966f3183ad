"""What our producer writes, as librdkafka and aiokafka read it: keys, values, headers, times, codecs."""

import asyncio

import aiokafka
import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from barnabas.client.admin import Admin
from barnabas.client.producer import Producer
from tests.client._kit import settings_for

RECORDS: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]] = [
    (None, b"plain", [], 1_700_000_000_000),
    (b"key", None, [("a", b"1"), ("a", b"2"), ("null", None)], 1_700_000_000_500),
    (b"", b"", [("é", b"")], 1_600_000_000_000),
    (b"k" * 300, b"\0\xff" * 5_000, [], 0),
]


def write(bootstrap: str, topic: str, codec: str) -> None:
    with Producer(settings_for(bootstrap, compression_type=codec, linger_ms=50)) as producer:
        for key, value, headers, timestamp in RECORDS * 20:
            producer.send(topic, value, key, headers=headers, timestamp_ms=timestamp, partition=0)


def from_librdkafka(bootstrap: str, topic: str) -> list[Message]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "interop", "check.crcs": True, "fetch.wait.max.ms": 20}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Message] = []
    for _ in range(100):
        found += consumer.consume(1_000, 0.1)
        if len(found) >= len(RECORDS) * 20:
            break
    consumer.close()
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_librdkafka_reads_every_part_of_a_record(
    bootstrap: str, topic: str, admin: Admin, codec: str
) -> None:
    admin.create_topic(topic, 1, configs={"retention.ms": "-1"})  # the times are long ago
    write(bootstrap, topic, codec)
    found = [
        (message.key(), message.value(), message.headers() or [], message.timestamp()[1])
        for message in from_librdkafka(bootstrap, topic)
    ]
    assert found == RECORDS * 20


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4"])
def test_aiokafka_reads_every_part_of_a_record(bootstrap: str, topic: str, admin: Admin, codec: str) -> None:
    admin.create_topic(topic, 1, configs={"retention.ms": "-1"})  # the times are long ago
    write(bootstrap, topic, codec)

    async def main() -> list[object]:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        consumer.assign([aiokafka.TopicPartition(topic, 0)])
        await consumer.start()
        found: list[object] = []
        try:
            while len(found) < len(RECORDS) * 20:
                record = await asyncio.wait_for(consumer.getone(), 10)
                found.append((record.key, record.value, list(record.headers), record.timestamp))
        finally:
            await consumer.stop()
        return found

    assert asyncio.run(main()) == RECORDS * 20
