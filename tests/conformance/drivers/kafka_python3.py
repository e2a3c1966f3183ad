"""kafka-python 3 as a driver."""

import re
from typing import Any

from kafka import KafkaAdminClient, TopicPartition, errors
from kafka.admin import AlterConfigOp, ConfigResource
from kafka.errors import NoError

from tests.conformance.drivers._driver import Raw, Refused, serve
from tests.conformance.drivers._kafka_python import KafkaPythonDriver


def raise_if(error: Any) -> None:
    if error is not NoError and error is not None:
        raise error()


class KafkaPython3Driver(KafkaPythonDriver):
    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers, reconnect_backoff_max_ms=200)

    def producer_settings(self, idempotent: bool) -> dict[str, Any]:
        return {"enable_idempotence": idempotent, "delivery_timeout_ms": 40_000}

    def create_topic(self, topic: str, partitions: int, replicas: int, configs: dict[str, str]) -> None:
        options = {"num_partitions": partitions, "replication_factor": replicas, "configs": configs}
        self._admin.create_topics({topic: options})

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def topics(self) -> list[str]:
        return list(self._admin.list_topics())

    def describe_topic(self, topic: str) -> list[Raw]:
        [found] = self._admin.describe_topics([topic])
        if found["error_code"]:
            raise Refused(found["error_code"], topic)
        return [
            {
                "partition": each["partition_index"],
                "leader": each["leader_id"],
                "replicas": list(each["replica_nodes"]),
                "isr": list(each["isr_nodes"]),
            }
            for each in found["partitions"]
        ]

    def create_partitions(self, topic: str, total: int) -> None:
        self._admin.create_partitions({topic: total})

    def configs(self, kind: str, name: str) -> dict[str, str | None]:
        found = self._admin.describe_configs([ConfigResource(kind, name)], config_filter="all")
        return {key: entry["value"] for key, entry in found[kind][name].items()}

    def _altered(self, answer: dict[str, Any], topic: str) -> None:
        outcome: str = answer["topic"][topic]
        if outcome != "OK":
            code = re.match(r"\[Error (-?\d+)\]", outcome)
            raise Refused(int(code[1]) if code else None, outcome)

    def alter_configs(self, topic: str, configs: dict[str, str]) -> None:
        resource = ConfigResource("topic", topic, configs)
        self._altered(self._admin.alter_configs([resource], raise_on_unknown=False, incremental=False), topic)

    def incremental_alter(self, topic: str, set: dict[str, str], delete: list[str]) -> None:
        changes: dict[str, Any] = {key: (AlterConfigOp.SET, value) for key, value in set.items()}
        changes.update({key: (AlterConfigOp.DELETE, None) for key in delete})
        resource = ConfigResource("topic", topic, changes)
        self._altered(self._admin.alter_configs([resource], raise_on_unknown=False, incremental=True), topic)

    def groups(self) -> list[str]:
        return [each["group_id"] for each in self._admin.list_groups()]

    def describe_group(self, group: str) -> Raw:
        found = self._admin.describe_groups([group])[group]
        return {
            "state": found["group_state"],
            "members": [
                {
                    "client_id": member["client_id"],
                    "assignment": [
                        (part["topic"], number)
                        for part in member["member_assignment"]["assigned_partitions"]
                        for number in part["partitions"]
                    ],
                }
                for member in found["members"]
            ],
        }

    def delete_group(self, group: str) -> None:
        outcome = self._admin.delete_groups([group])[group]
        if outcome != "OK":
            raise Refused(getattr(errors, outcome).errno, outcome)

    def delete_offsets(self, group: str, topic: str, partition: int) -> None:
        for error in self._admin.delete_group_offsets(group, [TopicPartition(topic, partition)]).values():
            raise_if(error)

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        where = TopicPartition(topic, partition)
        return int(self._admin.delete_records({where: before})[where]["low_watermark"])


if __name__ == "__main__":
    serve(KafkaPython3Driver)
