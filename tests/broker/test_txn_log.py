"""barnabas.broker.txn_log: what the coordinators append is acknowledged as acks=all is, and read back."""

import asyncio
from pathlib import Path

import pytest

from barnabas.broker.coordinator_appends import CoordinatorAppends
from barnabas.broker.services import Services
from barnabas.broker.txn_log import TransactionTopicLog, replay_transactions
from barnabas.coordinator.ports import KeyValue
from barnabas.coordinator.txn_loading import TransactionLoad
from barnabas.coordinator.txn_records import transaction_record, transaction_tombstone
from barnabas.coordinator.txn_state import Snapshot
from barnabas.coordinator.txn_table import OwnedTransactions
from barnabas.metadata.names import TRANSACTION_STATE_TOPIC
from barnabas.protocol.codes import ErrorCode
from barnabas.replication.partition import Partition
from barnabas.testing import Broker
from tests.broker._transactions import TransactionalProducer, find_transaction_coordinator
from tests.broker._wire import WireClient

SNAPSHOT = Snapshot(7, 0, 1_000)


def services_of(broker: Broker) -> Services:
    assert broker.node is not None
    assert broker.node.services is not None
    return broker.node.services


async def append(services: Services, *records: KeyValue, partition: int = 0) -> ErrorCode:
    appends = CoordinatorAppends(services.purgatory, services.clock, services.flusher)
    answered: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    TransactionTopicLog(services.partitions, appends).append(partition, records, answered.set_result)
    error = await answered
    await appends.drain()
    return error


def led(services: Services, partition: int = 0) -> Partition:
    found = services.partitions.get(TRANSACTION_STATE_TOPIC, partition)
    assert found is not None
    return found


def test_what_is_appended_is_read_back(broker: Broker, client: WireClient) -> None:
    find_transaction_coordinator(client)
    services = services_of(broker)
    load = TransactionLoad(0, OwnedTransactions(0))

    async def work() -> None:
        assert await append(services, transaction_record("a", SNAPSHOT, 0)) is ErrorCode.NONE
        assert await append(services, transaction_record("b", SNAPSHOT, 2)) is ErrorCode.NONE
        assert await append(services, transaction_tombstone("a")) is ErrorCode.NONE
        log = led(services).log
        await replay_transactions(
            log, load, end_offset=log.log_end_offset, chunk_bytes=1, offload=services.offload
        )

    broker.run(work())
    assert "b" in {each.transactional_id for each in load.transactions()}
    assert "a" not in {each.transactional_id for each in load.transactions()}
    assert load.fault_count == 0


def test_a_partition_that_is_not_here_is_unknown(broker: Broker) -> None:
    error = broker.run(append(services_of(broker), transaction_tombstone("a"), partition=99))
    assert error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_that_is_led_elsewhere_says_so(folder: Path) -> None:
    with Broker(data_dir=str(folder)) as broker, WireClient(broker.bootstrap_servers) as client:
        find_transaction_coordinator(client)
        services = services_of(broker)

        async def work() -> ErrorCode:
            led(services).resign()
            return await append(services, transaction_tombstone("a"))

        assert broker.run(work()) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("messages", ["1", "1000"])
def test_it_is_on_disk_when_flush_messages_wants_that(folder: Path, messages: str) -> None:
    settings = {"log.flush.interval.messages": messages}
    with Broker(settings, data_dir=str(folder)) as broker, WireClient(broker.bootstrap_servers) as client:
        broker.create_topic("t")
        producer = TransactionalProducer(client)
        producer.send("t", b"x")
        producer.commit()
        services = services_of(broker)
        home = services.transactions.partition_for(producer.transactional_id)
        log = led(services, home).log
        assert (log.recovery_point == log.log_end_offset) == (messages == "1")
