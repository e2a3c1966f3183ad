"""SaslAuthenticate (key 36), v0-2, flexible from v2."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import Bulk, binary, int16, int64, string
from barnabas.protocol.schema import Message, request, response


@request(ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateRequest(Message):
    auth_bytes: Bulk = binary()


@response(ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateResponse(Message):
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: Bulk = binary()
    session_lifetime_ms: int = int64(versions="1+", ignorable=True)
