"""barnabas.coordinator.transactions: partitions of transactions, verification, listing, expiry, reloading."""

import pytest

from barnabas.coordinator.ports import Producer
from barnabas.coordinator.txn_calls import TransactionDescription, TransactionFilter, TransactionListing
from barnabas.coordinator.txn_state import TransactionState
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._fakes import FakeLog
from tests.coordinator._txn_fakes import PARTITION_COUNT, A, B, C, TxnWorld

DAY_MS = 86_400_000
# A week of looking for transactions out of time every ten seconds would take its time.
SELDOM_MS = str(DAY_MS)


def patient_world() -> TxnWorld:
    return TxnWorld(transaction_abort_timed_out_transaction_cleanup_interval_ms=SELDOM_MS)


class TestAddingPartitions:
    def test_begins_a_transaction_which_grows(self) -> None:
        world = TxnWorld()
        producer = world.producer()
        assert world.add(producer, A).result is ErrorCode.NONE
        assert world.add(producer, B, C).result is ErrorCode.NONE
        assert world.transaction().durable.partitions == {A, B, C}
        assert world.stored_states()[1:] == [TransactionState.ONGOING] * 2

    def test_what_is_there_already_writes_nothing(self) -> None:
        world = TxnWorld()
        producer = world.begin(A, B)
        before = len(world.stored())
        assert world.add(producer, B).result is ErrorCode.NONE
        assert len(world.stored()) == before

    def test_the_first_ones_after_an_end_begin_the_next_transaction(self) -> None:
        world = TxnWorld()
        producer = world.begin(A)
        world.end(producer, commit=True)
        world.clock.advance(5)
        assert world.add(producer, A).result is ErrorCode.NONE
        assert world.transaction().durable.started_ms == world.clock.now_ms()

    def test_is_answered_only_when_it_is_durable(self) -> None:
        world = TxnWorld()
        producer = world.producer()
        world.log.holds = True
        answer = world.add(producer, A)
        assert answer.waits
        assert world.add(producer, B).result is ErrorCode.CONCURRENT_TRANSACTIONS
        assert world.coordinator.verify("tx", producer, A) is ErrorCode.TRANSACTION_ABORTABLE
        world.log.release()
        assert answer.result is ErrorCode.NONE

    @pytest.mark.parametrize(
        ("log_error", "told"),
        [
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
            (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
            (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        ],
    )
    def test_that_the_log_refuses_changes_nothing(self, log_error: ErrorCode, told: ErrorCode) -> None:
        world = TxnWorld()
        producer = world.producer()
        world.log.failing = log_error
        assert world.add(producer, A).result is told
        assert world.state() is TransactionState.EMPTY
        world.log.failing = ErrorCode.NONE
        assert world.add(producer, A).result is ErrorCode.NONE

    def test_by_somebody_else_is_refused(self) -> None:
        world = TxnWorld()
        producer = world.producer()
        wrong_id, wrong_epoch = Producer(7, 0), producer._replace(producer_epoch=1)
        assert world.add(wrong_id).result is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert world.add(wrong_epoch).result is ErrorCode.PRODUCER_FENCED
        assert world.add(producer, name="unknown").result is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert world.add(producer, name="").result is ErrorCode.INVALID_REQUEST


class TestVerification:
    def test_knows_the_partitions_of_the_open_transaction(self) -> None:
        world = TxnWorld()
        producer = world.begin(A)
        verify = world.coordinator.verify
        assert verify("tx", producer, A) is ErrorCode.NONE
        assert verify("tx", producer, B) is ErrorCode.TRANSACTION_ABORTABLE
        assert verify("tx", producer._replace(producer_epoch=3), A) is ErrorCode.PRODUCER_FENCED
        assert verify("tx", Producer(3, 0), A) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert verify("unknown", producer, A) is ErrorCode.INVALID_PRODUCER_ID_MAPPING

    def test_refuses_batches_that_come_after_the_decision(self) -> None:
        world = TxnWorld()
        producer = world.begin(A)
        world.markers.holds = True
        world.end(producer, commit=True)
        assert world.coordinator.verify("tx", producer, A) is ErrorCode.CONCURRENT_TRANSACTIONS
        world.markers.release()
        assert world.coordinator.verify("tx", producer, A) is ErrorCode.TRANSACTION_ABORTABLE

    def test_can_be_switched_off(self) -> None:
        world = TxnWorld(transaction_partition_verification_enable="false")
        assert world.coordinator.verify("unknown", Producer(1, 1), A) is ErrorCode.NONE


class TestAdministration:
    def test_a_description_says_everything(self) -> None:
        world = TxnWorld()
        producer = world.begin(B, A)
        now_ms = world.clock.now_ms()
        assert world.coordinator.describe("tx") == TransactionDescription(
            ErrorCode.NONE, "tx", "Ongoing", 60_000, now_ms, *producer, (A, B)
        )
        assert world.coordinator.describe("no").error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert world.coordinator.describe("").error is ErrorCode.INVALID_REQUEST

    def test_a_list_is_filtered_by_everything(self) -> None:
        world = TxnWorld()
        world.begin(A, name="open")
        world.clock.advance(1_000)
        world.producer("idle")

        def names(**wanted: object) -> set[str]:
            found = world.coordinator.list_transactions(TransactionFilter(**wanted))  # type: ignore[arg-type]  # one of its fields each
            assert found.error is ErrorCode.NONE
            return {each.transactional_id for each in found.transactions}

        assert names() == {"open", "idle"}
        assert names(states=frozenset({"Ongoing"})) == {"open"}
        assert names(states=frozenset({"Ongoing", "Empty"})) == {"open", "idle"}
        assert names(producer_ids=frozenset({1001})) == {"idle"}
        assert names(longer_than_ms=999) == {"open", "idle"}
        assert names(longer_than_ms=1_000) == {"idle"}
        assert names(matches=lambda name: name.startswith("o")) == {"open"}
        listed = world.coordinator.list_transactions(
            TransactionFilter(states=frozenset({"Ongoing", "no", "a"}))
        )
        assert listed.unknown_states == ["a", "no"]
        assert listed.transactions == [TransactionListing("open", 1000, TransactionState.ONGOING)]

    def test_nothing_is_said_while_it_loads_or_stands_still(self) -> None:
        world = TxnWorld()
        world.coordinator.unload(0)
        assert world.coordinator.begin_load(0, 1) is not None
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert world.coordinator.list_transactions(TransactionFilter()).error is loading
        world.coordinator.stop()
        gone = ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert world.coordinator.list_transactions(TransactionFilter()).error is gone
        assert world.coordinator.describe("tx").error is gone


class TestExpiry:
    def test_an_idle_id_is_forgotten_with_a_tombstone(self) -> None:
        world = patient_world()
        world.producer()
        world.timers.advance(7 * DAY_MS + 3_600_000)
        assert world.coordinator.table.find("tx") is None
        assert world.stored_states() == [TransactionState.EMPTY, None]
        assert world.restarted().coordinator.table.find("tx") is None

    def test_one_with_an_open_transaction_is_kept(self) -> None:
        world = patient_world()
        world.begin()
        world.log.failing = ErrorCode.REQUEST_TIMED_OUT  # nor can it be aborted
        world.timers.advance(8 * DAY_MS)
        assert world.state() is TransactionState.ONGOING

    def test_one_whose_tombstone_is_refused_is_kept_until_the_next_round(self) -> None:
        world = patient_world()
        world.producer()
        world.log.failing = ErrorCode.NOT_ENOUGH_REPLICAS
        world.timers.advance(7 * DAY_MS + 3_600_000)
        assert world.state() is TransactionState.EMPTY
        world.log.failing = ErrorCode.NONE
        world.timers.advance(3_600_000)
        assert world.coordinator.table.find("tx") is None

    def test_one_that_comes_back_while_its_tombstone_is_written_stays(self) -> None:
        world = patient_world()
        world.producer()
        world.clock.advance(8 * DAY_MS)
        world.log.holds = True
        world.coordinator.remove_expired()
        answer = world.init()
        world.log.release()
        assert answer.result.error is ErrorCode.NONE
        assert world.state() is TransactionState.EMPTY
        assert world.restarted().state() is TransactionState.EMPTY


class TestReloading:
    def test_finds_every_id_as_it_was(self) -> None:
        world = TxnWorld()
        world.begin(A, name="open")
        world.end(world.begin(A, name="done"), commit=True, name="done")
        world.producer("idle")
        again = world.restarted()
        for name in ("open", "done", "idle"):
            assert again.transaction(name).durable == world.transaction(name).durable

    @pytest.mark.parametrize("commit", [True, False])
    def test_completes_what_was_decided(self, commit: bool) -> None:
        world = TxnWorld()
        producer = world.begin(A, B)
        world.markers.holds = True
        world.end(producer, commit=commit)
        again = world.restarted(epoch=4)
        assert again.markers.ends(A) == again.markers.ends(B) == [(*producer, commit)]
        assert {marker.coordinator_epoch for marker, _ in again.markers.written} == {4}
        assert again.end(producer, commit=commit).result.error is ErrorCode.NONE

    def test_calls_wait_until_it_is_done(self) -> None:
        world = TxnWorld()
        producer = world.begin(A)
        home = world.coordinator.partition_for("tx")
        world.coordinator.unload(home)
        assert world.add(producer, B).result is ErrorCode.NOT_COORDINATOR
        load = world.coordinator.begin_load(home, 1)
        assert load is not None
        assert world.add(producer, B).result is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert world.init().result.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        for record in world.log.records(home):
            load.record(record.key, record.value)
        world.coordinator.finish_load(load)
        assert world.add(producer, B).result is ErrorCode.NONE

    def test_one_that_was_overtaken_changes_nothing(self) -> None:
        world = TxnWorld()
        world.coordinator.unload(0)
        stale = world.coordinator.begin_load(0, 1)
        world.coordinator.unload(0)
        world.load(0, 2)
        assert stale is not None
        world.coordinator.finish_load(stale)
        assert not world.coordinator.table.is_loading

    def test_old_news_are_ignored(self) -> None:
        world = TxnWorld(epoch=5)
        assert world.coordinator.begin_load(0, 4) is None
        assert world.coordinator.begin_load(0, 5) is None
        world.coordinator.unload(0, 4)
        producer = world.producer("a")
        assert world.add(producer, A, name="a").result is ErrorCode.NONE


def test_a_change_under_way_when_the_coordinator_stops_is_told_so() -> None:
    world = TxnWorld()
    producer = world.producer()
    world.log.holds = True
    answer = world.add(producer, A)
    world.coordinator.stop()
    world.log.release()
    assert answer.result is ErrorCode.NOT_COORDINATOR
    assert world.timers.armed == 0


def test_a_reply_may_call_straight_back() -> None:
    world = TxnWorld(FakeLog())
    seen: list[ErrorCode] = []
    producer = world.begin(A)

    def again(result: object) -> None:
        world.coordinator.add_partitions("tx", producer, [B], seen.append)

    world.coordinator.end("tx", producer, True, again)
    # The answer goes out at the decision: the transaction is still ending then.
    assert seen == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert world.state() is TransactionState.COMPLETE_COMMIT


def test_ids_are_spread_over_the_partitions_as_kafka_does() -> None:
    coordinator = TxnWorld().coordinator
    assert [coordinator.partition_for(name) for name in ("a", "b", "ab", "")] == [
        97 % PARTITION_COUNT,
        98 % PARTITION_COUNT,
        3105 % PARTITION_COUNT,
        0,
    ]
