"""A broker that clients reach only through a fault proxy, and that can be restarted under them."""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, TopicPartition

from barnabas.testing import Broker
from barnabas.testing.fault_proxy import FaultProxy
from tests._kafka import free_ports


class FaultyBroker:
    """`bootstrap_servers` is the proxy's address; `direct` is the broker's own."""

    def __init__(self, data_dir: str, settings: Mapping[str, str] | None = None) -> None:
        self.proxy = FaultProxy()
        self.port = free_ports(1)[0]
        self.bootstrap_servers = self.proxy.address
        self.direct = f"127.0.0.1:{self.port}"
        self._settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "advertised.listeners": f"PLAINTEXT://{self.proxy.address}",
            **(settings or {}),
        }
        self._data_dir = data_dir
        self.broker = Broker(self._settings, data_dir=data_dir)

    def start(self) -> None:
        self.broker.start()
        self.proxy.start(self.port)

    def stop(self) -> None:
        self.proxy.stop()
        self.broker.stop()

    def restart(self) -> None:
        """The broker ends cleanly and comes back with its data; its port is dead in between."""
        self.broker.stop()
        self.broker = Broker(self._settings, data_dir=self._data_dir)
        self.broker.start()


@contextlib.contextmanager
def faulty_broker(settings: Mapping[str, str] | None = None) -> Iterator[FaultyBroker]:
    with tempfile.TemporaryDirectory(prefix="barnabas-faulty-") as folder:
        broker = FaultyBroker(folder, settings)
        broker.start()
        try:
            yield broker
        finally:
            broker.stop()


def read_all(
    bootstrap_servers: str, topic: str, partitions: int, count: int, *, timeout_s: float = 30
) -> dict[int, list[bytes]]:
    """The values of a topic per partition, as librdkafka reads them up to the end of each.

    Fails when fewer come in time; a surplus shows in the result.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values: dict[int, list[bytes]] = {index: [] for index in range(partitions)}
    ended: set[int] = set()
    waited_s = 0.0
    while len(ended) < partitions or sum(map(len, values.values())) < count:
        messages = consumer.consume(10_000, 0.1)
        waited_s += 0.0 if messages else 0.1
        assert waited_s < timeout_s, f"{sum(map(len, values.values()))} of {count} records came"
        for message in messages:
            partition = message.partition()
            assert partition is not None
            if message.error() is not None:
                ended.add(partition)
            else:
                ended.discard(partition)
                value = message.value()
                assert isinstance(value, bytes)
                values[partition].append(value)
    consumer.close()
    return values
