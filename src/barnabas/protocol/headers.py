"""Request and response headers, which follow rules of their own (WIRE §2.1).

- Request header v1: key, version, correlation id, nullable client id; v2 adds a tag section.  The
  client id keeps its int16 length in both.  v0, of ControlledShutdown v0 only, has no client id.
- Response header v0: correlation id; v1 adds a tag section.  ApiVersions always answers with v0,
  because a client reads that answer before it knows what the broker speaks.
"""

from struct import Struct as Layout
from typing import Final

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

_FIXED: Final = Layout(">hhih")  # with the length of the client id
_V0_BYTES: Final = 8

_request_versions: dict[tuple[int, int], int] = {}


# API key, API version, correlation id, client id, and where the body starts: a plain tuple, because
# one is made per request.
RequestHeader = tuple[int, int, int, str | None, int]


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
    key, version, correlation_id, length = _FIXED.unpack_from(frame)
    header = _request_versions.get((key, version))
    if header is None:
        header = request_header_version(key, version)
    if header == 0:
        return key, version, correlation_id, None, _V0_BYTES
    position = _FIXED.size + length if length > 0 else _FIXED.size
    if position > size:
        raise DecodeError(f"client id of {length} bytes in a request of {size}")
    try:
        client_id = None if length < 0 else str(frame[10:position], "utf-8")
        if header == 2:
            tags = frame[position]
            position += 1
            if tags:
                position = skip_tags(frame, position, tags)
    except (IndexError, UnicodeDecodeError) as fault:
        raise DecodeError(f"request header: {fault}") from fault
    return key, version, correlation_id, client_id, position


def response_body_position(frame: memoryview, key: int, version: int) -> int:
    """Where the body of a response starts, in a frame that has its correlation id."""
    if response_header_version(key, version) == 0:
        return 4
    try:
        tags = frame[4]
        return skip_tags(frame, 5, tags) if tags else 5
    except IndexError as fault:
        raise DecodeError(f"response header: {fault}") from fault
