"""The scenarios of all clients, by kafka-python-2."""

from tests.conformance._scenarios import AdminScenarios, GroupScenarios, RecordScenarios


class TestRecords(RecordScenarios):
    client_name = "kafka-python-2"


class TestGroups(GroupScenarios):
    client_name = "kafka-python-2"


class TestAdmin(AdminScenarios):
    client_name = "kafka-python-2"
