"""barnabas.coordinator.txn_ports: the stand-ins of the tests meet them, and nothing stops without a test."""

from barnabas.base.clock import ManualClock
from barnabas.coordinator.txn_config import TRANSACTIONS, TransactionSettings
from barnabas.coordinator.txn_ports import FaultPoint, TransactionSurroundings
from tests.coordinator._fakes import FakeLog, FakeTopics, ManualTimers
from tests.coordinator._txn_fakes import FakeIds, FakeMarkers


def test_by_default_no_point_is_a_fault_and_the_version_is_0() -> None:
    clock = ManualClock()
    around = TransactionSurroundings(
        clock=clock,
        timers=ManualTimers(clock),
        log=FakeLog(),
        topics=FakeTopics(),
        markers=FakeMarkers(),
        producer_ids=FakeIds(),
        settings=TransactionSettings.of(TRANSACTIONS.parse({})),
    )
    for point in FaultPoint:
        around.reach(point)
    assert around.version() == 0
