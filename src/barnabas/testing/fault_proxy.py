"""A TCP proxy that breaks connections in the ways networks do, between a client and one broker.

    proxy = FaultProxy()
    with Broker({"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker, proxy.start(broker.port):
        proxy.cut()             connections end in the middle of what they carry
        proxy.reset()           the same, with RST instead of FIN
        proxy.stall()           nothing passes in either direction until `resume`
        proxy.refuse()          new connections are turned away until `accept`
        proxy.split(7)          bytes pass in pieces of at most 7
        proxy.delay(20)         every piece takes 20 ms more
        proxy.lose_answers(ApiKey.END_TXN)      requests pass, connections end instead of these answers

The broker must advertise the proxy's address, or clients go around it.
Own thread and event loop; every method may be called from any thread and has taken effect when it returns.
"""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, TypeVar

from barnabas.base.errors import Misuse
from barnabas.testing.conversation import Conversation

__all__ = ["FaultProxy"]

Result = TypeVar("Result")

_READ_BYTES: Final = 64 * 1024
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)  # SO_LINGER with no time: close sends RST


class _Pipe:
    """One client connection and its way to the broker."""

    def __init__(self, client: asyncio.StreamWriter, broker: asyncio.StreamWriter) -> None:
        self.client = client
        self.broker = broker
        self.passed_bytes = 0
        self.conversation = Conversation()

    def end(self, *, reset: bool) -> None:
        for writer in (self.client, self.broker):
            if reset:
                sock = writer.get_extra_info("socket")
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                writer.transport.abort()
            else:
                writer.close()


class FaultProxy:
    """Listens on a free port of 127.0.0.1 from construction; passes bytes on from `start` to `stop`."""

    def __init__(self, target_port: int | None = None) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: Final[int] = self._listening.getsockname()[1]
        self.address: Final = f"127.0.0.1:{self.port}"
        self._target_port = target_port
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._pipes: set[_Pipe] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = asyncio.Event()  # clear while stalled
        self._open.set()
        self._answers_open = asyncio.Event()
        self._answers_open.set()
        self._refuses = False
        self._piece_bytes = _READ_BYTES
        self._delay_s = 0.0
        self._cut_after: int | None = None
        self._resets = False
        self._losing: int | None = None
        self._losses_left = 0
        self.lost_answers = 0
        self._server: asyncio.Server | None = None

    # --- life

    def start(self, target_port: int | None = None) -> Self:
        """Begins to pass connections on."""
        if target_port is not None:
            self._target_port = target_port
        if self._target_port is None:
            raise Misuse("the proxy needs the port of a broker")
        if self._thread is not None:
            raise Misuse("the proxy runs already")
        self._thread = threading.Thread(target=self._run, name="fault-proxy", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result()
        return self

    def stop(self) -> None:
        """Ends every connection and the thread; does nothing if it was not started."""
        if self._thread is None:
            self._listening.close()
            if not self._loop.is_running():
                self._loop.close()
            return
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._thread = None

    def retarget(self, port: int) -> None:
        """Passes new connections to another port: a broker that came back elsewhere."""
        self._target_port = port

    def __enter__(self) -> Self:
        return self if self._thread is not None else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- faults

    @property
    def connections(self) -> int:
        return len(self._pipes)

    def cut(self) -> int:
        """Ends all connections now; how many there were."""
        return self._do(lambda: self._end_all(reset=False))

    def reset(self) -> int:
        """Ends all connections now with RST; how many there were."""
        return self._do(lambda: self._end_all(reset=True))

    def cut_after(self, count: int, *, reset: bool = False) -> None:
        """Ends each connection once it has passed `count` bytes on, most likely in the middle of a frame.

        Holds for connections there are and those to come, until `heal`.
        """

        def change() -> None:
            self._cut_after, self._resets = count, reset

        self._do(change)

    def stall(self, *, answers_only: bool = False) -> None:
        """Nothing passes until `resume`, or only what clients send; connections stay up."""

        def change() -> None:
            self._answers_open.clear()
            if not answers_only:
                self._open.clear()

        self._do(change)

    def resume(self) -> None:
        def change() -> None:
            self._open.set()
            self._answers_open.set()

        self._do(change)

    def refuse(self) -> None:
        """Ends new connections as soon as they come about, until `accept`."""

        def change() -> None:
            self._refuses = True

        self._do(change)

    def accept(self) -> None:
        def change() -> None:
            self._refuses = False

        self._do(change)

    def split(self, piece_bytes: int) -> None:
        """Passes at most so many bytes at once, each piece in a packet of its own."""
        if piece_bytes < 1:
            raise Misuse(f"a piece has at least one byte, not {piece_bytes}")

        def change() -> None:
            self._piece_bytes = piece_bytes

        self._do(change)

    def delay(self, ms: float) -> None:
        """Every piece takes so much longer."""

        def change() -> None:
            self._delay_s = ms / 1000

        self._do(change)

    def lose_answers(self, api_key: int, times: int = 2**31) -> None:
        """The next answers to this request do not pass: each connection ends where the answer would begin.

        Holds for as many as said, or until `heal`; `lost_answers` counts them.
        """

        def change() -> None:
            self._losing, self._losses_left = api_key, times

        self._do(change)

    def heal(self) -> None:
        """Takes back every fault; what was ended stays ended."""

        def change() -> None:
            self._refuses = False
            self._piece_bytes = _READ_BYTES
            self._delay_s = 0.0
            self._cut_after = None
            self._losing = None
            self._open.set()
            self._answers_open.set()

        self._do(change)

    # --- inside, on the loop

    def _do(self, work: Callable[[], Result]) -> Result:
        """Runs `work` on the loop and waits for it."""

        async def run() -> Result:
            return work()

        if self._thread is None:
            return work()  # nothing runs yet that could be disturbed
        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    async def _serve(self) -> None:
        self._server = await asyncio.start_server(self._accepted, sock=self._listening)

    async def _shut(self) -> None:
        assert self._server is not None
        self._server.close()
        self._end_all(reset=False)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _end_all(self, *, reset: bool) -> int:
        pipes = list(self._pipes)
        for pipe in pipes:
            pipe.end(reset=reset)
        return len(pipes)

    def _accepted(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._join(reader, client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _join(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        if self._refuses:
            client.transport.abort()
            return
        try:
            from_broker, broker = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            client.transport.abort()  # as if the broker's port were this one
            return
        for writer in (client, broker):
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pipe = _Pipe(client, broker)
        self._pipes.add(pipe)
        try:
            await asyncio.gather(
                self._pass(pipe, reader, broker, self._open, self._look_at_requests),
                self._pass(pipe, from_broker, client, self._answers_open, self._look_at_answers),
            )
        finally:
            self._pipes.discard(pipe)
            pipe.end(reset=False)

    def _look_at_requests(self, pipe: _Pipe, data: bytes) -> int:
        pipe.conversation.asked(data)
        return len(data)

    def _look_at_answers(self, pipe: _Pipe, data: bytes) -> int:
        for place, api_key in pipe.conversation.answers(data):
            if api_key == self._losing and self._losses_left:
                self._losses_left -= 1
                self.lost_answers += 1
                return place
        return len(data)

    async def _pass(
        self,
        pipe: _Pipe,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        gate: asyncio.Event,
        look: Callable[[_Pipe, bytes], int],
    ) -> None:
        """Carries one direction until it ends; then the other ends too.

        `look` says how many of the bytes may pass: the connection ends behind them if that is not all.
        """
        try:
            while data := await reader.read(_READ_BYTES):
                passing = look(pipe, data)
                for start in range(0, passing, self._piece_bytes):
                    piece = data[start : min(start + self._piece_bytes, passing)]
                    if self._delay_s:
                        await asyncio.sleep(self._delay_s)
                    await gate.wait()
                    limit = self._cut_after
                    if limit is not None and pipe.passed_bytes + len(piece) >= limit:
                        writer.write(piece[: max(limit - pipe.passed_bytes, 0)])
                        pipe.end(reset=self._resets)
                        return
                    pipe.passed_bytes += len(piece)
                    writer.write(piece)
                    await writer.drain()
                if passing < len(data):
                    return
        except OSError:
            pass  # one of the two sides went away: that is what this is for
        finally:
            pipe.end(reset=False)
