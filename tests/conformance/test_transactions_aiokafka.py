"""The transaction scenarios of all clients, by aiokafka."""

from tests.conformance._transactions import TransactionScenarios


class TestTransactions(TransactionScenarios):
    CLIENT = "aiokafka"
