"""barnabas.broker.offload: work on threads, awaited by the loop."""

import asyncio
import threading

import pytest

from barnabas.broker.offload import Offload
from barnabas.records.errors import CorruptBatch


def test_work_runs_on_another_thread_and_its_result_comes_back() -> None:
    async def main() -> None:
        offload = Offload()
        name = await offload.run(lambda: threading.current_thread().name)
        assert name.startswith("barnabas-work")
        offload.close()

    asyncio.run(main())


def test_what_it_raises_comes_back_too() -> None:
    def fail() -> None:
        raise CorruptBatch("bad")

    async def main() -> None:
        offload = Offload()
        with pytest.raises(CorruptBatch, match="bad"):
            await offload.run(fail)
        offload.close()

    asyncio.run(main())


def test_the_loop_goes_on_meanwhile() -> None:
    async def main() -> None:
        offload = Offload()
        release = threading.Event()
        waiting = asyncio.ensure_future(offload.run(release.wait))
        await asyncio.sleep(0)
        assert not waiting.done()
        release.set()
        assert await waiting
        offload.close()

    asyncio.run(main())


def test_closing_waits_for_what_runs() -> None:
    async def main() -> list[str]:
        offload = Offload()
        done: list[str] = []
        began = threading.Event()

        def work() -> None:
            began.set()
            done.append("done")

        future = asyncio.ensure_future(offload.run(work))
        await asyncio.sleep(0)
        began.wait()
        offload.close()
        await future
        return done

    assert asyncio.run(main()) == ["done"]
