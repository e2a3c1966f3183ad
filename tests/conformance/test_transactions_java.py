"""The transaction scenarios of all clients, by the Java client, the only one that speaks version 2."""

from typing import ClassVar

from tests.conformance._transactions import CoreScenarios, TransactionScenarios


class TestTransactions(TransactionScenarios):
    CLIENT = "java"


class TestTransactionsOfVersion1(CoreScenarios):
    CLIENT = "java"
    SETTINGS: ClassVar = {"barnabas.transaction.version": "0"}
