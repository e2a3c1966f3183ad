"""Producer batches with records, as the tests of the producer's parts need them."""

from barnabas.client.producer_batch import ProducerBatch


class NoHome:
    def hasten(self, batch: object) -> None: ...

    def hasten_soon(self, batch: object) -> None: ...


def make_batch(
    number: int = 1,
    count: int = 2,
    *,
    topic: str = "t",
    partition: int = 0,
    size_limit: int = 16_384,
    now_ms: int = 0,
    value: bytes = b"value",
) -> ProducerBatch:
    batch = ProducerBatch(
        topic, partition, NoHome(), number=(number,), size_limit=size_limit, reserved=0, now_ms=now_ms
    )
    for index in range(count):
        assert batch.add(1_000 + index, b"k%d" % index, value, (("h", b"x"),), None) is not None
    return batch
