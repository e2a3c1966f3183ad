"""From a request's bytes to its handler, and from the handler's answer to the connection.

D1  Requests of one connection begin in the order they came.  A handler that has to wait in the middle of
    its work (an awaitable) holds back the later ones of its connection; one that is parked until
    something happens (None) does not.
D2  Every request is answered once, dropped once (acks=0), or its connection is closed.
D3  Bytes that are no request, an API or version that is not offered: the connection is closed, nobody
    else notices.  ApiVersions alone is answered whatever its version.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any

from barnabas.base.buffers import Buffer
from barnabas.broker.context import ClientConnection, Context
from barnabas.broker.handlers import HANDLERS, Handler
from barnabas.broker.services import Services
from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.framing import encode_response
from barnabas.protocol.schema import Decoder, Message
from barnabas.protocol.server_connection import Request

__all__ = ["Dispatcher"]

_log = logging.getLogger(__name__)

Run = Callable[[Any, Context], Any]


class _Route:
    """One API, with its handler loaded at first use."""

    __slots__ = ("_decoders", "_handler", "_run", "highest", "lowest")

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._run: Run | None = None
        self._decoders: dict[int, Decoder] = {}
        self.lowest = handler.lowest
        self.highest = handler.highest

    def run(self, version: int, body: memoryview, ctx: Context) -> Any:
        run = self._run or self._load()
        decode = self._decoders.get(version) or self._decoder(version)
        return run(decode(body), ctx)

    def _load(self) -> Run:
        run: Run = import_module(self._handler.module).handle
        self._run = run
        return run

    def _decoder(self, version: int) -> Decoder:
        found = self._decoders[version] = API[self._handler.key].request.decoder(version)
        return found


class Dispatcher:
    """Serves every connection of the broker.  Runs on the event loop."""

    __slots__ = ("_held", "_routes", "_services", "_tasks")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._routes: dict[int, _Route] = {handler.key: _Route(handler) for handler in HANDLERS}
        # Connections in the middle of an awaited request, with what came after it (D1).
        self._held: dict[ClientConnection, deque[Request]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def on_request(self, connection: ClientConnection, request: Request) -> None:
        """Takes one request; never raises."""
        held = self._held.get(connection) if self._held else None
        if held is not None:
            held.append(request)
        else:
            self._begin(connection, request)

    def on_closed(self, connection: ClientConnection) -> None:
        """The connection is gone; what it still wanted is forgotten."""
        held = self._held.get(connection)
        if held is not None:
            held.clear()

    async def drain(self) -> None:
        """Waits for the requests that are in the middle of their work."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _begin(self, connection: ClientConnection, request: Request) -> None:
        ticket, api_key, version, correlation_id, client_id, body = request
        route = self._routes.get(api_key)
        if route is None or not route.lowest <= version <= route.highest:
            self._refuse(connection, request)
            return
        ctx = Context(self._services, connection, ticket, api_key, version, correlation_id, client_id)
        try:
            answer = route.run(version, body, ctx)
        except ProtocolError as error:
            connection.close(f"undecodable {_name(request)}: {error}")
        except Exception:
            _log.exception("%s failed", _name(request))
            connection.close(f"{_name(request)} failed; see the log")
        else:
            if answer is None:
                return
            if isinstance(answer, Message):
                self._reply(ctx, answer)
            else:
                self._wait_for(ctx, request, answer)

    def _reply(self, ctx: Context, answer: Message) -> None:
        try:
            ctx.reply(answer)
        except Exception:
            _log.exception("an answer could not be encoded: %r", answer)
            ctx.connection.close("an answer could not be encoded; see the log")

    def _wait_for(self, ctx: Context, request: Request, work: Coroutine[Any, Any, Message | None]) -> None:
        self._held[ctx.connection] = deque()
        task = asyncio.get_running_loop().create_task(self._finish(ctx, request, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(
        self, ctx: Context, request: Request, work: Coroutine[Any, Any, Message | None]
    ) -> None:
        try:
            answer = await work
        except Exception:
            _log.exception("%s failed", _name(request))
            ctx.connection.close(f"{_name(request)} failed; see the log")
        else:
            if answer is not None:
                self._reply(ctx, answer)
        # The queue stays known while it is worked off: if the connection ends on the way, it is emptied.
        connection, held = ctx.connection, self._held[ctx.connection]
        while held:
            later = held.popleft()
            self._begin(connection, later)
            if self._held[connection] is not held:
                # That one waits too: the rest stays behind it.
                self._held[connection].extend(held)
                return
        del self._held[connection]

    def _refuse(self, connection: ClientConnection, request: Request) -> None:
        if request.api_key == ApiKey.API_VERSIONS:
            from barnabas.broker.handlers.api_versions import unsupported

            answer: list[Buffer] = encode_response(
                ApiKey.API_VERSIONS, 0, request.correlation_id, unsupported()
            )
            connection.finish(request.ticket, answer)
        else:
            connection.close(f"{_name(request)} is not offered")


def _name(request: Request) -> str:
    try:
        name = ApiKey(request.api_key).name
    except ValueError:
        name = f"API {request.api_key}"
    return f"{name} v{request.api_version}"
