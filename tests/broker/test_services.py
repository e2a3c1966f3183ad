"""barnabas.broker.services: what handlers reach is always current."""

from barnabas.metadata.image import ConfigResourceType
from barnabas.testing import Broker
from tests.broker.conftest import StartBroker, unique_name


def test_the_image_is_the_newest(broker: Broker) -> None:
    assert broker.node is not None
    services = broker.node.services
    assert services is not None
    name = unique_name()
    broker.create_topic(name)
    assert name in services.image.topics
    assert services.image is services.cluster.image


def test_so_are_the_settings(start_broker: StartBroker) -> None:
    broker = start_broker({"message.max.bytes": "10"})
    assert broker.node is not None
    services = broker.node.services
    assert services is not None
    assert services.settings.integer("message.max.bytes") == 10
    change = {"message.max.bytes": "20"}
    broker.run(services.configs.replace(ConfigResourceType.BROKER, "", change, validate_only=False))
    assert services.settings.integer("message.max.bytes") == 20
