"""How fast the network layer is by itself: frames in, empty answers out, over one loopback connection.

Run `python -m bench.micro.net`.  The server runs in this process with a handler that answers at once;
the driver is a second process that sends ready-made bytes.  Prints frames or bytes per second, and the
server's CPU time per frame or GB, which says more on a machine with few cores.  `bare` is the same
driver against recv_into and a fixed answer without any state machine: the floor of Python and the kernel.
"""

import asyncio
import multiprocessing
import os
import resource
import socket
import struct
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection as Pipe

import uvloop

from barnabas.base.buffers import FileSlice, SharedFile
from barnabas.net.connection import Connection
from barnabas.net.listener import Listener
from barnabas.net.server import Server
from barnabas.protocol.connection import Request

SECONDS = 2.0
PRODUCE, VERSION = 0, 9
ANSWER = struct.pack(">ii", 4, 0)


def frame(size: int) -> bytes:
    """A request of `size` bytes in all; nobody looks into its body."""
    head = struct.pack(">hhih", PRODUCE, VERSION, 0, 5) + b"bench\0"
    return struct.pack(">i", size - 4) + head + bytes(size - 4 - len(head))


def drive(port: int, size: int, window: int, answer_bytes: int, pipe: Pipe) -> None:
    """Keeps `window` requests in flight, sent in blocks, and counts answers until the time is over."""
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    per_block = max(1, window // 2)
    block = frame(size) * per_block
    inbox = bytearray(max(answer_bytes, 256 * 1024))
    for _ in range(2):
        sock.sendall(block)
    done = received = 0
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < SECONDS:
        wanted = per_block * answer_bytes
        while received < wanted:
            received += sock.recv_into(inbox)
        received -= wanted
        done += per_block
        sock.sendall(block)
    pipe.send((done, elapsed))
    sock.close()


async def measure(
    serve: Callable[[], Server], size: int, window: int, answer_bytes: int
) -> tuple[float, float]:
    """Requests per second, and microseconds of the server's CPU per request."""
    server = serve()
    port = server.bind(Listener("BENCH", "127.0.0.1", 0))
    server.start()
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    driver = multiprocessing.get_context("spawn").Process(
        target=drive, args=(port, size, window, answer_bytes, theirs)
    )
    before = cpu_seconds()
    driver.start()
    done, elapsed = await asyncio.to_thread(ours.recv)
    used = cpu_seconds() - before
    await server.stop(1_000)
    driver.join()
    return done / elapsed, used / done * 1e6


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def acknowledge(connection: Connection, request: Request) -> None:
    connection.finish(request.ticket, [ANSWER])


def bare(port_pipe: Pipe, answers: bytes, block: int) -> None:
    """The floor: one blocking socket, recv_into, one answer block for each full block of input."""
    listening = socket.create_server(("127.0.0.1", 0))
    port_pipe.send(listening.getsockname()[1])
    sock, _ = listening.accept()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    space = memoryview(bytearray(128 * 1024))
    received = 0
    with suppress(OSError):  # the driver ends in the middle
        while count := sock.recv_into(space):
            received += count
            while received >= block:
                received -= block
                sock.sendall(answers)


def measure_bare(size: int, window: int) -> float:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    block = size * max(1, window // 2)
    server = context.Process(target=bare, args=(theirs, ANSWER * max(1, window // 2), block), daemon=True)
    server.start()
    port = ours.recv()
    drive_ours, drive_theirs = context.Pipe()
    driver = context.Process(target=drive, args=(port, size, window, len(ANSWER), drive_theirs))
    driver.start()
    done, elapsed = drive_ours.recv()
    driver.join()
    server.terminate()
    server.join()
    return float(done / elapsed)


async def main() -> None:
    for size, window in ((1024, 256), (1024, 1), (64 * 1024, 8), (1024 * 1024, 2)):
        floor = measure_bare(size, window)
        rate, cpu_us = await measure(lambda: Server(acknowledge), size, window, len(ANSWER))
        print(
            f"requests of {size:>8,} bytes, {window:>3} in flight: {rate:>9,.0f}/s"
            f" {rate * size / 1e9:6.2f} GB/s {cpu_us:7.1f} us CPU each; bare {floor:>9,.0f}/s"
        )
    with tempfile.NamedTemporaryFile() as file:
        file.write(os.urandom(1024 * 1024))
        file.flush()
        shared = SharedFile(os.open(file.name, os.O_RDONLY), file.name)
        for size, window in ((64 * 1024, 4), (1024 * 1024, 4)):
            head = struct.pack(">ii", size + 4, 0)

            def send_file(
                connection: Connection, request: Request, size: int = size, head: bytes = head
            ) -> None:
                connection.finish(request.ticket, [head, FileSlice(shared, 0, size)])

            rate, cpu_us = await measure(lambda: Server(send_file), 100, window, size + 8)
            print(
                f"answers of  {size:>8,} bytes by sendfile, {window} in flight: {rate:>8,.0f}/s"
                f" {rate * size / 1e9:6.2f} GB/s {cpu_us * 1e3 / size:6.2f} CPU-s/GB"
            )


if __name__ == "__main__":
    uvloop.run(main())
