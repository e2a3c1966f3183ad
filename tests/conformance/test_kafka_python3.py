"""The scenarios of all clients, by kafka-python-3."""

from tests.conformance._scenarios import AdminScenarios, GroupScenarios, RecordScenarios


class TestRecords(RecordScenarios):
    client_name = "kafka-python-3"


class TestGroups(GroupScenarios):
    client_name = "kafka-python-3"


class TestAdmin(AdminScenarios):
    client_name = "kafka-python-3"
