"""Hostile and broken clients in a crowd: the honest ones are served, and nothing is left behind."""

import asyncio
import random
import socket
import struct

import pytest

from barnabas.net.limits import ConnectionLimits, ServerLimits
from tests.net._kit import Client, Site, echo, frame, run, until


async def misbehave(site: Site, seed: int) -> None:
    """One client that does something no client should, then goes or is thrown out."""
    rng = random.Random(seed)
    client = await Client.connect(site.port)
    try:
        match rng.randrange(7):
            case 0:
                await client.send(rng.randbytes(rng.randrange(1, 5_000)))
            case 1:
                await client.send(frame(rng.randbytes(5_000))[: rng.randrange(1, 5_000)])
            case 2:
                await client.send(struct.pack(">i", rng.choice([-1, 2**31 - 1, 10**6 + 1, -(2**31)])))
            case 3:
                for byte in frame(b"drip"):
                    await client.send(bytes([byte]))
                    await asyncio.sleep(0)
            case 4:
                await client.send(frame(bytes(2_000)) * 50)  # and never reads an answer
                await asyncio.sleep(0)
            case 5:
                client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                await client.send(frame(rng.randbytes(100)) + b"\0\0")
            case 6:
                await client.send(struct.pack(">i", 900_000) + rng.randbytes(rng.randrange(200_000)))
    except OSError:
        pass  # thrown out in the middle
    finally:
        client.close()


async def be_honest(site: Site, rounds: int, seed: int) -> None:
    rng = random.Random(seed)
    client = await site.client()
    for _ in range(rounds):
        bodies = [rng.randbytes(rng.randrange(3_000)) for _ in range(rng.randrange(1, 10))]
        await client.send(b"".join(map(frame, bodies)))
        assert [await client.read_answer() for _ in bodies] == bodies


def crowd(hostile: int, rounds: int, seed: int) -> None:
    async def main() -> None:
        limits = ConnectionLimits(request_bytes_max=1_000_000, unsent_bytes_max=100_000, requests_open_max=20)
        async with Site(echo, limits=limits, server_limits=ServerLimits(held_bytes_max=4_000_000)) as site:
            honest = [asyncio.ensure_future(be_honest(site, rounds, seed + n)) for n in range(3)]
            for first in range(0, hostile, 20):
                await asyncio.gather(*(misbehave(site, seed + n) for n in range(first, first + 20)))
                assert site.server.budget.used < 4_000_000 + 30 * 1_000_000
            async with asyncio.timeout(60):
                await asyncio.gather(*honest)
            await until(lambda: len(site.server.connections) <= 3)

    run(main())


@pytest.mark.slow
def test_a_crowd_of_bad_clients_harms_nobody() -> None:
    crowd(hostile=200, rounds=30, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 21_000, 1000))
def test_many_crowds_harm_nobody(seed: int) -> None:
    crowd(hostile=600, rounds=100, seed=seed)


@pytest.mark.slow
def test_a_thousand_connections_are_served() -> None:
    async def main() -> None:
        async with Site(echo) as site:
            clients = [await site.client() for _ in range(1000)]
            for turn in range(2):
                for number, client in enumerate(clients):
                    await client.send(frame(b"%d-%d" % (turn, number)))
                for number, client in enumerate(clients):
                    assert await client.read_answer() == b"%d-%d" % (turn, number)

    run(main())
