"""Which groups this broker may speak for."""

import pytest

from barnabas.coordinator.group import GroupState
from barnabas.coordinator.groups import GroupTable
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._fakes import PARTITION_COUNT, World


@pytest.fixture
def table() -> GroupTable:
    made = GroupTable(World().around, PARTITION_COUNT)
    made.is_active = True
    return made


def test_a_partition_led_elsewhere_is_not_ours(table: GroupTable) -> None:
    assert table.error("g") is ErrorCode.NOT_COORDINATOR


def test_a_partition_that_loads_says_so(table: GroupTable) -> None:
    owned = table.begin_load(table.partition_for("g"), epoch=1)
    assert owned is not None
    assert table.error("g") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert table.is_loading
    assert table.owned(table.partition_for("g")) is None
    owned.is_loading = False
    assert table.error("g") is ErrorCode.NONE
    assert table.owned(table.partition_for("g")) is owned


def test_before_the_start_nobody_is_served(table: GroupTable) -> None:
    table.is_active = False
    assert table.error("g") is ErrorCode.COORDINATOR_NOT_AVAILABLE


class TestEpochs:
    def test_an_older_election_changes_nothing(self, table: GroupTable) -> None:
        assert table.begin_load(0, epoch=5)
        assert table.give_up(0, epoch=6)
        assert table.begin_load(0, epoch=5) is None

    def test_an_older_resignation_changes_nothing(self, table: GroupTable) -> None:
        owned = table.begin_load(0, epoch=5)
        assert owned is not None
        assert table.give_up(0, epoch=4) is None
        assert table.is_current(0, owned)

    def test_a_second_election_while_leading_changes_nothing(self, table: GroupTable) -> None:
        owned = table.begin_load(0, epoch=5)
        assert owned is not None
        assert table.begin_load(0, epoch=6) is None
        assert table.is_current(0, owned)

    def test_a_deleted_partition_goes_whatever_the_epoch(self, table: GroupTable) -> None:
        table.begin_load(0, epoch=5)
        assert table.give_up(0, epoch=None)
        assert table.give_up(0, epoch=None) is None


class TestGroups:
    def test_are_found_until_their_partition_goes(self, table: GroupTable) -> None:
        partition = table.partition_for("g")
        owned = table.begin_load(partition, epoch=0)
        assert owned is not None
        owned.is_loading = False
        group = table.create("g")
        assert table.find("g") is group
        assert list(table) == [group]
        table.give_up(partition, epoch=1)
        assert table.find("g") is None

    def test_must_be_dead_to_be_removed(self, table: GroupTable) -> None:
        table.begin_load(table.partition_for("g"), epoch=0)
        group = table.create("g")
        with pytest.raises(AssertionError, match="T2"):
            table.remove(group)
        group.move_to(GroupState.DEAD, 0)
        table.remove(group)
        table.remove(group)
        assert table.find("g") is None

    def test_take_their_open_transactions_along(self) -> None:
        world = World().own_all()
        world.commit_in_transaction(7, 1)
        group = world.group()
        owned = world.coordinator.table.owned(group.partition)
        assert owned is not None
        assert owned.open_groups == {7: {"g"}}
        group.move_to(GroupState.DEAD, 0)
        world.coordinator.table.remove(group)
        assert owned.open_groups == {}
