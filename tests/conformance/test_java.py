"""The scenarios of all clients, by java."""

from tests.conformance._scenarios import AdminScenarios, GroupScenarios, RecordScenarios


class TestRecords(RecordScenarios):
    client_name = "java"


class TestGroups(GroupScenarios):
    client_name = "java"


class TestAdmin(AdminScenarios):
    client_name = "java"
