"""Whatever a well-formed request asks for: it is answered or its connection closed, and no handler breaks."""

import logging
import random
from collections.abc import Iterator

import pytest

from barnabas.broker.handlers import HANDLERS, Handler
from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.testing import Broker
from tests.broker._calls import batch, fetch, produce, topic_id_of, values
from tests.broker._random_requests import Maker
from tests.broker._wire import ConnectionEnded, WireClient
from tests.protocol.recorded import BROKERS, exchanges

REQUESTS_PER_VERSION = 12
DAMAGED_REQUESTS = 300
# They may wait for other members, or for a transaction to end.
MAY_WAIT = {ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP}


@pytest.fixture(scope="module")
def victim() -> Iterator[Broker]:
    with Broker({"group.min.session.timeout.ms": "1", "barnabas.shutdown.timeout.ms": "0"}) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("handler", HANDLERS, ids=lambda handler: handler.key.name)
def test_it_is_answered_or_refused(
    victim: Broker, handler: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    api = API[handler.key]
    with caplog.at_level(logging.ERROR, logger="barnabas"):
        for version in range(handler.lowest, handler.highest + 1):
            with WireClient(victim.bootstrap_servers) as client:
                client.call(
                    MetadataRequest.decode(1, b"\0\0\0\1\0\5known"), 1, MetadataResponse
                )  # others may have deleted it
            maker = Maker(handler.key * 100 + version, [topic_id_of(victim, "known")])
            for _ in range(REQUESTS_PER_VERSION):
                request = maker.message(api.request, version)
                with WireClient(victim.bootstrap_servers) as client:
                    try:
                        client.send(request, version)
                    except ProtocolError:
                        continue  # a field that this version cannot carry
                    if isinstance(request, ProduceRequest) and request.acks == 0:
                        continue
                    if handler.key in MAY_WAIT and not client.has_answer(0.02):
                        continue
                    try:
                        client.receive(api.response)
                    except ConnectionEnded:
                        pytest.fail(f"closed: {request!r} v{version}")
    broken = [r for r in caplog.records if r.exc_info or "failed" in r.getMessage()]
    assert [(r.getMessage(), r.exc_info) for r in broken] == []


@pytest.mark.slow
@pytest.mark.parametrize("kafka", BROKERS)
def test_recorded_requests_with_some_bytes_changed_break_nothing(
    victim: Broker, kafka: str, caplog: pytest.LogCaptureFixture
) -> None:
    choose = random.Random(kafka)
    frames = [exchange.request for exchange in exchanges(kafka)]
    with caplog.at_level(logging.ERROR, logger="barnabas"):
        for _ in range(DAMAGED_REQUESTS):
            frame = bytearray(choose.choice(frames))
            for _ in range(choose.choice((1, 1, 2, 5))):
                # The header stays: what is wanted are bodies that reach a handler.
                frame[choose.randrange(8, len(frame))] = choose.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
            with WireClient(victim.bootstrap_servers) as client:
                client.send_frame(bytes(frame))
                client.has_answer(0.002)
    broken = [r for r in caplog.records if r.exc_info or "failed" in r.getMessage()]
    assert [(r.getMessage(), r.exc_info) for r in broken] == []


@pytest.mark.slow
def test_the_broker_serves_after_all_that(victim: Broker) -> None:
    victim.create_topic("afterwards")
    with WireClient(victim.bootstrap_servers) as client:
        assert produce(client, "afterwards", batch(b"alive")).error_code in (0, 10)
        assert values(fetch(client, "afterwards")) in ([b"alive"], [])
