"""Brokers whose answers a test writes, and servers that are no brokers, on the test's own loop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from barnabas.net.connection import Connection
from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.connection import Request, encode_response
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from barnabas.protocol.schema import Message
from tests.net._kit import Site, until

CUT: Final = object()  # end the connection in place of an answer
HOLD: Final = object()  # answer later, by `release`

Answer = Message | object
Respond = Callable[[Message], Answer]


class FakeBroker:
    """Speaks ApiVersions and Metadata by itself; everything else as the test says."""

    def __init__(self, node: int = 1, *, api_versions_max: int = 4) -> None:
        self.node = node
        self.seen: list[tuple[ApiKey, int, Message]] = []
        self.advertised: dict[int, tuple[str, int]] = {}
        self.offered = {key: API[key].versions for key in ApiKey}
        self.responses: dict[ApiKey, Respond] = {}
        self.api_versions_max = api_versions_max
        self.connects = 0
        self.correlation_shift = 0  # other than 0: answers claim to belong to other requests
        self._held: list[tuple[Connection, Request, Message]] = []
        self._site: Site | None = None

    async def __aenter__(self) -> "FakeBroker":
        self._site = Site(self._on_request)
        self.advertised = {self.node: ("127.0.0.1", self.port)}
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._site is not None
        await self._site.__aexit__()

    @property
    def port(self) -> int:
        assert self._site is not None
        return self._site.port

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def count(self, key: ApiKey) -> int:
        return sum(each == key for each, _, _ in self.seen)

    async def wait_for(self, key: ApiKey, count: int = 1) -> None:
        await until(lambda: self.count(key) >= count)

    def cut_all(self) -> None:
        """Ends every connection, as a broker that dies."""
        assert self._site is not None
        for connection in list(self._site.server.connections):
            connection.abort()

    def release(self, message: Message) -> None:
        """Answers the oldest request on hold."""
        connection, request, _ = self._held.pop(0)
        self._finish(connection, request, message)

    def _on_request(self, connection: Connection, request: Request) -> None:
        key = ApiKey(request.api_key)
        if key is ApiKey.API_VERSIONS:
            self.connects += 1
            if request.api_version > self.api_versions_max:
                self.seen.append((key, request.api_version, Message()))
                self._finish(connection, request, self._refusal(), version=0)
                return
        message = API[key].request.decode(request.api_version, request.body)
        self.seen.append((key, request.api_version, message))
        answer = self.responses.get(key, self._default)(message)
        if answer is CUT:
            connection.abort()
        elif answer is HOLD:
            self._held.append((connection, request, message))
        else:
            assert isinstance(answer, Message), f"no answer to {key.title} was written"
            self._finish(connection, request, answer)

    def _finish(
        self, connection: Connection, request: Request, message: Message, version: int | None = None
    ) -> None:
        version = request.api_version if version is None else version
        correlation_id = request.correlation_id
        if request.api_key != ApiKey.API_VERSIONS:
            correlation_id += self.correlation_shift
        connection.finish(request.ticket, encode_response(request.api_key, version, correlation_id, message))

    def _refusal(self) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[
                ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=self.api_versions_max)
            ],
        )

    def _default(self, message: Message) -> Answer:
        if message.API_KEY is ApiKey.API_VERSIONS:
            return ApiVersionsResponse(
                api_keys=[
                    ApiVersion(api_key=key, min_version=versions.low, max_version=versions.high)
                    for key, versions in self.offered.items()
                ]
            )
        if isinstance(message, MetadataRequest):
            return self.metadata()
        return None

    def metadata(self) -> MetadataResponse:
        """The brokers advertised, and no topics."""
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=node, host=host, port=port)
                for node, (host, port) in self.advertised.items()
            ],
            cluster_id="fake",
            controller_id=self.node,
        )


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def not_a_broker(talk: Talk) -> AsyncIterator[int]:
    """A server that talks in another way; gives its port."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await talk(reader, writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(100)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    await writer.drain()


async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Closes at the first byte."""
    await reader.read(1)


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes everything and says nothing."""
    while await reader.read(1000):
        pass


async def tls_alert(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """What a TLS server says to a plain request: alert 50, decode error."""
    await reader.read(100)
    writer.write(bytes([0x15, 3, 3, 0, 2, 2, 50]))
    await writer.drain()


async def rubbish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(100)
    writer.write(b"220 mail.example.org ESMTP\r\n")
    await writer.drain()
