"""barnabas.broker.context: the one way to answer a request."""

from typing import TYPE_CHECKING, cast

from barnabas.base.buffers import Buffer
from barnabas.broker.context import Context
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.heartbeat import HeartbeatResponse

if TYPE_CHECKING:
    from barnabas.broker.services import Services


class FakeConnection:
    """Keeps what is finished on it."""

    listener = "PLAINTEXT"
    peer_host = "127.0.0.1"
    has_early_answers = False

    def __init__(self) -> None:
        self.finished: list[tuple[int, list[Buffer] | None]] = []
        self.closed: list[str] = []

    def finish(self, ticket: int, buffers: list[Buffer] | None) -> None:
        self.finished.append((ticket, buffers))

    def close(self, reason: str) -> None:
        self.closed.append(reason)


def make(version: int) -> tuple[Context, FakeConnection]:
    connection = FakeConnection()
    services = cast("Services", None)
    return Context(services, connection, 5, ApiKey.HEARTBEAT, version, 77, "me"), connection


def test_an_answer_goes_out_in_the_requests_version_with_its_correlation_id() -> None:
    for version, header in ((0, b""), (4, b"\0")):
        ctx, connection = make(version)
        ctx.reply(HeartbeatResponse(error_code=27))
        ((ticket, buffers),) = connection.finished
        assert ticket == 5
        assert buffers is not None
        frame = b"".join(part for part in buffers if isinstance(part, bytes | bytearray))
        assert frame[4:] == b"\0\0\0\x4d" + header + b"".join(
            bytes(part)
            for part in HeartbeatResponse(error_code=27).encode(version)
            if isinstance(part, bytearray)
        )


def test_a_dropped_request_gets_nothing() -> None:
    ctx, connection = make(0)
    ctx.drop()
    assert connection.finished == [(5, None)]
