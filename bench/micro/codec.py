"""How fast messages are decoded and encoded, with ratios to kio in the same run.

Run `python -m bench.micro.codec [--seconds S]`.  One core, one process, everything in memory.  Rows of one
table take turns, so that the load of the machine falls on all of them; a figure is the best of its turns.
`aim` is the ratio that the project asks for.  kio 0.6.5 reads with compiled Rust (`kio._kio_native`) and
writes in Python; both sides start from bytes in memory and end with a whole message, or the reverse.
"""

import argparse
import io
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from barnabas.base.buffers import join_buffers
from barnabas.protocol.connection import ServerConnection, encode_request, encode_response
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.protocol.schema import Message


class Task(NamedTuple):
    name: str
    run: Callable[[], object]
    against: str = ""  # the task that it is compared with
    aim: float = 0.0  # how many times its speed


def timings(tasks: Sequence[Task], seconds: float) -> dict[str, float]:
    """Seconds per call of each task, the best of turns that go round."""
    best = dict.fromkeys((task.name for task in tasks), float("inf"))
    calls = {}
    for task in tasks:
        task.run()  # codecs are generated on the first call
        begin = time.perf_counter()
        task.run()
        calls[task.name] = max(1, int(0.002 / (time.perf_counter() - begin)))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for task in tasks:
            run = task.run
            begin = time.perf_counter()
            for _ in range(calls[task.name]):
                run()
            best[task.name] = min(best[task.name], (time.perf_counter() - begin) / calls[task.name])
    return best


def show(title: str, tasks: Sequence[Task], seconds: float) -> None:
    found = timings(tasks, seconds)
    print(f"\n{title}")
    for task in tasks:
        line = f"  {task.name:<34}{found[task.name] * 1e6:>10.2f} µs"
        if task.against:
            ratio = found[task.against] / found[task.name]
            line += f"{ratio:>9.2f}x {task.against}"
            line += f" (aim {task.aim:.2g}x: {'met' if ratio >= task.aim else 'MISSED'})" if task.aim else ""
        print(line)


def fetch_request() -> FetchRequest:
    partitions = [
        FetchPartition(partition=index, current_leader_epoch=3, fetch_offset=10**9, partition_max_bytes=2**20)
        for index in range(10)
    ]
    topics = [FetchTopic(topic="a-topic-of-ours", partitions=partitions)]
    return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 * 2**20, topics=topics)


def metadata_response() -> MetadataResponse:
    def topic(number: int) -> MetadataResponseTopic:
        nodes = [1, 2, 3]
        partitions = [
            MetadataResponsePartition(
                partition_index=index, leader_id=1, leader_epoch=5, replica_nodes=nodes, isr_nodes=nodes
            )
            for index in range(10)
        ]
        return MetadataResponseTopic(
            name=f"topic-{number:04}", topic_id=bytes(range(16)), partitions=partitions
        )

    brokers = [MetadataResponseBroker(node_id=n, host=f"broker-{n}", port=9092) for n in (1, 2, 3)]
    return MetadataResponse(brokers=brokers, cluster_id="c", topics=[topic(n) for n in range(100)])


def against_kio(
    message: Message, version: int, theirs: type[Any], decode_aim: float = 0.0
) -> tuple[list[Task], list[Task]]:
    """Decoding and encoding of one message, ours and kio's, on the same bytes."""
    data = join_buffers(message.encode(version))
    read, write = entity_reader(theirs), entity_writer(theirs)
    twin, size = read(data, 0)
    assert size == len(data)
    # kio gives what it has read in other types than what it writes; a second reading is not needed.
    again = io.BytesIO()
    write(again, twin)
    assert again.getvalue() == data
    received = memoryview(bytearray(data))  # what a connection hands out

    def encode_kio() -> bytes:
        buffer = io.BytesIO()
        write(buffer, twin)
        return buffer.getvalue()

    decoding = [
        Task("kio, compiled reader", partial(read, data, 0)),
        Task(
            "ours, from bytes",
            partial(type(message).decode, version, data),
            "kio, compiled reader",
            decode_aim,
        ),
        Task(
            "ours, as received",
            partial(type(message).decode, version, received),
            "kio, compiled reader",
            decode_aim,
        ),
    ]
    encoding = [
        Task("kio's writer", encode_kio),
        Task("ours", partial(message.encode, version), "kio's writer", 3),
    ]
    return decoding, encoding


def produce_tasks() -> list[Task]:
    """The steps of the codec that one small Produce request takes in a broker."""
    partition = PartitionProduceData(index=0, records=bytes(180))
    request = ProduceRequest(
        acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(name="a-topic", partition_data=[partition])]
    )
    frame = join_buffers(encode_request(0, 9, 5, "rdkafka", request))
    many = frame * 32
    server = ServerConnection(frame_bytes_max=2**20)
    (received,) = server.receive(frame)
    server.finish(received.ticket, None)
    body = received.body

    def answer() -> ProduceResponse:
        stored = PartitionProduceResponse(
            index=0, base_offset=12345, log_append_time_ms=-1, log_start_offset=0
        )
        return ProduceResponse(
            responses=[TopicProduceResponse(name="a-topic", partition_responses=[stored])], throttle_time_ms=0
        )

    made = answer()

    def receive(data: bytes) -> None:
        size = len(data)
        server.get_buffer()[:size] = data
        for request in server.buffer_updated(size):
            server.finish(request.ticket, None)

    return [
        Task("connection, one frame a read", partial(receive, frame)),
        Task("connection, 32 frames a read", partial(receive, many)),
        Task("decode the request (v9)", partial(ProduceRequest.decode, 9, body)),
        Task("make the response", answer),
        Task("encode the response frame", partial(encode_response, 0, 9, 5, made)),
        Task("encode the request frame (client)", partial(encode_request, 0, 9, 5, "rdkafka", request)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each of the five tables")
    seconds = parser.parse_args().seconds
    decoding, encoding = against_kio(fetch_request(), 12, load_request_schema(1, 12), decode_aim=1 / 3)
    show("Fetch request v12 with 10 partitions: decode", decoding, seconds)
    show("Fetch request v12 with 10 partitions: encode", encoding, seconds)
    decoding, encoding = against_kio(metadata_response(), 12, load_response_schema(3, 12))
    show("Metadata response v12, 100 topics of 10 partitions: decode", decoding, seconds)
    show("Metadata response v12, 100 topics of 10 partitions: encode", encoding, seconds)
    show("One Produce request of one record, v9", produce_tasks(), seconds)


if __name__ == "__main__":
    main()
