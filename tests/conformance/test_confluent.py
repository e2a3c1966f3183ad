"""The scenarios of all clients, by confluent-kafka."""

from tests.conformance._scenarios import AdminScenarios, GroupScenarios, RecordScenarios


class TestRecords(RecordScenarios):
    client_name = "confluent-kafka"


class TestGroups(GroupScenarios):
    client_name = "confluent-kafka"


class TestAdmin(AdminScenarios):
    client_name = "confluent-kafka"
