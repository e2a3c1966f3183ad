"""The private thread with an event loop behind a synchronous client object.

T1  everything of the client's core runs on this thread; user threads reach it by `call` and `post` only
T2  after `stop` there is no thread, no loop and no task left; calls raise ClientClosed
T3  an object that its user forgot stops its thread when it is collected, and at interpreter exit

The thread is a daemon: a user's program can end without close.  It does not survive a fork, and says so.
"""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from barnabas.base.errors import Misuse
from barnabas.client.errors import ClientClosed, RequestTimedOut

__all__ = ["ClientThread", "new_event_loop"]

Result = TypeVar("Result")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The fastest loop there is: uvloop, else asyncio's."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class ClientThread:
    """One daemon thread that runs an event loop from construction to `stop`.

    `closing` is awaited on the loop before it ends, also when the object was forgotten; it must not refer to
    the object that holds this one.
    """

    def __init__(
        self, name: str = "barnabas-client", *, closing: Callable[[], Coroutine[Any, Any, None]] | None = None
    ) -> None:
        self._pid = os.getpid()
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=_run, args=(self._loop, closing), name=name, daemon=True)
        self._lock = threading.Lock()
        self._finalizer = weakref.finalize(self, _end, self._loop, self._thread)
        self._thread.start()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    @property
    def is_stopped(self) -> bool:
        return not self._finalizer.alive

    @property
    def is_current(self) -> bool:
        """Whether the caller runs on this thread, as callbacks do."""
        return threading.current_thread() is self._thread

    def call(self, work: Coroutine[Any, Any, Result], timeout_s: float | None = None) -> Result:
        """Runs `work` on the loop and waits for its result; an interrupted or late wait cancels it.

        Raises what the work raises, RequestTimedOut after `timeout_s`, ClientClosed after `stop`, and Misuse
        from a callback of the client, where waiting would wait for itself.
        """
        try:
            self._check()
            if self.is_current:
                raise Misuse("a callback of the client may not wait for the client: it would wait for itself")
            future: Future[Result] = asyncio.run_coroutine_threadsafe(work, self._loop)
        except BaseException:
            work.close()
            raise
        try:
            return future.result(timeout_s)
        except CancelledError:
            raise ClientClosed("the client was closed during the call") from None
        except TimeoutError as error:
            if future.done() and not future.cancelled():
                raise  # the work's own
            future.cancel()
            raise RequestTimedOut(f"the call did not finish within {timeout_s} s") from error
        except BaseException:
            future.cancel()
            raise

    def post(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Runs `callback` on the loop soon, from any thread.  Raises ClientClosed after `stop`."""
        self._check()
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError as error:  # the loop was closed since the check
            raise ClientClosed from error

    def stop(self) -> None:
        """Cancels what still runs, ends the thread, waits for its end.  May be called again."""
        if self.is_current:
            raise Misuse("a callback of the client may not close it and wait for the end")
        with self._lock:
            self._finalizer()

    def _check(self) -> None:
        if self._pid != os.getpid():
            raise Misuse("the client was made before a fork; make a new one in the child process")
        if not self._finalizer.alive:
            raise ClientClosed


def _run(loop: asyncio.AbstractEventLoop, closing: Callable[[], Coroutine[Any, Any, None]] | None) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        if closing is not None:
            loop.run_until_complete(closing())
        _drain(loop)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _drain(loop: asyncio.AbstractEventLoop) -> None:
    """Cancels the tasks that are left and lets them clean up."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    if not thread.is_alive():
        return  # also in a forked child, where the thread never was
    loop.call_soon_threadsafe(loop.stop)
    if threading.current_thread() is not thread:
        thread.join()
