"""Whole frames: size, header and message as a list of buffers, ready to send.

The header is filled into the first buffer after the body is encoded, when its size is known, so a
small message is one buffer and a large one costs no extra copy.
"""

from struct import Struct as Layout
from typing import Final

from barnabas.base.buffers import Buffer
from barnabas.protocol.errors import EncodeError
from barnabas.protocol.headers import request_header_version, response_header_version
from barnabas.protocol.schema import Message

__all__ = ["encode_raw", "encode_request", "encode_response"]

_SIZE: Final = Layout(">i")
_RESPONSE: Final = Layout(">ii")
_REQUEST: Final = Layout(">ihhi")
_LENGTH: Final = Layout(">h")

_RESPONSE_SPACE: Final = (bytes(8), bytes(9))  # by header version; the ninth byte is an empty tag section
_FRAME_BYTES_MAX: Final = 2**31 - 1

_response_heads: dict[tuple[int, int], bytes] = {}


def encode_response(key: int, version: int, correlation_id: int, message: Message) -> list[Buffer]:
    """A response frame.  Raises ProtocolError for a value that the version cannot carry.

    To answer an ApiVersions request of an unknown version, encode the response in version 0.
    """
    head = _response_heads.get((key, version))
    if head is None:
        head = _response_heads[key, version] = _RESPONSE_SPACE[response_header_version(key, version)]
    encode = message.ENCODERS.get(version) or message.encoder(version)
    frame = encode(message, head)
    _RESPONSE.pack_into(_first(frame), 0, _payload_bytes(frame), correlation_id)
    return frame


def encode_request(
    key: int, version: int, correlation_id: int, client_id: str | None, message: Message
) -> list[Buffer]:
    """A request frame.  Raises ProtocolError for a value that the version cannot carry."""
    header = request_header_version(key, version)
    head = _REQUEST.pack(0, key, version, correlation_id)
    if header:
        name = b"" if client_id is None else client_id.encode()
        head += _LENGTH.pack(-1 if client_id is None else len(name)) + name
        if header == 2:
            head += b"\0"
    frame = message.encoder(version)(message, head)
    _SIZE.pack_into(_first(frame), 0, _payload_bytes(frame))
    return frame


def encode_raw(token: bytes) -> list[Buffer]:
    """A bare SASL token with its size: what follows a SaslHandshake of version 0, both ways."""
    return [_SIZE.pack(len(token)) + token]


def _first(frame: list[Buffer]) -> bytearray:
    first = frame[0]
    assert isinstance(first, bytearray), "an encoder starts with the head it was given"
    return first


def _payload_bytes(frame: list[Buffer]) -> int:
    total = sum(map(len, frame)) - _SIZE.size
    if total > _FRAME_BYTES_MAX:
        raise EncodeError(f"a frame of {total} bytes is larger than the wire allows")
    return total
