"""The way in: from the addresses the user gave to a first broker that answers Metadata.

All addresses take part in one race: the next starts when the one before has failed, or has not come in after
a fraction of a second.  When none wins, the error has each address with the stage it failed at.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from barnabas.base.errors import BarnabasError, PeerFault
from barnabas.client.config import ClientSettings, parse_address
from barnabas.client.dialing import Address, Agreed, ConnectFailure, connect
from barnabas.client.errors import AddressFailure, KafkaError, NoBrokersAvailable
from barnabas.net.errors import PeerTimeout
from barnabas.net.peer import Peer
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse

__all__ = ["Entry", "bootstrap_addresses", "enter"]

_STAGGER_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class Entry:
    """The winner: an open connection, what its broker offers, and its view of the cluster."""

    address: Address
    peer: Peer
    agreed: Agreed
    metadata: MetadataResponse


def bootstrap_addresses(settings: ClientSettings) -> list[Address]:
    return [Address(*parse_address(text)) for text in settings.items("bootstrap.servers")]


async def enter(addresses: Sequence[Address], settings: ClientSettings) -> Entry:
    """The first address that leads to a broker.  Raises NoBrokersAvailable after one try of each."""
    failures: dict[int, AddressFailure] = {}
    tasks: dict[asyncio.Task[Entry], int] = {}
    waiting: set[asyncio.Task[Entry]] = set()
    winner: asyncio.Task[Entry] | None = None
    try:
        while len(failures) < len(addresses):
            if len(tasks) < len(addresses):
                task = asyncio.create_task(_try_and_explain(addresses[len(tasks)], settings))
                tasks[task] = len(tasks)
                waiting.add(task)
            limit_s = _STAGGER_S if len(tasks) < len(addresses) else None
            done, waiting = await asyncio.wait(waiting, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                error = task.exception()
                if error is None:
                    winner = task
                    return task.result()
                if not isinstance(error, ConnectFailure):
                    raise error
                failures[tasks[task]] = error.failure
    finally:
        await _abandon(tasks.keys() - {winner})
    raise NoBrokersAvailable.after(tuple(failures[number] for number in sorted(failures)))


async def _abandon(tasks: "set[asyncio.Task[Entry]]") -> None:
    """Ends the tries other than the winner: those under way, and those that nobody looked at any more."""
    for task in tasks:
        task.cancel()
    for found in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(found, Entry):
            found.peer.close()


async def _try_and_explain(address: Address, settings: ClientSettings) -> Entry:
    try:
        return await _try(address, settings)
    except ConnectFailure as failed:
        if failed.failure.stage not in ("protocol", "closed"):
            raise
        from barnabas.client.diagnosis import what_listens_at

        found = await what_listens_at(address)
        if found is None:
            raise
        failure = replace(failed.failure, stage=found.stage, cause=found.cause)
        raise ConnectFailure(f"cannot use {failure}", failure) from failed


async def _try(address: Address, settings: ClientSettings) -> Entry:
    peer, agreed = await connect(address, settings)
    version = agreed.version_of(ApiKey.METADATA)
    timeout_ms = settings.integer("socket.connection.setup.timeout.ms")
    try:
        if version is None:
            raise _failure(address, "version", "the broker offers no version of Metadata that we speak")
        request = MetadataRequest(topics=[])
        return Entry(
            address,
            peer,
            agreed,
            await peer.request(request, version, MetadataResponse, timeout_ms=timeout_ms),
        )
    except KafkaError:
        peer.close()
        raise
    except PeerTimeout as error:
        peer.close()
        raise _failure(address, "timeout", f"no answer to Metadata within {timeout_ms} ms") from error
    except PeerFault as error:
        peer.close()
        raise _failure(address, "protocol", str(error)) from error
    except BarnabasError as error:
        peer.close()
        cause = "the broker closed the connection at Metadata; does its listener want a login (SASL)?"
        raise _failure(address, "login", cause) from error
    except BaseException:
        peer.close()
        raise


def _failure(address: Address, stage: str, cause: str) -> ConnectFailure:
    failure = AddressFailure(str(address), stage, cause)
    return ConnectFailure(f"cannot use {failure}", failure)
