"""What listens at an address that did not talk like a Kafka broker: a TLS port, a web server, something else.

Asked only after a failure, on connections of its own; never raises, never waits long.
"""

import asyncio
import contextlib
import struct
from dataclasses import dataclass
from typing import Final

from barnabas.client.dialing import Address
from barnabas.protocol.api import ApiKey
from barnabas.protocol.connection import encode_request
from barnabas.protocol.messages.api_versions import ApiVersionsRequest

__all__ = ["Finding", "what_listens_at"]

_WAIT_S: Final = 1.0
_ANSWER: Final = struct.Struct(">iih")
_ANSWER_BYTES_MAX: Final = 1_000_000
_TLS_ALERT: Final = 0x15
_TLS_HANDSHAKE: Final = 0x16


@dataclass(frozen=True, slots=True)
class Finding:
    """The stage to report and the cause in words."""

    stage: str
    cause: str


_TLS: Final = Finding("TLS", "the port speaks TLS, and this client was told to use a plain connection")


async def what_listens_at(address: Address) -> Finding | None:
    """What the first bytes of the other side give away, or None if they give away nothing."""
    with contextlib.suppress(OSError, TimeoutError):
        first = await _first_bytes(address)
        if first[:5] == b"HTTP/":
            return Finding("protocol", "a web server (HTTP) answers there, not a Kafka broker")
        if len(first) >= 2 and first[0] in (_TLS_ALERT, _TLS_HANDSHAKE) and first[1] == 3:
            return _TLS
        if len(first) >= _ANSWER.size and _looks_like_kafka(first):
            return None  # it does now: what failed before was something else
        if await _speaks_tls(address):
            return _TLS
        if first:
            shown = first[:16]
            return Finding("protocol", f"what answers there is not a Kafka broker; it begins with {shown!r}")
        return None
    return None


def _looks_like_kafka(first: bytes) -> bool:
    """Whether this is how an answer to our request begins: a sane size, our correlation id, an error code."""
    size: int
    correlation_id: int
    size, correlation_id, _ = _ANSWER.unpack_from(first)
    return _ANSWER.size - 4 <= size < _ANSWER_BYTES_MAX and correlation_id == 0


async def _first_bytes(address: Address) -> bytes:
    """How the other side answers the oldest request of Kafka; empty when it just closes."""
    request = b"".join(
        bytes(part) if isinstance(part, bytes | bytearray | memoryview) else b""
        for part in encode_request(ApiKey.API_VERSIONS, 0, 0, None, ApiVersionsRequest())
    )
    async with asyncio.timeout(_WAIT_S):
        reader, writer = await asyncio.open_connection(address.host, address.port)
        try:
            writer.write(request)
            with contextlib.suppress(ConnectionError):
                return await reader.read(64)
            return b""
        finally:
            await _end(writer)


async def _speaks_tls(address: Address) -> bool:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # only the protocol is of interest; nothing is sent
    try:
        async with asyncio.timeout(_WAIT_S):
            _, writer = await asyncio.open_connection(
                address.host, address.port, ssl=context, server_hostname=""
            )
    except ssl.SSLError as error:
        return "WRONG_VERSION_NUMBER" not in str(error)
    except (OSError, TimeoutError):
        return False
    await _end(writer)
    return True


async def _end(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        await writer.wait_closed()
