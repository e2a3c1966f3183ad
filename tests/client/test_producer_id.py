"""Tests of asking for a producer id."""

import asyncio

import pytest

from barnabas.client.cluster import Cluster
from barnabas.client.config import PRODUCER, parse
from barnabas.client.errors import ClusterAuthorization
from barnabas.client.producer_batch import Identity
from barnabas.client.producer_id import new_identity
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.client._kit import settings_for
from tests.client._produce_fake import ProduceFake


def ask(broker: ProduceFake) -> Identity:
    async def main() -> Identity:
        async with broker:
            cluster = Cluster(parse(PRODUCER, settings_for(broker.address)))
            await cluster.start()
            try:
                return await new_identity(cluster)
            finally:
                await cluster.close()

    return asyncio.run(main())


def test_it_comes_with_its_epoch() -> None:
    broker = ProduceFake()
    assert ask(broker) == Identity(101, 0)
    requests = [message for _, _, message in broker.seen if isinstance(message, InitProducerIdRequest)]
    assert [request.transactional_id for request in requests] == [None]


def test_a_refusal_is_raised() -> None:
    broker = ProduceFake()
    broker.responses[ApiKey.INIT_PRODUCER_ID] = lambda message: InitProducerIdResponse(error_code=31)
    with pytest.raises(ClusterAuthorization, match="producer id"):
        ask(broker)


def test_two_are_never_the_same(bootstrap: str) -> None:
    async def main() -> set[Identity]:
        cluster = Cluster(parse(PRODUCER, settings_for(bootstrap)))
        await cluster.start()
        try:
            return {await new_identity(cluster) for _ in range(5)}
        finally:
            await cluster.close()

    assert len(asyncio.run(main())) == 5
