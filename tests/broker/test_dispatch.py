"""barnabas.broker.dispatch: order, one answer each, bad bytes that harm one connection only (D1-D3)."""

import logging
import struct

import pytest

from barnabas.broker.handlers import HANDLERS
from barnabas.broker.handlers import fetch as handler
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.testing import Broker
from tests.broker._calls import (
    batch,
    fetch,
    fetch_request,
    image_of,
    only_partition,
    produce,
    produce_request,
    values,
)
from tests.broker._wire import WireClient, until
from tests.broker.conftest import MakeClient, unique_name

SERVED = {handler.key: handler for handler in HANDLERS}


def create(*names: str) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics)


def known(name: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)


def header(key: int, version: int, *, flexible: bool = False) -> bytes:
    return struct.pack(">hhih", key, version, 1, 1) + b"c" + (b"\0" if flexible else b"")


class TestRequestsOfOneConnectionBeginInTheirOrder:
    def test_an_awaited_one_holds_back_the_later_ones(self, client: WireClient) -> None:
        name = unique_name()
        client.send(create(name), 4)
        client.send(known(name), 9)
        client.send(produce_request(name, batch(b"x")), 9)
        assert client.receive(CreateTopicsResponse).topics[0].error_code == 0
        assert client.receive(MetadataResponse).topics[0].error_code == 0
        assert client.receive(ProduceResponse).responses[0].partition_responses[0].error_code == 0

    def test_several_awaited_ones_follow_each_other(self, client: WireClient) -> None:
        names = [unique_name() for _ in range(5)]
        for name in names:
            client.send(create(name), 4)
            client.send(create(name), 4)
            client.send(InitProducerIdRequest(transactional_id=None), 4)
        codes = []
        for _ in names:
            codes.append(client.receive(CreateTopicsResponse).topics[0].error_code)
            codes.append(client.receive(CreateTopicsResponse).topics[0].error_code)
            assert client.receive(InitProducerIdResponse).error_code == 0
        assert codes == [0, 36] * 5

    def test_other_connections_are_not_held_back(self, connect: MakeClient) -> None:
        busy, other = connect(), connect()
        busy.send(create(*[unique_name() for _ in range(20)]), 4)
        assert other.call(MetadataRequest(topics=[]), 9, MetadataResponse).topics == []
        assert len(busy.receive(CreateTopicsResponse).topics) == 20

    def test_many_pipelined_requests_are_all_answered(self, client: WireClient, topic: str) -> None:
        for number in range(300):
            client.send(produce_request(topic, batch(b"%d" % number)), 9)
        for number in range(300):
            (answer,) = client.receive(ProduceResponse).responses
            assert answer.partition_responses[0].base_offset == number


class TestWhatIsNoRequest:
    """Each closes its connection; a second one goes on."""

    @pytest.fixture
    def witness(self, connect: MakeClient, topic: str) -> WireClient:
        witness = connect()
        produce(witness, topic, batch(b"before"))
        return witness

    def check(self, bad: WireClient, witness: WireClient, topic: str) -> None:
        assert bad.is_closed_by_broker()
        assert produce(witness, topic, batch(b"after")).error_code == 0
        assert values(fetch(witness, topic)) == [b"before", b"after"]

    @pytest.mark.parametrize("key", [999, -1, 32767])
    def test_an_unknown_api(self, connect: MakeClient, witness: WireClient, topic: str, key: int) -> None:
        bad = connect()
        bad.send_frame(header(key, 0))
        self.check(bad, witness, topic)

    def test_an_api_between_brokers(self, connect: MakeClient, witness: WireClient, topic: str) -> None:
        assert ApiKey.UPDATE_METADATA not in SERVED
        bad = connect()
        bad.send_frame(header(ApiKey.UPDATE_METADATA, 0) + bytes(20))
        self.check(bad, witness, topic)

    @pytest.mark.parametrize("version", [14, 99, -1])
    def test_a_version_that_is_not_offered(
        self, connect: MakeClient, witness: WireClient, topic: str, version: int
    ) -> None:
        bad = connect()
        bad.send_frame(header(ApiKey.PRODUCE, version))
        self.check(bad, witness, topic)

    @pytest.mark.parametrize("key", sorted(key for key in SERVED if key != ApiKey.API_VERSIONS))
    def test_a_body_that_cannot_be_decoded(
        self, connect: MakeClient, witness: WireClient, topic: str, key: ApiKey
    ) -> None:
        bad = connect()
        handler = SERVED[key]
        body = b"\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff"
        bad.send_frame(header(key, handler.lowest) + body)
        if key in (ApiKey.LIST_GROUPS, ApiKey.DESCRIBE_CLUSTER):
            return  # their oldest requests are empty, and what follows a message is not looked at
        self.check(bad, witness, topic)

    @pytest.mark.parametrize("size", [-1, 104_857_601, 2**31 - 1])
    def test_a_size_that_cannot_be(
        self, connect: MakeClient, witness: WireClient, topic: str, size: int
    ) -> None:
        bad = connect()
        bad.send_bytes(struct.pack(">i", size) + b"abc")
        self.check(bad, witness, topic)

    @pytest.mark.parametrize("payload", [b"", b"\0", b"\0\3\0\1\0\0\0", b"\0\3\0\1\0\0\0\1\0\xffabc"])
    def test_a_frame_without_a_header(
        self, connect: MakeClient, witness: WireClient, topic: str, payload: bytes
    ) -> None:
        bad = connect()
        bad.send_frame(payload)
        self.check(bad, witness, topic)

    def test_words_of_another_protocol(self, connect: MakeClient, witness: WireClient, topic: str) -> None:
        bad = connect()
        bad.send_bytes(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.check(bad, witness, topic)

    def test_answers_owed_before_it_are_still_given(self, connect: MakeClient) -> None:
        client = connect()
        client.send(MetadataRequest(topics=[]), 9)
        client.send_frame(header(ApiKey.METADATA, 9, flexible=True) + b"\xff\xff")
        assert client.receive(MetadataResponse).topics == []
        assert client.is_closed_by_broker()

    def test_nothing_behind_it_is_begun_even_if_it_was_held_back(
        self, broker: Broker, connect: MakeClient
    ) -> None:
        client, first, never = connect(), unique_name(), unique_name()
        rubbish = header(ApiKey.METADATA, 9, flexible=True) + b"\xff\xff"
        client.send_bytes(
            client.frame(create(first), 4)
            + struct.pack(">i", len(rubbish))
            + rubbish
            + client.frame(create(never), 4)
        )
        assert client.receive(CreateTopicsResponse).topics[0].error_code == 0
        assert client.is_closed_by_broker()
        connect().call(create(unique_name()), 4, CreateTopicsResponse)  # commands are done one by one
        assert first in image_of(broker).topics
        assert never not in image_of(broker).topics


class TestApiVersions:
    def test_it_is_answered_whatever_its_version(self, client: WireClient) -> None:
        client.send_frame(header(ApiKey.API_VERSIONS, 77))
        assert ApiVersionsResponse.decode(0, client.receive_frame()[4:]).error_code == 35
        request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
        assert client.call(request, 3, ApiVersionsResponse).error_code == 0

    def test_also_behind_an_awaited_request(self, client: WireClient) -> None:
        client.send(create(unique_name()), 4)
        client.send_frame(header(ApiKey.API_VERSIONS, 77))
        client.receive(CreateTopicsResponse)
        assert ApiVersionsResponse.decode(0, client.receive_frame()[4:]).error_code == 35


def test_a_handler_that_fails_closes_the_connection_and_logs(
    broker: Broker, connect: MakeClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert broker.node is not None
    services = broker.node.services
    assert services is not None

    def broken(*_: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(type(services.groups), "list_groups", broken)
    client = connect()
    with caplog.at_level(logging.ERROR, logger="barnabas.broker.dispatch"):
        client.send(ListGroupsRequest(), 4)
        assert client.is_closed_by_broker()
    assert [record.getMessage() for record in caplog.records] == ["LIST_GROUPS v4 failed"]


def test_so_does_one_that_fails_after_it_was_parked_and_the_others_go_on(
    broker: Broker,
    connect: MakeClient,
    topic: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert broker.node is not None
    services = broker.node.services
    assert services is not None
    unlucky, lucky, writer = connect(), connect(), connect()
    before = len(services.purgatory)
    unlucky.send(fetch_request(topic, 0, max_wait_ms=60_000, min_bytes=1, isolation=1), 12)
    until(lambda: len(services.purgatory) == before + 1)
    lucky.send(fetch_request(topic, 0, max_wait_ms=60_000, min_bytes=1), 12)
    until(lambda: len(services.purgatory) == before + 2)
    response = handler._Attempt.response

    def broken(attempt: handler._Attempt) -> FetchResponse:
        if attempt._committed_only:
            raise RuntimeError("a bug of ours")
        return response(attempt)

    monkeypatch.setattr(handler._Attempt, "response", broken)
    with caplog.at_level(logging.ERROR, logger="barnabas"):
        produce(writer, topic, batch(b"x"))
        assert unlucky.is_closed_by_broker()
    assert values(only_partition(lucky.receive(FetchResponse))) == [b"x"]
    (record,) = caplog.records
    assert f"an operation that waited for (('{topic}', 0), <Connection" in record.getMessage()


def test_an_awaiting_handler_that_fails_does_so_too(
    broker: Broker, connect: MakeClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert broker.node is not None
    services = broker.node.services
    assert services is not None

    async def broken(*_: object) -> int:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(type(services.producer_ids), "next", broken)
    client = connect()
    with caplog.at_level(logging.ERROR, logger="barnabas.broker.dispatch"):
        client.send(InitProducerIdRequest(transactional_id=None), 4)
        client.send(MetadataRequest(topics=[]), 9)
        assert client.is_closed_by_broker()
    assert [record.getMessage() for record in caplog.records] == ["INIT_PRODUCER_ID v4 failed"]
