"""Framing and ordering of one connection as state machines without sockets."""

from barnabas.protocol.blocks import BlockPool
from barnabas.protocol.client_connection import ClientConnection, Response
from barnabas.protocol.framing import encode_raw, encode_request, encode_response
from barnabas.protocol.server_connection import RAW_KEY, Request, ServerConnection

__all__ = [
    "RAW_KEY",
    "BlockPool",
    "ClientConnection",
    "Request",
    "Response",
    "ServerConnection",
    "encode_raw",
    "encode_request",
    "encode_response",
]
