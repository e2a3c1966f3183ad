"""barnabas.broker.transactions: whole transactions through a running broker, and restarts in their middle."""

import shutil
from pathlib import Path

import pytest

from barnabas.coordinator.txn_ports import FaultPoint
from barnabas.metadata.names import TRANSACTION_STATE_TOPIC
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.describe_transactions import TransactionState
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.testing import Broker
from tests.broker._calls import (
    READ_COMMITTED,
    batch,
    fetch,
    fetch_request,
    list_offset,
    offsets,
    only_partition,
    partition_of,
    produce,
    values,
)
from tests.broker._groups import committed, find_coordinator, new_group, until_loaded
from tests.broker._transactions import TransactionalProducer, committed_values, describe
from tests.broker._wire import WireClient, until
from tests.broker.conftest import MakeClient, MakeTopic, StartBroker

LATEST = -1
PARTITIONS = 3


class TestReadersOfCommittedData:
    def test_see_a_transaction_when_it_is_committed_and_not_before(
        self, client: WireClient, topic: str
    ) -> None:
        producer = TransactionalProducer(client)
        producer.send(topic, b"a", b"b")
        assert committed_values(client, topic) == []
        assert list_offset(client, topic, LATEST, isolation=READ_COMMITTED).offset == 0
        assert list_offset(client, topic, LATEST).offset == 2
        producer.commit()
        assert committed_values(client, topic) == [b"a", b"b"]
        assert list_offset(client, topic, LATEST, isolation=READ_COMMITTED).offset == 3

    def test_never_see_an_aborted_one(self, client: WireClient, topic: str) -> None:
        producer = TransactionalProducer(client)
        producer.send(topic, b"gone")
        producer.abort()
        producer.send(topic, b"kept")
        producer.commit()
        assert committed_values(client, topic) == [b"kept"]
        assert b"gone" in values(fetch(client, topic))

    def test_who_wait_are_woken_by_the_marker(
        self, client: WireClient, connect: MakeClient, topic: str
    ) -> None:
        producer, reader = TransactionalProducer(client), connect()
        producer.send(topic, b"a")
        waiting = fetch_request(topic, 0, isolation=READ_COMMITTED, min_bytes=1, max_wait_ms=20_000)
        reader.send(waiting, 12)
        assert not reader.has_answer(0.05)
        producer.commit()
        found = only_partition(reader.receive(FetchResponse))
        assert offsets(found) == [0, 1]
        assert found.last_stable_offset == 2

    def test_are_held_back_by_the_oldest_open_transaction(self, client: WireClient, topic: str) -> None:
        slow, quick = TransactionalProducer(client), TransactionalProducer(client)
        produce(client, topic, batch(b"plain"))
        slow.send(topic, b"slow")
        quick.send(topic, b"quick")
        quick.commit()
        assert committed_values(client, topic) == [b"plain"]
        slow.abort()
        assert committed_values(client, topic) == [b"plain", b"quick"]


class TestOneAfterTheOther:
    def test_the_next_transaction_begins_at_once(self, client: WireClient, make_topic: MakeTopic) -> None:
        topic, producer = make_topic(PARTITIONS), TransactionalProducer(client)
        for number in range(20):
            for partition in range(PARTITIONS):
                producer.send(topic, b"%d" % number, partition=partition)
            assert producer.end(commit=number % 2 == 0) == 0
        for partition in range(PARTITIONS):
            assert committed_values(client, topic, partition) == [b"%d" % n for n in range(0, 20, 2)]

    def test_a_topic_deleted_in_between_does_not_keep_a_transaction_from_ending(
        self, broker: Broker, client: WireClient, make_topic: MakeTopic
    ) -> None:
        gone, kept, producer = make_topic(), make_topic(), TransactionalProducer(client)
        producer.send(gone, b"a")
        producer.send(kept, b"b")
        assert broker.node is not None
        assert broker.node.services is not None
        broker.run(broker.node.services.topics.delete(gone))
        producer.commit()
        assert describe(client, producer.transactional_id).transaction_state == "CompleteCommit"
        assert committed_values(client, kept) == [b"b"]


class TestTimeouts:
    def test_a_transaction_open_for_too_long_is_aborted_and_its_producer_fenced(
        self, start_broker: StartBroker
    ) -> None:
        broker = start_broker({"transaction.abort.timed.out.transaction.cleanup.interval.ms": "20"})
        broker.create_topic("t")
        with WireClient(broker.bootstrap_servers) as client:
            producer = TransactionalProducer(client, timeout_ms=50)
            producer.send("t", b"late")
            name = producer.transactional_id
            until(lambda: describe(client, name).transaction_state == "CompleteAbort")
            assert committed_values(client, "t") == []
            assert list_offset(client, "t", LATEST, isolation=READ_COMMITTED).offset == 2
            assert producer.end(commit=True) == ErrorCode.PRODUCER_FENCED
            assert producer.produce("t", b"later") == ErrorCode.INVALID_PRODUCER_EPOCH

    def test_an_id_that_is_not_used_for_long_is_forgotten(self, start_broker: StartBroker) -> None:
        broker = start_broker(
            {
                "transactional.id.expiration.ms": "50",
                "transaction.remove.expired.transaction.cleanup.interval.ms": "20",
            }
        )
        with WireClient(broker.bootstrap_servers) as client:
            producer = TransactionalProducer(client)
            name = producer.transactional_id
            until(lambda: describe(client, name).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
            assert producer.end(commit=False) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
            assert TransactionalProducer(client, name).producer_id != producer.producer_id


class TestARestart:
    def test_keeps_open_transactions_and_ids(self, folder: Path) -> None:
        with Broker(data_dir=str(folder)) as broker, WireClient(broker.bootstrap_servers) as client:
            broker.create_topic("t")
            producer = TransactionalProducer(client)
            producer.send("t", b"before")
            before = describe(client, producer.transactional_id)
        with Broker(data_dir=str(folder)) as broker, WireClient(broker.bootstrap_servers) as client:
            producer.client = client
            loaded = until(lambda: _loaded(client, producer.transactional_id))
            assert loaded == before
            assert producer.produce("t", b"after") == 0
            producer.commit()
            assert committed_values(client, "t") == [b"before", b"after"]

    def test_keeps_raising_epochs(self, folder: Path) -> None:
        given = []
        for _ in range(3):
            with Broker(data_dir=str(folder)) as broker, WireClient(broker.bootstrap_servers) as client:
                producer = TransactionalProducer(client, "same")
                given.append((producer.producer_id, producer.epoch))
        assert given == [(given[0][0], epoch) for epoch in range(3)]


@pytest.mark.slow
@pytest.mark.timeout(120)
class TestACrashAtEveryPointOfTheEnd:
    """The data folder is copied at each point: that is what the next start finds after kill -9 there."""

    @pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
    def test_ends_in_all_or_nothing(self, folder: Path, tmp_path: Path, commit: bool) -> None:
        images: list[tuple[FaultPoint, Path]] = []

        def reach(point: FaultPoint) -> None:
            image = tmp_path / f"{len(images)}-{point.name}"
            shutil.copytree(folder, image)
            images.append((point, image))

        group = new_group()
        with Broker(data_dir=str(folder), reach=reach) as broker:
            broker.create_topic("t", PARTITIONS)
            with WireClient(broker.bootstrap_servers) as client:
                find_coordinator(client)
                producer = TransactionalProducer(client)
                for partition in range(PARTITIONS):
                    producer.send("t", b"moved", partition=partition)
                assert producer.add_offsets(group) == 0
                assert producer.commit_offset(group, "t", 7) == 0
                assert producer.end(commit=commit) == 0
        points = [point for point, _ in images]
        assert points[:2] == [FaultPoint.DECIDING, FaultPoint.DECIDED]
        assert points.count(FaultPoint.MARKED_ONE) == PARTITIONS + 1
        assert points[-2:] == [FaultPoint.MARKED_ALL, FaultPoint.COMPLETED]
        for point, image in images:
            self._check(image, point, producer, group, commit)

    def _check(
        self, image: Path, point: FaultPoint, producer: TransactionalProducer, group: str, commit: bool
    ) -> None:
        name = producer.transactional_id
        with Broker(data_dir=str(image)) as broker, WireClient(broker.bootstrap_servers) as client:
            loaded = until(lambda: _loaded(client, name))
            assert loaded is not None
            producer.client = client
            if point is FaultPoint.DECIDING:
                assert loaded.transaction_state == "Ongoing"
                assert [committed_values(client, "t", p) for p in range(PARTITIONS)] == [[]] * PARTITIONS
                assert producer.end(commit=commit) == 0
            wanted = "CompleteCommit" if commit else "CompleteAbort"
            until(lambda: describe(client, name).transaction_state == wanted)
            until_loaded(client, group)
            seen = [committed_values(client, "t", partition) for partition in range(PARTITIONS)]
            assert seen == [[b"moved"] if commit else []] * PARTITIONS, point
            assert committed(client, group, "t")[0] == (7 if commit else -1), point
            # Nothing is left open: the same producer goes on, and so do its readers.
            assert producer.add("t") == [0]
            producer.abort()
            ends = [partition_of(broker, "t", partition) for partition in range(PARTITIONS)]
            assert all(each.last_stable_offset == each.high_watermark for each in ends), point


@pytest.mark.parametrize("count", [1, 3, 9])
def test_the_transaction_topic_may_be_made_by_hand_with_any_number_of_partitions(
    start_broker: StartBroker, count: int
) -> None:
    broker = start_broker()
    broker.create_topic("t")
    with WireClient(broker.bootstrap_servers) as client:
        wanted = CreatableTopic(name=TRANSACTION_STATE_TOPIC, num_partitions=count, replication_factor=1)
        (made,) = client.call(CreateTopicsRequest(topics=[wanted]), 4, CreateTopicsResponse).topics
        assert made.error_code == 0
        for number in range(10):
            producer = TransactionalProducer(client, f"by-hand-{number}")
            producer.send("t", b"%d" % number)
            producer.commit()
        assert committed_values(client, "t") == [b"%d" % number for number in range(10)]


def _loaded(client: WireClient, name: str) -> TransactionState | None:
    found = describe(client, name)
    return None if found.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else found
