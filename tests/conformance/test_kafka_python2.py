"""The scenarios of all clients, by kafka-python-2."""

from tests.conformance._scenarios import AdminScenarios, GroupScenarios, RecordScenarios, RestartScenarios

CLIENT = "kafka-python-2"


class TestRecords(RecordScenarios):
    pass


class TestGroups(GroupScenarios):
    pass


class TestAdmin(AdminScenarios):
    pass


class TestRestart(RestartScenarios):
    pass
