"""The scenarios of all clients, by aiokafka."""

from tests.conformance._scenarios import AdminScenarios, GroupScenarios, RecordScenarios, RestartScenarios

CLIENT = "aiokafka"


class TestRecords(RecordScenarios):
    pass


class TestGroups(GroupScenarios):
    pass


class TestAdmin(AdminScenarios):
    pass


class TestRestart(RestartScenarios):
    pass
