"""Was a batch written whose answer was lost, when the broker will not say so by itself?

A broker remembers the last five batches of a producer and answers a repeat of one of them with its place.
But from a restart it comes back with the last one alone (that is all Kafka's snapshot file holds), and then
answers repeats of the four before it with OUT_OF_ORDER_SEQUENCE_NUMBER, as it does for a real gap.  Java's
client takes it for a gap, starts a new epoch and so writes those batches twice.  Here the leader is asked for
the last sequence it has of this producer (DescribeProducers): a batch at or below it is in the log.
"""

from typing import Final

from barnabas.client.cluster import Cluster
from barnabas.client.errors import KafkaError, error_for
from barnabas.client.producer_batch import ProducerBatch
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)

__all__ = ["is_covered", "was_written"]

_HALF: Final = 2**30  # of the sequence numbers, which begin again at 0


async def was_written(cluster: Cluster, node: int, batch: ProducerBatch) -> bool | None:
    """Whether the leader has the batch; None when it could not be asked now.

    False also when it will not tell: brokers before 2.8 have no such request, and others may not let this
    client read the topic.  Then Java's way is taken.
    """
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=batch.topic, partition_indexes=[batch.partition])]
    )
    try:
        answer = await cluster.request(node, request)
    except KafkaError as error:
        return None if error.retriable else False
    assert isinstance(answer, DescribeProducersResponse), answer
    for partition in (each for topic in answer.topics for each in topic.partitions):
        if partition.error_code != ErrorCode.NONE:
            return None if error_for(partition.error_code).retriable else False
        for producer in partition.active_producers:
            if producer.producer_id == batch.identity.producer_id:
                return is_covered(batch, producer.producer_epoch, producer.last_sequence)
    return False


def is_covered(batch: ProducerBatch, epoch: int, last_sequence: int) -> bool:
    """Whether a broker whose last sequence is this one has the batch."""
    if epoch != batch.identity.epoch or last_sequence < 0:
        return False
    last_of_batch = batch.sequence + batch.count - 1
    return (last_sequence - last_of_batch) % 2**31 < _HALF
