"""The scenarios of all clients, by kafkajs."""

from tests.conformance._scenarios import AdminScenarios, GroupScenarios, RecordScenarios


class TestRecords(RecordScenarios):
    client_name = "kafkajs"


class TestGroups(GroupScenarios):
    client_name = "kafkajs"


class TestAdmin(AdminScenarios):
    client_name = "kafkajs"
