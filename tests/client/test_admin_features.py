"""Tests of the admin's calls about features."""

import asyncio
from collections.abc import Callable

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.admin_features import FeatureChange
from barnabas.client.aio import Admin as AsyncAdmin
from barnabas.client.errors import KafkaError
from barnabas.client.producer import Producer
from barnabas.protocol.codes import ErrorCode
from tests.client._consumers import consumer_of, read
from tests.client._kit import settings_for
from tests.client._servers import ClientServer

FEATURE = "transaction.version"


def test_levels_are_described(admin: Admin) -> None:
    found = admin.describe_features()
    assert found.epoch >= 0
    feature = found[FEATURE]
    assert (feature.name, feature.level, feature.lowest, feature.highest) == (FEATURE, 2, 0, 2)


def test_by_the_asynchronous_admin_too(bootstrap: str) -> None:
    async def main() -> None:
        async with AsyncAdmin(settings_for(bootstrap)) as admin:
            assert (await admin.describe_features())[FEATURE].level == 2
            await admin.update_features({FEATURE: 2})

    asyncio.run(main())


@pytest.mark.parametrize(
    ("level", "change"),
    [(9, FeatureChange.UPGRADE), (1, FeatureChange.UPGRADE), (-1, FeatureChange.DOWNGRADE)],
)
def test_what_cannot_be_is_refused(admin: Admin, level: int, change: FeatureChange) -> None:
    with pytest.raises(KafkaError) as caught:
        admin.update_features({FEATURE: level}, change=change)
    assert caught.value.code is ErrorCode.INVALID_UPDATE_VERSION
    assert admin.describe_features()[FEATURE].level == 2


@pytest.mark.slow
def test_transactions_go_on_while_their_version_is_switched(
    own_server: ClientServer, name: Callable[[str], str]
) -> None:
    if own_server.kind == "kafka":
        pytest.skip("Apache Kafka refuses a producer that began with version 2 once that is off")
    bootstrap, topic = own_server.bootstrap_servers, name("topic")

    def producer() -> Producer:
        return Producer(settings_for(bootstrap), transactional_id="x", linger_ms=0)

    with Admin(settings_for(bootstrap)) as admin:
        admin.create_topic(topic, 1)
        admin.update_features({FEATURE: 0}, change=FeatureChange.DOWNGRADE, validate_only=True)
        assert admin.describe_features()[FEATURE].level == 2
        with producer() as first:
            with first.transaction():
                first.send(topic, b"v2")
            admin.update_features({FEATURE: 0}, change=FeatureChange.DOWNGRADE)
            assert admin.describe_features()[FEATURE].level == 0
            with first.transaction():
                first.send(topic, b"still v2")
        with producer() as second:
            with second.transaction():
                second.send(topic, b"v1")
            admin.update_features({FEATURE: 2})
            with second.transaction():
                second.send(topic, b"still v1")
        with producer() as third, third.transaction():
            third.send(topic, b"v2 again")
    with consumer_of(bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        values = [record.value for record in read(consumer, 5)]
    assert values == [b"v2", b"still v2", b"v1", b"still v1", b"v2 again"]
