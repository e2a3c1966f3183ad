"""A driver without per-record cost: ready-made Produce and Fetch requests on one plain connection.

What a broker pays shows only when the client pays next to nothing.  Requests are built once; the loops
below send, receive and count.  Produce v7 and Fetch v11 are the newest without tagged fields and topic ids,
served by Apache Kafka 4 and by Barnabas alike.  Answers are checked: a refused request ends the run.
"""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from barnabas.records.builder import build_batch

PRODUCE, FETCH = 0, 1
PRODUCE_VERSION, FETCH_VERSION = 7, 11
CLIENT_ID = b"raw"
RECEIVE_BYTES = 1 << 20


@dataclass(slots=True)
class Rate:
    """What one measured run came to."""

    requests: int
    bytes: int
    seconds: float

    @property
    def requests_per_s(self) -> float:
        return self.requests / self.seconds

    @property
    def megabytes_per_s(self) -> float:
        return self.bytes / self.seconds / 1e6


def batch(record_bytes: int, count: int) -> bytes:
    """One uncompressed batch of `count` records with values of `record_bytes` and no keys."""
    # Not all alike, or the page cache and the checksum would see an easier world than they get.
    values = [bytes((number * 31 + at) & 0xFF for at in range(64)) for number in range(count)]
    now = int(time.time() * 1000)
    records = [(now, None, (value * (record_bytes // 64 + 1))[:record_bytes], ()) for value in values]
    return bytes(build_batch(records))


def request(key: int, version: int, correlation_id: int, body: bytes) -> bytes:
    head = struct.pack(">hhih", key, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID
    return struct.pack(">i", len(head) + len(body)) + head + body


def produce_request(topic: str, partition: int, acks: int, records: bytes) -> bytes:
    name = topic.encode()
    body = struct.pack(f">hhiih{len(name)}s", -1, acks, 30_000, 1, len(name), name)
    body += struct.pack(">iii", 1, partition, len(records)) + records
    return request(PRODUCE, PRODUCE_VERSION, 0, body)


def fetch_request(topic: str, partition: int, offset: int, max_bytes: int, max_wait_ms: int) -> bytes:
    name = topic.encode()
    body = struct.pack(">iiiibii", -1, max_wait_ms, 1, 50 << 20, 0, 0, -1)
    body += struct.pack(f">ih{len(name)}s", 1, len(name), name)
    body += struct.pack(">iiiqqi", 1, partition, -1, offset, -1, max_bytes)
    return request(FETCH, FETCH_VERSION, 0, body + struct.pack(">ih", 0, 0))


class Connection:
    """One blocking connection; whole frames out, whole frames in."""

    def __init__(self, bootstrap_servers: str) -> None:
        host, _, port = bootstrap_servers.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._buffer)
        self._held = 0

    def frames(self) -> Iterator[memoryview]:
        """At least one whole frame, and what else one receive brought; each is valid until the next."""
        while True:
            at = 0
            while self._held - at >= 4:
                end = at + 4 + int.from_bytes(self._view[at : at + 4], "big")
                if end > self._held:
                    self._make_room(end - at)
                    break
                yield self._view[at + 4 : end]
                at = end
            if at:
                # Whole frames were handed out: keep the cut one and let the caller act.
                rest = bytes(self._view[at : self._held])
                self._buffer[: len(rest)] = rest
                self._held = len(rest)
                return
            self._receive()

    def _receive(self) -> None:
        count = self.socket.recv_into(self._view[self._held :])
        if count == 0:
            raise ConnectionError("the broker closed the connection")
        self._held += count

    def _make_room(self, needed: int) -> None:
        if needed > len(self._buffer):
            larger = bytearray(2 * needed)
            larger[: self._held] = self._view[: self._held]
            self._buffer, self._view = larger, memoryview(larger)

    def one(self) -> memoryview:
        """The next frame, when no other can be under way."""
        [frame] = list(self.frames())
        return frame

    def close(self) -> None:
        self.socket.close()


@contextlib.contextmanager
def connect(bootstrap_servers: str) -> Iterator[Connection]:
    connection = Connection(bootstrap_servers)
    try:
        yield connection
    finally:
        connection.close()


def check_produced(frame: memoryview, name_bytes: int) -> None:
    """Raise unless the only partition of the answer was taken."""
    (error,) = struct.unpack_from(">h", frame, 4 + 4 + 2 + name_bytes + 4 + 4)
    if error:
        raise RuntimeError(f"produce was refused with error {error}")


def records_of(frame: memoryview, name_bytes: int) -> memoryview:
    """The records of the only partition of a Fetch answer."""
    at = 4 + 4 + 2 + 4 + 4 + 2 + name_bytes + 4
    _index, error = struct.unpack_from(">ih", frame, at)
    if error:
        raise RuntimeError(f"fetch was refused with error {error}")
    at += 4 + 2 + 8 + 8 + 8
    (aborted,) = struct.unpack_from(">i", frame, at)
    at += 4 + 16 * max(aborted, 0) + 4
    (size,) = struct.unpack_from(">i", frame, at)
    return frame[at + 4 : at + 4 + size]


def next_offset(records: memoryview) -> int:
    """The offset after the last whole batch."""
    at, after = 0, -1
    while len(records) - at >= 61:
        base, length = struct.unpack_from(">qi", records, at)
        if at + 12 + length > len(records):
            break
        after = base + int(struct.unpack_from(">i", records, at + 23)[0]) + 1
        at += 12 + length
    return after


def produce(
    bootstrap_servers: str, topic: str, requests: list[bytes], *, in_flight: int, seconds: float
) -> Rate:
    """Send the requests in turn, `in_flight` at a time, for some seconds."""
    size = len(requests[0])
    name_bytes = len(topic)
    with connect(bootstrap_servers) as connection:
        sent = answered = 0
        start = time.perf_counter()
        deadline = start + seconds
        connection.socket.sendall(b"".join(requests[i % len(requests)] for i in range(in_flight)))
        sent = in_flight
        while answered < sent:
            came = 0
            for frame in connection.frames():
                check_produced(frame, name_bytes)
                came += 1
            answered += came
            if time.perf_counter() < deadline:
                more = [requests[(sent + i) % len(requests)] for i in range(came)]
                connection.socket.sendall(more[0] if came == 1 else b"".join(more))
                sent += came
        return Rate(answered, answered * size, time.perf_counter() - start)


def produce_latencies(bootstrap_servers: str, topic: str, one: bytes, *, seconds: float) -> list[float]:
    """Microseconds from sending a request to its answer, one at a time."""
    taken: list[float] = []
    with connect(bootstrap_servers) as connection:
        deadline = time.perf_counter() + seconds
        while (start := time.perf_counter()) < deadline:
            connection.socket.sendall(one)
            check_produced(connection.one(), len(topic))
            taken.append((time.perf_counter() - start) * 1e6)
    return taken


def fetch(bootstrap_servers: str, topic: str, end: int, *, max_bytes: int, seconds: float) -> Rate:
    """Read partition 0 from its start again and again; one request at a time, as a consumer does."""
    requests = total = 0
    with connect(bootstrap_servers) as connection:
        offset = 0
        start = time.perf_counter()
        while (now := time.perf_counter()) < start + seconds:
            connection.socket.sendall(fetch_request(topic, 0, offset, max_bytes, 500))
            records = records_of(connection.one(), len(topic))
            requests += 1
            total += len(records)
            offset = next_offset(records)
            if offset < 0:
                raise RuntimeError(f"nothing to read at {offset} of {end}")
            if offset >= end:
                offset = 0
        return Rate(requests, total, now - start)


def fetch_pipelined(
    bootstrap_servers: str, topic: str, offsets: list[int], *, max_bytes: int, in_flight: int, seconds: float
) -> Rate:
    """Read at these offsets in turn, several requests at a time: what the broker can give, not one reader."""
    requests = [fetch_request(topic, 0, offset, max_bytes, 500) for offset in offsets]
    answered = total = 0
    with connect(bootstrap_servers) as connection:
        start = time.perf_counter()
        deadline = start + seconds
        connection.socket.sendall(b"".join(requests[:in_flight]))
        sent = in_flight
        while answered < sent:
            came = 0
            for frame in connection.frames():
                total += len(records_of(frame, len(topic)))
                came += 1
            answered += came
            if time.perf_counter() < deadline:
                connection.socket.sendall(b"".join(requests[(sent + i) % len(requests)] for i in range(came)))
                sent += came
        return Rate(answered, total, time.perf_counter() - start)


def end_to_end(
    bootstrap_servers: str, topic: str, *, per_second: int, seconds: float, record_bytes: int = 100
) -> list[float]:
    """Milliseconds from sending a record (acks=1) until a waiting consumer has it, at a steady rate."""
    count = int(per_second * seconds)
    sent = [0.0] * count
    taken: list[float] = []
    frame = produce_request(topic, 0, 1, batch(record_bytes, 1))

    def consume(first: int) -> None:
        offset = first
        with connect(bootstrap_servers) as connection:
            while offset < first + count:
                connection.socket.sendall(fetch_request(topic, 0, offset, 1 << 20, 500))
                records = records_of(connection.one(), len(topic))
                now = time.perf_counter()
                if len(records):
                    after = next_offset(records)
                    taken.extend((now - sent[each - first]) * 1e3 for each in range(offset, after))
                    offset = after

    first = log_end(bootstrap_servers, topic)
    reader = threading.Thread(target=consume, args=(first,))
    reader.start()
    with connect(bootstrap_servers) as connection:
        start = time.perf_counter()
        for number in range(count):
            wait = start + number / per_second - time.perf_counter()
            if wait > 0:
                time.sleep(wait)
            sent[number] = time.perf_counter()
            connection.socket.sendall(frame)
            check_produced(connection.one(), len(topic))
    reader.join(30)
    if len(taken) < count:
        raise RuntimeError(f"only {len(taken)} of {count} records arrived")
    return taken


def log_end(bootstrap_servers: str, topic: str, partition: int = 0) -> int:
    """The end of a partition, by ListOffsets v1."""
    name = topic.encode()
    body = struct.pack(f">iih{len(name)}s", -1, 1, len(name), name) + struct.pack(">iiq", 1, partition, -1)
    with connect(bootstrap_servers) as connection:
        connection.socket.sendall(request(2, 1, 0, body))
        frame = connection.one()
        _index, error, _time, offset = struct.unpack_from(">ihqq", frame, 4 + 4 + 2 + len(name) + 4)
    if error:
        raise RuntimeError(f"list offsets was refused with error {error}")
    return int(offset)


def make_topic(bootstrap_servers: str, topic: str) -> None:
    """Ask for the metadata of a topic, which creates it (Metadata v1)."""
    name = topic.encode()
    with connect(bootstrap_servers) as connection:
        connection.socket.sendall(request(3, 1, 0, struct.pack(f">ih{len(name)}s", 1, len(name), name)))
        connection.one()


def await_leaders(bootstrap_servers: str, topic: str, partitions: int) -> None:
    """Write a record to each partition, again and again until the broker has taken up all of them."""
    deadline = time.perf_counter() + 30
    with connect(bootstrap_servers) as connection:
        for partition in range(partitions):
            one = produce_request(topic, partition, 1, batch(10, 1))
            while True:
                connection.socket.sendall(one)
                try:
                    check_produced(connection.one(), len(topic))
                    break
                except RuntimeError:
                    if time.perf_counter() > deadline:
                        raise
                    time.sleep(0.01)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
