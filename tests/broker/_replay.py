"""Recorded requests of real clients, made fit to be asked again, and answers compared field by field.

The recordings are samples of conversations with Apache Kafka, so what depends on requests that were not
recorded is made harmless: fetches begin at 0 and without a session, batches outside transactions lose their
producer.
Names that a broker makes up (member ids, topic ids) are replaced by those that ours made up in their place.
"""

import struct
from collections.abc import Iterator
from typing import Any

from barnabas.base.buffers import FileSlice
from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.framing import encode_request
from barnabas.protocol.headers import decode_request_header, response_body_position
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.schema import Message, Struct
from barnabas.records.batch import RecordBatch, seal_batch
from tests.broker._wire import WireClient
from tests.protocol.recorded import Exchange

_PRODUCER = struct.Struct(">qhi")
_PRODUCER_AT = 43
MADE_UP = ("member_id", "leader", "topic_id")
PRODUCER_IDS = ("producer_id", "v3_and_below_producer_id")
GENERATIONS = ("generation_id", "generation_id_or_member_epoch")
NAMES = ("name", "resource_name", "api_key", "partition_index", "index", "group_id", "transactional_id")


def request_of(exchange: Exchange) -> Message:
    frame = memoryview(bytearray(exchange.request))
    body = frame[decode_request_header(frame)[4] :]
    return API[exchange.api_key].request.decode(exchange.api_version, body)


def response_of(exchange: Exchange) -> Message:
    frame = memoryview(exchange.response)
    position = response_body_position(frame, exchange.api_key, exchange.api_version)
    return API[exchange.api_key].response.decode(exchange.api_version, frame[position:])


class Replay:
    """Asks recorded requests of one client again, one after the other."""

    def __init__(self, client: WireClient) -> None:
        self._client = client
        self._names: dict[str | bytes, str | bytes] = {}
        self._generations: dict[str, int] = {}
        self._producer_ids: dict[int, int] = {}

    def ask(self, exchange: Exchange) -> Message:
        """Our answer to the recorded request."""
        request = request_of(exchange)
        self._translate(request)
        self._rejuvenate(request)
        self._make_harmless(request)
        frame = encode_request(exchange.api_key, exchange.api_version, 1, "rdkafka", request)
        self._client.send_bytes(b"".join(part for part in frame if not isinstance(part, FileSlice)))
        answer = memoryview(self._client.receive_frame())
        position = response_body_position(answer, exchange.api_key, exchange.api_version)
        return API[exchange.api_key].response.decode(exchange.api_version, answer[position:])

    def learn_generation(self, exchange: Exchange, ours: Message) -> None:
        """A rebalance that was not recorded leaves the group in another generation here."""
        if isinstance(ours, JoinGroupResponse) and not ours.error_code:
            request = request_of(exchange)
            assert isinstance(request, JoinGroupRequest)
            self._generations[request.group_id] = ours.generation_id

    def _rejuvenate(self, request: Message) -> None:
        generation = self._generations.get(getattr(request, "group_id", ""), -1)
        for name in GENERATIONS:
            if getattr(request, name, -1) > 0 and generation > 0:
                setattr(request, name, generation)

    def learn(self, recorded: Struct, ours: Struct) -> None:
        """Remembers which names of ours stand for which recorded ones."""
        for field in recorded.FIELDS:
            old, new = getattr(recorded, field.name), getattr(ours, field.name)
            if field.name in PRODUCER_IDS and old >= 0:
                self._producer_ids[old] = new
            elif field.name in MADE_UP and old and new:
                self._names[bytes(old) if isinstance(old, memoryview) else old] = new
            elif isinstance(old, Struct) and isinstance(new, Struct):
                self.learn(old, new)
            elif isinstance(old, list) and isinstance(new, list):
                for one, other in zip(old, new, strict=False):
                    if isinstance(one, Struct):
                        self.learn(one, other)

    def _translate(self, part: Struct) -> None:
        for field in part.FIELDS:
            value = getattr(part, field.name)
            if isinstance(value, Struct):
                self._translate(value)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, Struct):
                        self._translate(item)
            elif isinstance(value, str | bytes) and value in self._names:
                setattr(part, field.name, self._names[value])
            elif field.name in PRODUCER_IDS:
                setattr(part, field.name, self._producer_ids.get(value, value))

    def _make_harmless(self, request: Message) -> None:
        if isinstance(request, FetchRequest):
            request.max_wait_ms = 0
            request.session_id, request.session_epoch = 0, -1
            request.forgotten_topics_data = []
            for fetched in request.topics:
                for part in fetched.partitions:
                    part.fetch_offset = 0
        elif isinstance(request, ProduceRequest):
            for topic in request.topic_data:
                for data in topic.partition_data:
                    assert data.records is not None
                    data.records = self._reproduced(bytearray(data.records))

    def _reproduced(self, batch: bytearray) -> bytes:
        """A transaction's batch under the id that its producer has here; others without a producer."""
        producer_id, epoch, sequence = _PRODUCER.unpack_from(batch, _PRODUCER_AT)
        producer = (-1, -1, -1)
        if RecordBatch(memoryview(batch)).is_transactional:
            producer = (self._producer_ids[producer_id], epoch, sequence)
        _PRODUCER.pack_into(batch, _PRODUCER_AT, *producer)
        seal_batch(batch, 0, len(batch))
        return bytes(batch)


def differences(recorded: Any, ours: Any, path: str) -> Iterator[tuple[str, object, object]]:
    """(path, recorded, ours) wherever two answers disagree; items of lists are paired by name."""
    if isinstance(recorded, Struct) and isinstance(ours, Struct):
        for field in recorded.FIELDS:
            name = f"{path}.{field.name}"
            yield from differences(getattr(recorded, field.name), getattr(ours, field.name), name)
    elif isinstance(recorded, list) and isinstance(ours, list):
        yield from _list_differences(recorded, ours, path)
    elif isinstance(recorded, memoryview | bytes) and isinstance(ours, memoryview | bytes):
        if bytes(recorded) != bytes(ours):
            yield path, bytes(recorded), bytes(ours)
    elif recorded != ours:
        yield path, recorded, ours


def _list_differences(
    recorded: list[Any], ours: list[Any], path: str
) -> Iterator[tuple[str, object, object]]:
    names = [key for key in NAMES if recorded and hasattr(recorded[0], key)]
    if names:
        old = {getattr(item, names[0]): item for item in recorded}
        new = {getattr(item, names[0]): item for item in ours}
        for name in sorted(old.keys() | new.keys()):
            if name not in new:
                yield f"{path}[-{name}]", "there", "missing"
            elif name not in old:
                yield f"{path}[+{name}]", "missing", "there"
            else:
                yield from differences(old[name], new[name], f"{path}[{name}]")
        return
    if len(recorded) != len(ours):
        yield f"{path}[]", len(recorded), len(ours)
    for one, other in zip(recorded, ours, strict=False):
        yield from differences(one, other, f"{path}[]")


def api_name(exchange: Exchange) -> str:
    return ApiKey(exchange.api_key).name
