"""barnabas.broker.loop_timers: calls to come on the event loop."""

import asyncio

from barnabas.broker.loop_timers import LoopTimers


def test_calls_come_in_the_order_of_their_times_and_can_be_taken_back() -> None:
    async def main() -> list[str]:
        timers = LoopTimers(asyncio.get_running_loop())
        called: list[str] = []
        finished = asyncio.Event()
        timers.call_after(20, finished.set)
        timers.call_after(1, lambda: called.append("soon"))
        timers.call_soon(lambda: called.append("now"))
        timers.call_after(5, lambda: called.append("never")).cancel()
        async with asyncio.timeout(20):
            await finished.wait()
        called.append("later")
        return called

    assert asyncio.run(main()) == ["now", "soon", "later"]


def test_times_are_milliseconds() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        handle = LoopTimers(loop).call_after(60_000, lambda: None)
        left = handle.when() - loop.time()
        handle.cancel()
        return left

    assert 59 < asyncio.run(main()) <= 60
