"""SaslHandshake (key 17), v0-1, never flexible."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import STRING, array, int16, string
from barnabas.protocol.schema import Message, request, response


@request(ApiKey.SASL_HANDSHAKE, versions="0-1", flexible="none")
class SaslHandshakeRequest(Message):
    mechanism: str = string()


@response(ApiKey.SASL_HANDSHAKE, versions="0-1", flexible="none")
class SaslHandshakeResponse(Message):
    error_code: int = int16()
    mechanisms: list[str] = array(STRING)
