"""The transaction scenarios of all clients, by the Java client, which speaks version 2 too."""

from typing import ClassVar

from tests.conformance._transactions import CoreScenarios, LateScenarios, TransactionScenarios


class TestTransactions(TransactionScenarios, LateScenarios):
    CLIENT = "java"


class TestTransactionsOfVersion1(CoreScenarios):
    CLIENT = "java"
    SETTINGS: ClassVar = {"barnabas.transaction.version": "0"}
