"""The scenarios of all clients, by confluent-kafka."""

from tests.conformance._scenarios import AdminScenarios, GroupScenarios, RecordScenarios, RestartScenarios

CLIENT = "confluent-kafka"


class TestRecords(RecordScenarios):
    pass


class TestGroups(GroupScenarios):
    pass


class TestAdmin(AdminScenarios):
    pass


class TestRestart(RestartScenarios):
    pass
