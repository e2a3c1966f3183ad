"""The scenarios of all clients, by java."""

from tests.conformance._scenarios import AdminScenarios, GroupScenarios, RecordScenarios, RestartScenarios

CLIENT = "java"


class TestRecords(RecordScenarios):
    pass


class TestGroups(GroupScenarios):
    pass


class TestAdmin(AdminScenarios):
    pass


class TestRestart(RestartScenarios):
    pass
