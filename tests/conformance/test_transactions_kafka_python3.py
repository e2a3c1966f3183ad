"""The transaction scenarios of all clients, by kafka-python-3."""

from tests.conformance._transactions import TransactionScenarios


class TestTransactions(TransactionScenarios):
    CLIENT = "kafka-python-3"
