"""The transaction scenarios of all clients, by kafkajs."""

from tests.conformance._transactions import TransactionScenarios


class TestTransactions(TransactionScenarios):
    CLIENT = "kafkajs"
