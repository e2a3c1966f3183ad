"""Where a producer's name comes from: InitProducerId, which any broker answers."""

from typing import Final

from barnabas.client.cluster import Cluster
from barnabas.client.errors import error_for
from barnabas.client.producer_batch import Identity
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

__all__ = ["new_identity"]

_NO_TRANSACTION_TIMEOUT_MS: Final = 2**31 - 1


async def new_identity(cluster: Cluster) -> Identity:
    """A producer id that nobody had before, at epoch 0.  Raises KafkaError; does not try again by itself."""
    node = await cluster.any_node()
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_TIMEOUT_MS)
    answer = await cluster.request(node, request)
    assert isinstance(answer, InitProducerIdResponse), answer
    if answer.error_code != ErrorCode.NONE:
        raise error_for(answer.error_code, subject="producer id")
    return Identity(answer.producer_id, answer.producer_epoch)
