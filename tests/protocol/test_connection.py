"""Both ends talk to each other, over any cuts."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.base.buffers import join_buffers
from barnabas.protocol.api import API
from barnabas.protocol.connection import BlockPool, ClientConnection, ServerConnection, encode_response
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.schema import Message


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:stop] for start, stop in pairwise(edges)]


def produce(records: bytes) -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=records)
    return ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[partition])])


_REQUESTS = st.lists(
    st.builds(HeartbeatRequest, group_id=st.text(max_size=5))
    | st.builds(produce, st.binary(max_size=200_000)),
    max_size=6,
)


@settings(max_examples=25)
@given(_REQUESTS, st.lists(st.integers(0, 10**6), max_size=6), st.lists(st.integers(0, 500), max_size=6))
def test_every_request_arrives_and_every_answer_returns(
    messages: list[Message], cuts_there: list[int], cuts_back: list[int]
) -> None:
    pool = BlockPool()
    client = ClientConnection(client_id="me", frame_bytes_max=2**20, pool=pool)
    server = ServerConnection(frame_bytes_max=2**20, pool=pool)
    versions = {HeartbeatRequest: 4, ProduceRequest: 9}
    for message in messages:
        client.send(message, versions[type(message)])
    arrived = []
    for piece in pieces(join_buffers(client.data_to_send()), cuts_there):
        for request in server.receive(piece):
            arrived.append(API[request.api_key].request.decode(request.api_version, request.body))
            answer: Message = HeartbeatResponse() if request.api_key == 12 else ProduceResponse()
            key, version = request.api_key, request.api_version
            server.finish(request.ticket, encode_response(key, version, request.correlation_id, answer))
    assert arrived == messages
    answers = []
    for piece in pieces(join_buffers(server.data_to_send()), cuts_back):
        answers += client.receive(piece)
    assert [answer.correlation_id for answer in answers] == list(range(len(messages)))
    assert (client.in_flight, client.fault, server.fault) == (0, None, None)
