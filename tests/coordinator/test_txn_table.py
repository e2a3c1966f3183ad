"""barnabas.coordinator.txn_table: which ids this broker speaks for."""

from barnabas.coordinator.txn_state import Snapshot, Transaction
from barnabas.coordinator.txn_table import TransactionTable
from barnabas.protocol.codes import ErrorCode


def opened(count: int = 2, epoch: int = 3) -> TransactionTable:
    table = TransactionTable(count)
    table.is_active = True
    for partition in range(count):
        owned = table.begin_load(partition, epoch)
        assert owned is not None
        assert table.finish_load(partition, owned)
    return table


def made(table: TransactionTable, name: str) -> Transaction:
    transaction = Transaction(name, table.partition_for(name), Snapshot(1, 0, 1))
    table.add(transaction)
    return transaction


def test_an_id_is_found_where_its_partition_is_led_and_loaded() -> None:
    table = TransactionTable(1)
    assert table.find("a") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    table.is_active = True
    assert table.find("a") is ErrorCode.NOT_COORDINATOR
    owned = table.begin_load(0, 0)
    assert owned is not None
    assert table.find("a") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert table.is_loading
    assert table.finish_load(0, owned)
    assert table.find("a") is None
    transaction = made(table, "a")
    assert table.find("a") is transaction
    assert list(table) == [transaction]


def test_what_is_given_up_is_no_longer_current() -> None:
    table = opened()
    transaction = made(table, "a")
    assert table.is_current(transaction)
    assert table.epoch_of(transaction) == 3
    assert table.give_up(transaction.partition, 4)
    assert not table.is_current(transaction)
    assert not table.give_up(transaction.partition, 4)
    table.remove(transaction)
    assert list(table) == []


def test_another_one_of_the_same_id_does_not_count_for_the_first() -> None:
    table = opened()
    first = made(table, "a")
    table.remove(first)
    second = made(table, "a")
    assert not table.is_current(first)
    assert table.is_current(second)


def test_stale_epochs_change_nothing() -> None:
    table = opened(1, epoch=3)
    assert table.begin_load(0, 2) is None
    assert not table.give_up(0, 2)
    assert table.begin_load(0, 3) is None
    assert table.give_up(0, None)
    assert table.begin_load(0, 2) is None
    assert table.begin_load(0, 3) is not None


def test_a_load_that_was_overtaken_is_not_finished() -> None:
    table = TransactionTable(1)
    first = table.begin_load(0, 0)
    table.give_up(0, 1)
    second = table.begin_load(0, 2)
    assert first is not None
    assert second is not None
    assert not table.finish_load(0, first)
    assert table.finish_load(0, second)
