"""One request in progress: who asks, what the broker offers to answer it, and the one way to answer."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.base.buffers import Buffer
from barnabas.protocol.framing import encode_response
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.services import Services

__all__ = ["ClientConnection", "Context"]


class ClientConnection(Protocol):
    """What a handler may know of the connection a request came on."""

    @property
    def listener(self) -> str: ...

    @property
    def peer_host(self) -> str: ...

    def __hash__(self) -> int: ...

    @property
    def has_early_answers(self) -> bool:
        """Whether an answer is ready and waits for that of an older request."""

    def finish(self, ticket: int, buffers: list[Buffer] | None) -> None:
        """Answers the request; None sends nothing (acks=0)."""

    def close(self, reason: str) -> None:
        """Cuts the connection; `reason` is logged."""


class Context:
    """Passed to every handler.  A handler returns its answer, or keeps this and calls `reply` later."""

    __slots__ = ("api_key", "client_id", "connection", "correlation_id", "services", "ticket", "version")

    def __init__(
        self,
        services: "Services",
        connection: ClientConnection,
        ticket: int,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
    ) -> None:
        self.services = services
        self.connection = connection
        self.ticket = ticket
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id

    def reply(self, response: Message) -> None:
        """Sends the answer; exactly one of `reply`, `drop` and a returned answer per request.

        Answers leave in the order of their requests.  One that would have to wait for a request which
        itself only waits for more (a long-polling Fetch) ends that wait.
        """
        connection = self.connection
        connection.finish(
            self.ticket, encode_response(self.api_key, self.version, self.correlation_id, response)
        )
        if connection.has_early_answers:
            self.services.purgatory.hurry(connection)

    def guarded(self, attempt: Callable[[bool], bool]) -> Callable[[bool], bool]:
        """The attempt of a request that is parked: if it fails, the client is not left without an answer."""

        def guard(expired: bool) -> bool:
            try:
                return attempt(expired)
            except Exception:
                self.connection.close("a waiting request failed; see the log")
                raise

        return guard

    def drop(self) -> None:
        """The request gets no answer, as acks=0 wants it."""
        self.connection.finish(self.ticket, None)
