"""The transaction scenarios of all clients, by the Java client."""

from tests.conformance._transactions import TransactionScenarios


class TestTransactions(TransactionScenarios):
    CLIENT = "java"
