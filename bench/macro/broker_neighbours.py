"""What one quiet client feels while others misbehave or work hard, beside Apache Kafka.

    python -m bench.macro.broker_neighbours [--seconds S] [--barnabas-only] [--folder /dev/shm]

The quiet client produces one record at a time (acks=1) and measures each answer.  The neighbours run in a
process of their own.  Driver, neighbours and broker share the machine, so part of what shows is the wait
for a core; it is the same for both brokers.
"""

import argparse
import contextlib
import multiprocessing
import random
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Event

from bench import _raw
from bench._brokers import Server, create_topic, running

SMALL = (100, 550)
LARGE = (1024, 860)
# Kafka sets aside what a frame announces: 200 times 50 MB end it, so the comparison announces less.
HALF_FRAME = struct.pack(">ihhih", 1_000_000, 0, 9, 1, -1) + bytes(1000)

Neighbour = Callable[[str, Event], None]


def nobody(_at: str, stop: Event) -> None:
    stop.wait()


def a_bulk_producer(at: str, stop: Event) -> None:
    """64-KB batches, five in flight, as fast as it goes."""
    requests = [_raw.produce_request("bulk", 0, 1, _raw.batch(*SMALL))]
    while not stop.is_set():
        _raw.produce(at, "bulk", requests, in_flight=5, seconds=0.2)


def a_producer_of_large_batches(at: str, stop: Event) -> None:
    requests = [_raw.produce_request("bulk", 0, 1, _raw.batch(*LARGE))]
    while not stop.is_set():
        _raw.produce(at, "bulk", requests, in_flight=5, seconds=0.2)


def a_bulk_reader(at: str, stop: Event) -> None:
    end = _raw.log_end(at, "bulk")
    while not stop.is_set():
        _raw.fetch(at, "bulk", end, max_bytes=1 << 20, seconds=0.2)


def fifty_that_never_read(at: str, stop: Event) -> None:
    """Fetches of 50 MB each, ten in flight on each connection, and nobody takes the answers."""
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            connection = stack.enter_context(_raw.connect(at))
            connection.socket.sendall(_raw.fetch_request("bulk", 0, 0, 50_000_000, 0) * 10)
        stop.wait()


def two_hundred_half_frames(at: str, stop: Event) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(_raw.connect(at)).socket.sendall(HALF_FRAME)
        stop.wait()


def a_stream_of_rubbish(at: str, stop: Event) -> None:
    """A new connection every few milliseconds with random bytes in it."""
    chance = random.Random(1)
    while not stop.is_set():
        with contextlib.suppress(OSError), _raw.connect(at) as connection:
            connection.socket.sendall(chance.randbytes(2000))
        time.sleep(0.002)


NEIGHBOURS: tuple[Neighbour, ...] = (
    nobody,
    a_bulk_producer,
    a_producer_of_large_batches,
    a_bulk_reader,
    fifty_that_never_read,
    two_hundred_half_frames,
    a_stream_of_rubbish,
)


@contextlib.contextmanager
def beside(neighbour: Neighbour, at: str) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    process = context.Process(target=neighbour, args=(at, stop))
    process.start()
    try:
        time.sleep(1)
        yield
        if process.exitcode is not None:
            raise RuntimeError(f"{neighbour.__name__} ended with {process.exitcode}")
    finally:
        stop.set()
        process.join(30)


def measure(server: Server, neighbour: Neighbour, seconds: float) -> tuple[float, float]:
    """p50 and p99 in microseconds of the quiet client beside the neighbour."""
    one = _raw.produce_request("quiet", 0, 1, _raw.batch(100, 1))
    with beside(neighbour, server.bootstrap_servers):
        taken = _raw.produce_latencies(server.bootstrap_servers, "quiet", one, seconds=seconds)
    return _raw.percentile(taken, 0.5), _raw.percentile(taken, 0.99)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Latency of one client beside busy and bad ones.")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--barnabas-only", action="store_true")
    parser.add_argument("--folder", help="where both keep their data; with /dev/shm no disk is in play")
    chosen = parser.parse_args(arguments)
    if chosen.folder is not None:
        tempfile.tempdir = chosen.folder
    names = ["barnabas"] if chosen.barnabas_only else ["kafka", "barnabas"]
    with running(names) as servers:
        for server in servers.values():
            for topic in ("quiet", "bulk"):
                create_topic(server, topic)
                _raw.await_leaders(server.bootstrap_servers, topic, 1)
            measure(server, a_bulk_producer, chosen.seconds)  # warms both, and leaves something to read
        print(f"| neighbour | {' | '.join(f'{name} p50 µs | {name} p99 µs' for name in names)} |")
        print("|---|" + "---:|" * (2 * len(names)))
        for neighbour in NEIGHBOURS:
            cells = []
            for server in servers.values():
                cells += [f"{value:,.0f}" for value in measure(server, neighbour, chosen.seconds)]
            print(f"| {neighbour.__name__.replace('_', ' ')} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
