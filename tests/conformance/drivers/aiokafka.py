"""aiokafka as a driver: its loop runs in a thread, and every call waits for its coroutine."""

import logging
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code

from tests.conformance.drivers import _driver
from tests.conformance.drivers._driver import (
    HEARTBEAT_MS,
    METADATA_MS,
    Raw,
    Refused,
    collect,
    message,
    raw_bytes,
    serve,
)
from tests.conformance.drivers._loop import Loop

TIMEOUT_S = 30
logging.basicConfig(level=logging.WARNING)


def raws_of(polled: dict[Any, list[Any]]) -> list[Raw]:
    return [
        message(
            record.partition, record.offset, record.timestamp, record.key, record.value, list(record.headers)
        )
        for records in polled.values()
        for record in records
    ]


class Rebalances(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka's base classes have no types
    count = 0

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.count += 1


class GroupConsumer(_driver.Consumer):
    def __init__(self, loop: Loop, consumer: AIOKafkaConsumer, listener: Rebalances) -> None:
        self._loop = loop
        self._consumer = consumer
        self._listener = listener

    def poll(self) -> list[Raw]:
        found = raws_of(self._loop.run(self._consumer.getmany(timeout_ms=50)))
        self.rebalances = self._listener.count
        return found

    def assignment(self) -> list[tuple[str, int]]:
        return [(each.topic, each.partition) for each in self._consumer.assignment()]

    def commit(self) -> None:
        self._loop.run(self._consumer.commit())

    def close(self) -> None:
        self._loop.run(self._consumer.stop())


class AiokafkaDriver(_driver.Driver):
    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._loop = Loop()
        self._admin = self._loop.run(self._start_admin())

    async def _start_admin(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
        await admin.start()
        return admin

    def code_of(self, error: BaseException) -> int | None:
        return getattr(error, "errno", None) if isinstance(error, KafkaError) else None

    def produce(
        self,
        topic: str,
        messages: list[Raw],
        codec: str,
        acks: str,
        idempotent: bool,
        message_bytes_max: int,
    ) -> list[tuple[int, int]]:
        async def work() -> list[tuple[int, int]]:
            producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap_servers,
                compression_type=None if codec == "none" else codec,
                acks="all" if acks == "all" else int(acks),
                enable_idempotence=idempotent,
                max_request_size=message_bytes_max,
                linger_ms=5,
            )
            await producer.start()
            try:
                futures = [
                    await producer.send(
                        topic,
                        value=raw_bytes(raw["value"]),
                        key=raw_bytes(raw["key"]),
                        headers=[(name, raw_bytes(content)) for name, content in raw["headers"]],
                        partition=raw["partition"],
                        timestamp_ms=raw["timestamp"],
                    )
                    for raw in messages
                ]
                placed = [await future for future in futures]
            finally:
                await producer.stop()
            # acks=0 brings no metadata at all
            return [(-1, -1) if each is None else (each.partition, each.offset) for each in placed]

        return self._loop.run(work())

    async def _plain_consumer(self, **settings: Any) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap_servers, enable_auto_commit=False, **settings
        )
        await consumer.start()
        return consumer

    def read(self, topic: str, partition: int, start: int, count: int, fetch_bytes_max: int) -> list[Raw]:
        consumer = self._loop.run(
            self._plain_consumer(auto_offset_reset="earliest", max_partition_fetch_bytes=fetch_bytes_max)
        )

        async def seek() -> None:
            where = TopicPartition(topic, partition)
            consumer.assign([where])
            consumer.seek(where, start)

        try:
            self._loop.run(seek())
            return collect(lambda: raws_of(self._loop.run(consumer.getmany(timeout_ms=100))), count)
        finally:
            self._loop.run(consumer.stop())

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        async def work() -> tuple[int, int]:
            consumer = await self._plain_consumer()
            where = TopicPartition(topic, partition)
            try:
                first = await consumer.beginning_offsets([where])
                end = await consumer.end_offsets([where])
            finally:
                await consumer.stop()
            return first[where], end[where]

        return self._loop.run(work())

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        async def work() -> Any:
            consumer = await self._plain_consumer()
            where = TopicPartition(topic, partition)
            try:
                return (await consumer.offsets_for_times({where: timestamp}))[where]
            finally:
                await consumer.stop()

        found = self._loop.run(work())
        return None if found is None else int(found.offset)

    def consumer(
        self,
        group: str,
        topic: str,
        reset: str,
        instance_id: str | None,
        session_timeout_ms: int,
        cooperative: bool,
    ) -> _driver.Consumer:
        listener = Rebalances()

        async def work() -> AIOKafkaConsumer:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=self.bootstrap_servers,
                group_id=group,
                group_instance_id=instance_id,
                auto_offset_reset=reset,
                enable_auto_commit=False,
                session_timeout_ms=session_timeout_ms,
                heartbeat_interval_ms=HEARTBEAT_MS,
                retry_backoff_ms=20,
                metadata_max_age_ms=METADATA_MS,
            )
            # After `start` it would wait for the group by itself; subscribing then keeps opening quick.
            await consumer.start()
            consumer.subscribe([topic], listener=listener)
            return consumer

        return GroupConsumer(self._loop, self._loop.run(work()), listener)

    def committed(self, group: str, topic: str, partition: int) -> int | None:
        where = TopicPartition(topic, partition)
        found = self._loop.run(self._admin.list_consumer_group_offsets(group, partitions=[where]))
        offset = found[where].offset
        return None if offset < 0 else int(offset)

    def _raise_first(self, answer: Any, field: str) -> None:
        for each in answer.to_object()[field]:
            if each["error_code"]:
                raise Refused(each["error_code"], str(each))

    def create_topic(self, topic: str, partitions: int, replicas: int, configs: dict[str, str]) -> None:
        new = NewTopic(topic, partitions, replicas, topic_configs=configs)
        self._raise_first(self._loop.run(self._admin.create_topics([new])), "topic_errors")

    def delete_topic(self, topic: str) -> None:
        self._raise_first(self._loop.run(self._admin.delete_topics([topic])), "topic_error_codes")

    def topics(self) -> list[str]:
        return list(self._loop.run(self._admin.list_topics()))

    def describe_topic(self, topic: str) -> list[Raw]:
        [found] = self._loop.run(self._admin.describe_topics([topic]))
        if found["error_code"]:
            raise Refused(found["error_code"], topic)
        return [
            {
                "partition": each["partition"],
                "leader": each["leader"],
                "replicas": list(each["replicas"]),
                "isr": list(each["isr"]),
            }
            for each in found["partitions"]
        ]

    def create_partitions(self, topic: str, total: int) -> None:
        answer = self._loop.run(self._admin.create_partitions({topic: NewPartitions(total)}))
        self._raise_first(answer, "topic_errors")

    def configs(self, kind: str, name: str) -> dict[str, str | None]:
        resource = ConfigResource(ConfigResourceType[kind.upper()], name)
        [answer] = self._loop.run(self._admin.describe_configs([resource]))
        [found] = answer.to_object()["resources"]
        if found["error_code"]:
            raise Refused(found["error_code"], str(found["error_message"]))
        return {entry["config_names"]: entry["config_value"] for entry in found["config_entries"]}

    def alter_configs(self, topic: str, configs: dict[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs)
        [answer] = self._loop.run(self._admin.alter_configs([resource]))
        self._raise_first(answer, "resources")

    def groups(self) -> list[str]:
        return [each[0] for each in self._loop.run(self._admin.list_consumer_groups())]

    def describe_group(self, group: str) -> Raw:
        [answer] = self._loop.run(self._admin.describe_consumer_groups([group]))
        [found] = answer.to_object()["groups"]
        return {
            "state": found["state"],
            "members": [{"client_id": each["client_id"], "assignment": None} for each in found["members"]],
        }

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        where = TopicPartition(topic, partition)
        found = self._loop.run(self._admin.delete_records({where: RecordsToDelete(before_offset=before)}))
        outcome = found[where]
        if not isinstance(outcome, int):
            raise for_code(getattr(outcome, "errno", -1))()
        return outcome


if __name__ == "__main__":
    serve(AiokafkaDriver)
