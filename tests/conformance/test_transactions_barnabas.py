"""The transaction scenarios of all clients, by Barnabas's own, with threads and with asyncio."""

from typing import ClassVar

from tests.conformance._transactions import CoreScenarios, LateScenarios, TransactionScenarios

VERSION_1: dict[str, str] = {"barnabas.transaction.version": "0"}


class TestTransactions(TransactionScenarios, LateScenarios):
    CLIENT = "barnabas"


class TestTransactionsOfVersion1(CoreScenarios):
    CLIENT = "barnabas"
    SETTINGS: ClassVar = VERSION_1


class TestAsyncTransactions(TransactionScenarios, LateScenarios):
    CLIENT = "barnabas-aio"


class TestAsyncTransactionsOfVersion1(CoreScenarios):
    CLIENT = "barnabas-aio"
    SETTINGS: ClassVar = VERSION_1
