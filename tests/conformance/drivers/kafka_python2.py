"""kafka-python 2.0.2 as a driver: it sends old, hard-coded versions of most requests."""

from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import for_code

from tests.conformance.drivers._driver import Raw, Refused, serve
from tests.conformance.drivers._kafka_python import KafkaPythonDriver


class KafkaPython2Driver(KafkaPythonDriver):
    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers, reconnect_backoff_max_ms=200)

    def producer_settings(self, idempotent: bool) -> dict[str, Any]:
        return {"retries": 10}

    def create_topic(self, topic: str, partitions: int, replicas: int, configs: dict[str, str]) -> None:
        self._admin.create_topics([NewTopic(topic, partitions, replicas, topic_configs=configs)])

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
                "partition": each["partition"],
                "leader": each["leader"],
                "replicas": list(each["replicas"]),
                "isr": list(each["isr"]),
            }
            for each in found["partitions"]
        ]

    def create_partitions(self, topic: str, total: int) -> None:
        self._admin.create_partitions({topic: NewPartitions(total)})

    def configs(self, kind: str, name: str) -> dict[str, str | None]:
        resource = ConfigResource(ConfigResourceType[kind.upper()], name)
        [answer] = self._admin.describe_configs([resource])
        [(code, text, _kind, _name, entries)] = answer.resources
        if code:
            raise Refused(code, str(text))
        return {entry[0]: entry[1] for entry in entries}

    def alter_configs(self, topic: str, configs: dict[str, str]) -> None:
        answer = self._admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs)])
        [(code, text, _kind, _name)] = answer.resources
        if code:
            raise Refused(code, str(text))

    def groups(self) -> list[str]:
        return [group for group, _protocol in self._admin.list_consumer_groups()]

    def describe_group(self, group: str) -> Raw:
        [found] = self._admin.describe_consumer_groups([group])
        return {
            "state": found.state,
            "members": [
                {
                    "client_id": member.client_id,
                    "assignment": [
                        (topic, number)
                        for topic, numbers in member.member_assignment.assignment
                        for number in numbers
                    ],
                }
                for member in found.members
            ],
        }

    def delete_group(self, group: str) -> None:
        [(_group, error)] = self._admin.delete_consumer_groups([group])
        if error is not for_code(0):
            raise error()


if __name__ == "__main__":
    serve(KafkaPython2Driver)
