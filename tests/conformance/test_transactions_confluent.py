"""The transaction scenarios of all clients, by confluent-kafka."""

from tests.conformance._transactions import TransactionScenarios


class TestTransactions(TransactionScenarios):
    CLIENT = "confluent-kafka"
