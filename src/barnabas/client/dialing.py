"""Opening one connection: name look-up, connect, agreement on versions; a failure has its stage and cause.

Made by `connect`, which leaves nothing open when it fails.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass

from barnabas._version import __version__
from barnabas.base.errors import PeerFault
from barnabas.client.config import ClientSettings
from barnabas.client.errors import AddressFailure, ConnectionLost, KafkaError, error_for
from barnabas.net.errors import ConnectFailed, PeerTimeout, PeerUnavailable
from barnabas.net.peer import Peer
from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.versions import Versions

__all__ = ["Address", "Agreed", "ConnectFailure", "connect"]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Agreed:
    """What a broker said it can do."""

    offered: Mapping[int, Versions]
    features: Mapping[str, int]
    """Finalized feature levels, as `transaction.version`."""

    def version_of(self, api: int) -> int | None:
        """The highest version of an API that both sides speak, or None."""
        theirs = self.offered.get(api)
        if theirs is None:
            return None
        ours = API[api].versions
        version = min(ours.high, theirs.high)
        return version if version >= max(ours.low, theirs.low) else None


class ConnectFailure(ConnectionLost):
    """A connection did not come about; `failure` says at which stage."""

    def __init__(self, text: str, failure: AddressFailure) -> None:
        super().__init__(text)
        self.failure = failure


async def connect(address: Address, settings: ClientSettings, *, node: int = -1) -> tuple[Peer, Agreed]:
    """A connection to a broker and what it offers.  Raises ConnectFailure."""
    timeout_ms = settings.integer("socket.connection.setup.timeout.ms")
    known_node = node if node >= 0 else None
    try:
        peer = await Peer.connect(
            address.host, address.port, client_id=settings.string("client.id"), timeout_ms=timeout_ms
        )
    except ConnectFailed as error:
        raise _failure(
            address, known_node, _connect_stage(error), _connect_cause(error, timeout_ms)
        ) from error
    try:
        return peer, await _agree(peer, timeout_ms)
    except PeerTimeout as error:
        cause = f"the connection is open, but nothing answers on it within {timeout_ms} ms"
        failure = _failure(address, known_node, "timeout", cause)
        failure.__cause__ = error
    except PeerFault as error:
        failure = _failure(
            address, known_node, "protocol", f"what answers there is not a Kafka broker: {error}"
        )
        failure.__cause__ = error
    except PeerUnavailable as error:
        cause = (
            "the connection was closed at the first request, as by a TLS port or by another kind of server"
        )
        failure = _failure(address, known_node, "closed", cause)
        failure.__cause__ = error
    except KafkaError as error:
        failure = _failure(address, known_node, "protocol", str(error))
        failure.__cause__ = error
    except BaseException:
        peer.close()
        raise
    peer.close()
    raise failure


def _connect_stage(error: ConnectFailed) -> str:
    if isinstance(error.__cause__, socket.gaierror):
        return "DNS"
    return "timeout" if isinstance(error.__cause__, TimeoutError) else "connect"


def _connect_cause(error: ConnectFailed, timeout_ms: int) -> str:
    if isinstance(error.__cause__, TimeoutError):
        return f"no connection within {timeout_ms} ms"
    return str(error).rpartition(": ")[2]


def _failure(address: Address, node: int | None, stage: str, cause: str) -> ConnectFailure:
    failure = AddressFailure(str(address), stage, cause, node)
    return ConnectFailure(f"cannot use {failure}", failure)


async def _agree(peer: Peer, timeout_ms: int) -> Agreed:
    """Asks what the broker offers, in our newest version, else in the newest it names, else in the oldest."""
    version = API[ApiKey.API_VERSIONS].versions.high
    while True:
        request = ApiVersionsRequest(
            client_software_name="barnabas", client_software_version=__version__.replace("+", ".")
        )
        response = await peer.request(request, version, ApiVersionsResponse, timeout_ms=timeout_ms)
        if response.error_code == ErrorCode.NONE:
            return Agreed(
                {api.api_key: Versions(api.min_version, api.max_version) for api in response.api_keys},
                {feature.name: feature.max_version_level for feature in response.finalized_features},
            )
        if version == 0:
            raise error_for(response.error_code, subject="ApiVersions")
        offered = {api.api_key: api.max_version for api in response.api_keys}
        version = min(version - 1, max(0, offered.get(ApiKey.API_VERSIONS, 0)))
