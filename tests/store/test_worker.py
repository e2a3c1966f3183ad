"""The worker: order, shared commits, failing commits."""

import asyncio
from pathlib import Path

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.errors import Closed, StorageFault
from barnabas.store.errors import NodeExists
from barnabas.store.tree import Create, Result, WatchEvent
from barnabas.store.watches import WatchTable
from barnabas.store.worker import Work, Worker


async def start(tmp_path: Path) -> tuple[Worker, int]:
    worker = Worker(str(tmp_path / "store.db"), ManualClock())
    await worker.start()

    def open_session(work: Work) -> int:
        session_id = work.tree.open_session()
        work.watches[session_id] = WatchTable()
        return session_id

    return worker, await worker.submit(open_session, writes=False)


def create(worker: Worker, session_id: int, path: str) -> asyncio.Future[list[Result]]:
    def run(work: Work) -> list[Result]:
        applied = work.tree.apply(session_id, [Create(path)])
        work.events.extend(applied.events)
        return applied.results

    return worker.submit(run, writes=True)


def test_answers_come_in_the_order_of_the_calls(tmp_path: Path) -> None:
    async def run() -> None:
        worker, session_id = await start(tmp_path)
        seen: list[int] = []
        calls: list[asyncio.Future[list[Result]] | asyncio.Future[list[str]]] = []
        for number in range(20):
            if number % 3:
                calls.append(create(worker, session_id, f"/{number}"))
            else:
                calls.append(worker.submit(lambda work: work.tree.children("/"), writes=False))
            calls[-1].add_done_callback(lambda _, number=number: seen.append(number))  # type: ignore[misc]  # binds the loop variable
        await asyncio.gather(*calls)
        assert seen == list(range(20))
        for number in range(0, 20, 3):
            names = calls[number].result()
            assert len(names) == number - len(range(0, number, 3)), "a read sees just the writes before it"
        await worker.stop()

    asyncio.run(run())


def test_writes_that_wait_share_a_commit_and_a_refused_one_harms_no_other(tmp_path: Path) -> None:
    async def run() -> None:
        worker, session_id = await start(tmp_path)
        commits = 0

        def count(work: Work) -> None:
            commit = work.tree.commit

            def counted() -> None:
                nonlocal commits
                commits += 1
                commit()

            work.tree.commit = counted  # type: ignore[method-assign]  # counts the real ones

        await worker.submit(count, writes=False)
        results = await asyncio.gather(
            *(create(worker, session_id, f"/{number % 90}") for number in range(100)), return_exceptions=True
        )
        assert commits < 100
        assert [type(result) for result in results] == [list] * 90 + [NodeExists] * 10
        await worker.stop()

    asyncio.run(run())


def test_a_failing_commit_fails_its_group_and_tells_no_watch(tmp_path: Path) -> None:
    async def run() -> None:
        worker, session_id = await start(tmp_path)
        told: list[WatchEvent] = []

        def break_disk(work: Work) -> None:
            work.watches[session_id].watch_data("/a", told.append)
            work.tree._db.execute("PRAGMA query_only = 1")

        def mend_disk(work: Work) -> None:
            work.tree._db.execute("PRAGMA query_only = 0")

        await worker.submit(break_disk, writes=False)
        calls = [create(worker, session_id, "/a"), create(worker, session_id, "/b")]
        for result in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(result, StorageFault)
            assert "readonly database" in str(result)
        await worker.submit(mend_disk, writes=False)
        assert told == []
        assert await create(worker, session_id, "/a") == ["/a"]
        assert len(told) == 1
        await worker.stop()

    asyncio.run(run())


def test_a_caller_that_gave_up_does_not_stop_the_rest(tmp_path: Path) -> None:
    async def run() -> None:
        worker, session_id = await start(tmp_path)
        first, second = create(worker, session_id, "/a"), create(worker, session_id, "/b")
        first.cancel()
        assert await second == ["/b"]
        await worker.stop()

    asyncio.run(run())


def test_after_stop_it_takes_no_calls(tmp_path: Path) -> None:
    async def run() -> None:
        worker, session_id = await start(tmp_path)
        last = create(worker, session_id, "/a")
        await worker.stop()
        assert last.result() == ["/a"]
        with pytest.raises(Closed, match=r"the store .*store\.db is closed"):
            create(worker, session_id, "/b")

    asyncio.run(run())


def test_a_file_that_cannot_be_opened_raises_at_start(tmp_path: Path) -> None:
    async def run() -> None:
        (tmp_path / "store.db").write_bytes(b"rubbish" * 100)
        worker = Worker(str(tmp_path / "store.db"), ManualClock())
        with pytest.raises(StorageFault, match="is damaged"):
            await worker.start()
        await worker.stop()

    asyncio.run(run())
