"""The scenarios of all clients, by aiokafka."""

from tests.conformance._scenarios import AdminScenarios, GroupScenarios, RecordScenarios


class TestRecords(RecordScenarios):
    client_name = "aiokafka"


class TestGroups(GroupScenarios):
    client_name = "aiokafka"


class TestAdmin(AdminScenarios):
    client_name = "aiokafka"
