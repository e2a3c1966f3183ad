"""Request and response headers, which follow rules of their own (WIRE §2.1).

- Request header v1: key, version, correlation id, nullable client id; v2 adds a tag section.  The
  client id keeps its int16 length in both.  v0, of ControlledShutdown v0 only, has no client id.
- Response header v0: correlation id; v1 adds a tag section.  ApiVersions always answers with v0,
  because a client reads that answer before it knows what the broker speaks.
"""

from struct import Struct as Layout
from struct import error as LayoutError
from typing import Final, NamedTuple

from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.errors import DecodeError, UnsupportedVersion
from barnabas.protocol.primitives import skip_tags

__all__ = [
    "RequestHeader",
    "decode_request_header",
    "request_header_version",
    "response_body_position",
    "response_header_version",
]

_FIXED: Final = Layout(">hhi")
_LENGTH: Final = Layout(">h")

_request_versions: dict[tuple[int, int], int] = {}


class RequestHeader(NamedTuple):
    """What stands before a request's body, and where the body starts."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int


def request_header_version(key: int, version: int) -> int:
    """The header version of a request; raises UnsupportedVersion for one that is not declared.

    ApiVersions is exempt: its answer to an unknown version is how a client learns the known ones.
    """
    found = _request_versions.get((key, version))
    if found is not None:
        return found
    api = API.get(key)
    if api is None:
        raise UnsupportedVersion(f"no API has key {key}")
    if not api.versions.has(version):
        if key == ApiKey.API_VERSIONS:
            return 1  # the body is not looked at, so neither is the tag section before it
        raise UnsupportedVersion(f"{api.key.title} has versions {api.versions}, not {version}")
    if key == ApiKey.CONTROLLED_SHUTDOWN and version == 0:
        header = 0
    else:
        header = 2 if api.flexible.has(version) else 1
    _request_versions[key, version] = header
    return header


def response_header_version(key: int, version: int) -> int:
    """The header version of a response."""
    return 1 if key != ApiKey.API_VERSIONS and API[key].flexible.has(version) else 0


def decode_request_header(frame: memoryview) -> RequestHeader:
    """Reads the header of a request.  Raises ProtocolError."""
    size = len(frame)
    if size < _FIXED.size:
        raise DecodeError(f"a request of {size} bytes has no header")
    key, version, correlation_id = _FIXED.unpack_from(frame)
    header = _request_versions.get((key, version))
    if header is None:
        header = request_header_version(key, version)
    if header == 0:
        return RequestHeader(key, version, correlation_id, None, _FIXED.size)
    try:
        (length,) = _LENGTH.unpack_from(frame, 8)
        position = 10 + length if length > 0 else 10
        if position > size:
            raise DecodeError(f"client id of {length} bytes in a request of {size}")
        client_id = None if length < 0 else str(frame[10:position], "utf-8")
        if header == 2:
            tags = frame[position]
            position += 1
            if tags:
                position = skip_tags(frame, position, tags)
    except (LayoutError, IndexError, UnicodeDecodeError) as fault:
        raise DecodeError(f"request header: {fault}") from fault
    return RequestHeader(key, version, correlation_id, client_id, position)


def response_body_position(frame: memoryview, key: int, version: int) -> int:
    """Where the body of a response starts, in a frame that has its correlation id."""
    if response_header_version(key, version) == 0:
        return 4
    try:
        tags = frame[4]
        return skip_tags(frame, 5, tags) if tags else 5
    except IndexError as fault:
        raise DecodeError(f"response header: {fault}") from fault
