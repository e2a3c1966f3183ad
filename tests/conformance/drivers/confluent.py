"""confluent-kafka (librdkafka) as a driver."""

from typing import Any

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public by its documentation only
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

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

TIMEOUT_S = 20


def raw_of(record: Any) -> Raw:
    return message(
        record.partition(),
        record.offset(),
        record.timestamp()[1],
        record.key(),
        record.value(),
        record.headers() or [],
    )


class GroupConsumer(_driver.Consumer):
    def __init__(self, settings: dict[str, Any], topic: str) -> None:
        self._consumer = Consumer(settings)
        self._consumer.subscribe([topic], on_assign=self._assigned)

    def _assigned(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self.rebalances += 1

    def poll(self) -> list[Raw]:
        records = self._consumer.consume(500, 0.05)
        for record in records:
            if error := record.error():
                raise KafkaException(error)
        return [raw_of(record) for record in records]

    def assignment(self) -> list[tuple[str, int]]:
        return [(each.topic, each.partition) for each in self._consumer.assignment()]

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


class ConfluentDriver(_driver.Driver):
    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._common: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers,
            "topic.metadata.refresh.fast.interval.ms": 50,
            "topic.metadata.refresh.interval.ms": METADATA_MS,
            "reconnect.backoff.max.ms": 200,
        }
        self._admin = AdminClient(self._common)

    def code_of(self, error: BaseException) -> int | None:
        return error.args[0].code() if isinstance(error, KafkaException) else None

    def produce(
        self,
        topic: str,
        messages: list[Raw],
        codec: str,
        acks: str,
        idempotent: bool,
        message_bytes_max: int,
    ) -> list[tuple[int, int]]:
        producer = Producer(
            {
                **self._common,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "message.max.bytes": message_bytes_max,
                "linger.ms": 5,
            }
        )
        placed: dict[int, tuple[int, int]] = {}
        errors: list[KafkaError] = []
        for number, raw in enumerate(messages):

            def done(error: KafkaError | None, record: Any, number: int = number) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    placed[number] = (record.partition(), -1 if acks == "0" else record.offset())

            optional = {}
            if raw["partition"] is not None:
                optional["partition"] = raw["partition"]
            if raw["timestamp"] is not None:
                optional["timestamp"] = raw["timestamp"]
            producer.produce(
                topic,
                value=raw_bytes(raw["value"]),
                key=raw_bytes(raw["key"]),
                headers=[(name, raw_bytes(content)) for name, content in raw["headers"]],
                on_delivery=done,
                **optional,
            )
        left = producer.flush(TIMEOUT_S)
        if errors:
            raise Refused(errors[0].code(), str(errors[0]))
        if left:
            raise Refused(None, f"{left} messages were not delivered in {TIMEOUT_S} s")
        return [placed[number] for number in range(len(messages))]

    def _plain_consumer(self, **settings: Any) -> Consumer:
        names = {name.replace("_", "."): value for name, value in settings.items()}
        return Consumer({**self._common, "group.id": "unused", "enable.auto.commit": False, **names})

    def read(self, topic: str, partition: int, start: int, count: int, fetch_bytes_max: int) -> list[Raw]:
        consumer = self._plain_consumer(
            auto_offset_reset="earliest", max_partition_fetch_bytes=fetch_bytes_max
        )
        consumer.assign([TopicPartition(topic, partition, start)])

        def poll() -> list[Raw]:
            records = consumer.consume(count, 0.1)
            for record in records:
                if error := record.error():
                    raise KafkaException(error)
            return [raw_of(record) for record in records]

        try:
            return collect(poll, count)
        finally:
            consumer.close()

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        consumer = self._plain_consumer()
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), TIMEOUT_S)
            return low, high
        finally:
            consumer.close()

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        consumer = self._plain_consumer()
        try:
            [found] = consumer.offsets_for_times([TopicPartition(topic, partition, timestamp)], TIMEOUT_S)
        finally:
            consumer.close()
        if found.error is not None:
            raise KafkaException(found.error)
        return None if found.offset < 0 else int(found.offset)

    def consumer(
        self,
        group: str,
        topic: str,
        reset: str,
        instance_id: str | None,
        session_timeout_ms: int,
        cooperative: bool,
    ) -> _driver.Consumer:
        settings = {
            **self._common,
            "group.id": group,
            "auto.offset.reset": reset,
            "enable.auto.commit": False,
            "session.timeout.ms": session_timeout_ms,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "partition.assignment.strategy": "cooperative-sticky" if cooperative else "range,roundrobin",
        }
        if instance_id is not None:
            settings["group.instance.id"] = instance_id
        return GroupConsumer(settings, topic)

    def committed(self, group: str, topic: str, partition: int) -> int | None:
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition)])
        [future] = self._admin.list_consumer_group_offsets([asked]).values()
        [found] = future.result(TIMEOUT_S).topic_partitions
        return None if found.offset == OFFSET_INVALID else int(found.offset)

    def create_topic(self, topic: str, partitions: int, replicas: int, configs: dict[str, str]) -> None:
        new = NewTopic(topic, num_partitions=partitions, replication_factor=replicas, config=configs)
        self._admin.create_topics([new])[topic].result(TIMEOUT_S)

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(TIMEOUT_S)

    def topics(self) -> list[str]:
        return list(self._admin.list_topics(timeout=TIMEOUT_S).topics)

    def describe_topic(self, topic: str) -> list[Raw]:
        found = self._admin.describe_topics(TopicCollection([topic]))[topic].result(TIMEOUT_S)
        return [
            {
                "partition": each.id,
                "leader": each.leader.id,
                "replicas": [node.id for node in each.replicas],
                "isr": [node.id for node in each.isr],
            }
            for each in found.partitions
        ]

    def create_partitions(self, topic: str, total: int) -> None:
        self._admin.create_partitions([NewPartitions(topic, total)])[topic].result(TIMEOUT_S)

    def configs(self, kind: str, name: str) -> dict[str, str | None]:
        resource = ConfigResource(ResourceType[kind.upper()], name)
        found = self._admin.describe_configs([resource])[resource].result(TIMEOUT_S)
        return {key: entry.value for key, entry in found.items()}

    def alter_configs(self, topic: str, configs: dict[str, str]) -> None:
        resource = ConfigResource(ResourceType.TOPIC, topic, set_config=configs)
        self._admin.alter_configs([resource])[resource].result(TIMEOUT_S)

    def incremental_alter(self, topic: str, set: dict[str, str], delete: list[str]) -> None:
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in set.items()
        ]
        entries += [ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in delete]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self._admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)

    def groups(self) -> list[str]:
        listed = self._admin.list_consumer_groups().result(TIMEOUT_S)
        return [each.group_id for each in listed.valid]

    def describe_group(self, group: str) -> Raw:
        found = self._admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
        return {
            "state": found.state.name,
            "members": [
                {
                    "client_id": member.client_id,
                    "assignment": [
                        (each.topic, each.partition) for each in member.assignment.topic_partitions
                    ],
                }
                for member in found.members
            ],
        }

    def delete_group(self, group: str) -> None:
        self._admin.delete_consumer_groups([group])[group].result(TIMEOUT_S)

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        asked = TopicPartition(topic, partition, before)
        [future] = self._admin.delete_records([asked]).values()
        return int(future.result(TIMEOUT_S).low_watermark)


if __name__ == "__main__":
    serve(ConfluentDriver)
