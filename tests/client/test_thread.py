"""The private loop thread: calls in, results out, a clean end, no waiting for itself."""

import asyncio
import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from barnabas.base.errors import Misuse
from barnabas.client.errors import ClientClosed, RequestTimedOut
from barnabas.client.thread import ClientThread


async def echo(value: int) -> int:
    await asyncio.sleep(0)
    return value


async def forever() -> None:
    await asyncio.Event().wait()


class TestCalls:
    def test_results_and_errors_come_back(self) -> None:
        thread = ClientThread()
        assert thread.call(echo(7)) == 7

        async def fail() -> None:
            raise KeyError("x")

        with pytest.raises(KeyError):
            thread.call(fail())
        thread.stop()

    def test_many_threads_may_call(self) -> None:
        thread = ClientThread()
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(lambda n: thread.call(echo(n)), range(100))) == list(range(100))
        thread.stop()

    def test_a_late_call_is_cancelled(self) -> None:
        thread = ClientThread()
        cancelled = threading.Event()

        async def work() -> None:
            try:
                await forever()
            finally:
                cancelled.set()

        with pytest.raises(RequestTimedOut, match=r"did not finish within 0.01 s"):
            thread.call(work(), timeout_s=0.01)
        assert cancelled.wait(10)
        thread.stop()

    def test_a_timeout_of_the_work_itself_is_passed_on(self) -> None:
        thread = ClientThread()

        async def work() -> None:
            raise TimeoutError("mine")

        with pytest.raises(TimeoutError, match="mine"):
            thread.call(work(), timeout_s=10)
        thread.stop()

    def test_a_post_runs_on_the_loop(self) -> None:
        thread = ClientThread()
        seen: list[bool] = []
        done = threading.Event()

        def callback(value: str) -> None:
            seen.append(thread.is_current and value == "x")
            done.set()

        thread.post(callback, "x")
        assert done.wait(10)
        assert seen == [True]
        assert not thread.is_current
        thread.stop()

    def test_a_callback_may_not_wait_for_the_client(self) -> None:
        thread = ClientThread()

        async def work() -> None:
            with pytest.raises(Misuse, match="it would wait for itself"):
                thread.call(echo(1))
            with pytest.raises(Misuse, match="may not close it"):
                thread.stop()

        thread.call(work())
        thread.stop()


class TestTheEnd:
    def test_stopping_fails_the_calls_under_way_and_those_to_come(self) -> None:
        thread = ClientThread()
        errors: list[BaseException] = []
        started = threading.Event()

        async def work() -> None:
            started.set()
            await forever()

        def wait() -> None:
            try:
                thread.call(work())
            except ClientClosed as error:
                errors.append(error)

        caller = threading.Thread(target=wait)
        caller.start()
        started.wait(10)
        thread.stop()
        caller.join(10)
        assert [str(error) for error in errors] == ["the client was closed during the call"]
        with pytest.raises(ClientClosed):
            thread.call(echo(1))
        with pytest.raises(ClientClosed):
            thread.post(print)

    def test_it_may_be_stopped_again_and_by_many(self) -> None:
        thread = ClientThread()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: thread.stop(), range(8)))
        assert thread.is_stopped
        assert thread.loop.is_closed()

    def test_closing_is_awaited_on_the_loop(self) -> None:
        seen: list[str] = []

        async def closing() -> None:
            await asyncio.sleep(0)
            seen.append(threading.current_thread().name)

        ClientThread("barnabas-client-x", closing=closing).stop()
        assert seen == ["barnabas-client-x"]

    def test_a_forgotten_one_stops_by_itself(self) -> None:
        closed = threading.Event()

        async def closing() -> None:
            closed.set()

        thread = ClientThread(closing=closing)
        inner = thread._thread
        del thread
        gc.collect()
        assert closed.wait(10)
        inner.join(10)
        assert not inner.is_alive()

    def test_after_a_fork_it_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        thread = ClientThread()
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: -1)
            with pytest.raises(Misuse, match="made before a fork"):
                thread.call(echo(1))
        thread.stop()
