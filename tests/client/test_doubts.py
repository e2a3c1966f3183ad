"""Tests of finding out whether a batch was written: with scripted answers, and after a real restart."""

import asyncio

import pytest

from barnabas.client.cluster import Cluster
from barnabas.client.config import PRODUCER, parse
from barnabas.client.doubts import is_covered, was_written
from barnabas.client.producer import Producer
from barnabas.client.producer_batch import Identity, ProducerBatch
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from barnabas.protocol.versions import Versions
from tests.client._batches import make_batch
from tests.client._fake import CUT
from tests.client._faulty import FaultyBroker, faulty_broker, read_all
from tests.client._kit import settings_for
from tests.client._produce_fake import ProduceFake


def batch_at(sequence: int, epoch: int = 3) -> ProducerBatch:
    batch = make_batch(count=2)
    batch.set_sequence(Identity(7, epoch), sequence)
    return batch


class TestCoverage:
    @pytest.mark.parametrize(
        ("last", "covered"), [(9, False), (10, False), (11, True), (500, True), (-1, False)]
    )
    def test_a_batch_of_10_and_11(self, last: int, covered: bool) -> None:
        assert is_covered(batch_at(10), 3, last) is covered

    def test_another_epoch_says_nothing(self) -> None:
        assert not is_covered(batch_at(10), 4, 500)

    def test_behind_the_highest_number_it_goes_on_at_0(self) -> None:
        assert is_covered(batch_at(2**31 - 4), 3, 5)
        assert not is_covered(batch_at(5), 3, 2**31 - 4)


class TestAsking:
    def ask(self, answer: object, *, offered: bool = True) -> bool | None:
        async def main() -> bool | None:
            async with ProduceFake() as broker:
                broker.responses[ApiKey.DESCRIBE_PRODUCERS] = lambda message: answer
                if not offered:
                    broker.offered = {
                        key: Versions(versions.low, versions.high)
                        for key, versions in broker.offered.items()
                        if key is not ApiKey.DESCRIBE_PRODUCERS
                    }
                cluster = Cluster(parse(PRODUCER, settings_for(broker.address)))
                await cluster.start()
                try:
                    return await was_written(cluster, broker.node, batch_at(10))
                finally:
                    await cluster.close()

        return asyncio.run(main())

    def answer(self, *producers: ProducerState, error_code: int = 0) -> DescribeProducersResponse:
        partition = PartitionResponse(
            partition_index=0, error_code=error_code, active_producers=list(producers)
        )
        return DescribeProducersResponse(topics=[TopicResponse(name="t", partitions=[partition])])

    def test_the_leader_has_it(self) -> None:
        other = ProducerState(producer_id=6, producer_epoch=3, last_sequence=0)
        ours = ProducerState(producer_id=7, producer_epoch=3, last_sequence=11)
        assert self.ask(self.answer(other, ours)) is True

    def test_it_has_not(self) -> None:
        assert self.ask(self.answer(ProducerState(producer_id=7, producer_epoch=3, last_sequence=9))) is False

    def test_it_does_not_know_us(self) -> None:
        assert self.ask(self.answer()) is False

    def test_it_led_before(self) -> None:
        assert self.ask(self.answer(error_code=6)) is None

    def test_it_may_not_tell(self) -> None:
        assert self.ask(self.answer(error_code=29)) is False

    def test_it_cannot_be_reached(self) -> None:
        assert self.ask(CUT) is None

    def test_it_does_not_know_the_question(self) -> None:
        assert self.ask(None, offered=False) is False


def log_end(broker: FaultyBroker) -> int:
    node = broker.broker.node
    assert node is not None
    assert node.services is not None
    partition = node.services.partitions.get("t", 0)
    assert partition is not None
    return partition.log.log_end_offset


@pytest.mark.slow
def test_five_batches_whose_answers_are_lost_in_a_restart_are_not_written_twice() -> None:
    with faulty_broker() as broker:
        broker.broker.create_topic("t", 1)
        settings = settings_for(broker.bootstrap_servers, **{"batch.size": 200, "linger.ms": 0})
        with Producer(settings) as producer:
            producer.send("t", b"first").result(10)
            broker.proxy.stall(answers_only=True)
            futures = [producer.send("t", b"%d" % number + b"x" * 300) for number in range(5)]
            waiting = futures[-1]
            while log_end(broker) < 6:
                with pytest.raises(TimeoutError):
                    waiting.result(0.01)
            broker.proxy.cut()
            broker.restart()
            broker.proxy.heal()
            producer.flush(20)
            last = producer.send("t", b"last").result(10)
            offsets = [future.result(0).offset for future in futures]
        assert last.offset == 6
        assert offsets[-1] == 5
        assert all(offset in (-1, number + 1) for number, offset in enumerate(offsets))
        values = read_all(broker.direct, "t", 1, 7)[0]
        assert [value[:1] for value in values] == [b"f", b"0", b"1", b"2", b"3", b"4", b"l"]
