"""The embedded backend: the common suite, sessions, and what its file adds."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.errors import Closed, Misuse
from barnabas.store.embedded import EmbeddedTree, open_embedded
from barnabas.store.errors import SessionExpired, StoreInUse
from barnabas.store.tree import EventKind, SessionState, Store, WatchEvent
from barnabas.testing.store_suite import RULES, Connect


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_it_keeps_the_rules_of_every_backend(
    rule: Callable[[Connect], Awaitable[None]], tmp_path: Path
) -> None:
    async def run() -> None:
        tree = await EmbeddedTree.open(str(tmp_path / "store.db"))
        await rule(tree.connect)
        await tree.close()

    asyncio.run(run())


class TestASession:
    def test_expiry_deletes_ephemerals_and_refuses_calls_until_renewed(self, tmp_path: Path) -> None:
        async def run() -> None:
            store = await open_embedded(str(tmp_path / "store.db"))
            states: list[SessionState] = []
            store.listen(states.append)
            await store.create("/e", ephemeral=True)
            first = store.session_id
            await store.expire()
            assert store.state is SessionState.EXPIRED
            with pytest.raises(SessionExpired, match=r"^/e: the session has expired$"):
                await store.get("/e")
            assert await store.renew() == store.session_id > first
            assert await store.exists("/e") is None
            assert states == [SessionState.EXPIRED, SessionState.CONNECTED]
            await store.close()

        asyncio.run(run())

    def test_calls_queued_behind_the_expiry_are_refused(self, tmp_path: Path) -> None:
        async def run() -> None:
            tree = await EmbeddedTree.open(str(tmp_path / "store.db"))
            store, other = await tree.connect(), await tree.connect()
            write = asyncio.ensure_future(store.create("/late"))
            expiry = asyncio.ensure_future(store.expire())
            await asyncio.gather(write, expiry)
            with pytest.raises(SessionExpired):
                await store.create("/later")
            assert await other.children("/") == ["late"]
            await tree.close()

        asyncio.run(run())

    def test_only_an_expired_one_is_renewed(self, tmp_path: Path) -> None:
        async def run() -> None:
            store = await open_embedded(str(tmp_path / "store.db"))
            with pytest.raises(Misuse, match="only an expired session is renewed; this one is connected"):
                await store.renew()
            await store.close()

        asyncio.run(run())

    def test_an_expired_one_hears_no_watch(self, tmp_path: Path) -> None:
        async def run() -> None:
            tree = await EmbeddedTree.open(str(tmp_path / "store.db"))
            store, other = await tree.connect(), await tree.connect()
            told: list[WatchEvent] = []
            await store.exists("/a", watch=told.append)
            await store.expire()
            await other.create("/a")
            assert told == []
            await tree.close()

        asyncio.run(run())

    def test_it_uses_the_given_clock(self, tmp_path: Path) -> None:
        async def run() -> None:
            clock = ManualClock(1_000)
            store = await open_embedded(str(tmp_path / "store.db"), clock=clock)
            created = await store.create("/a")
            clock.advance(5)
            stat = await store.set("/a", b"1")
            assert (created.stat.ctime_ms, stat.ctime_ms, stat.mtime_ms) == (1_000, 1_000, 1_005)
            await store.close()

        asyncio.run(run())


class TestTheFile:
    def test_nodes_stay_and_ephemerals_go_with_close(self, tmp_path: Path) -> None:
        async def run() -> None:
            path = str(tmp_path / "store.db")
            store = await open_embedded(path)
            stat = (await store.create("/a", b"stays")).stat
            await store.create("/e", ephemeral=True)
            await store.close()
            store = await open_embedded(path)
            assert await store.get("/a") == (b"stays", stat)
            assert await store.children("/") == ["a"]
            assert store.session_id > stat.czxid
            await store.close()

        asyncio.run(run())

    def test_closing_the_tree_closes_every_session(self, tmp_path: Path) -> None:
        async def run() -> None:
            tree = await EmbeddedTree.open(str(tmp_path / "store.db"))
            stores = [await tree.connect(), await tree.connect()]
            await tree.close()
            await tree.close()
            assert [store.state for store in stores] == [SessionState.CLOSED] * 2
            with pytest.raises(Closed, match="is closed"):
                await tree.connect()

        asyncio.run(run())

    def test_a_second_opener_is_told_that_it_is_in_use(self, tmp_path: Path) -> None:
        async def run() -> None:
            path = str(tmp_path / "store.db")
            store = await open_embedded(path)
            with pytest.raises(StoreInUse, match="is in use by another process"):
                await open_embedded(path)
            assert await store.children("/") == []
            await store.close()
            again = await open_embedded(path)
            await again.close()

        asyncio.run(run())

    def test_the_worker_survives_a_loop_that_ended_without_close(self, tmp_path: Path) -> None:
        path = str(tmp_path / "store.db")
        stores: list[Store] = []

        async def abandon() -> None:
            stores.append(await open_embedded(path))

        asyncio.run(abandon())
        assert stores[0].state is SessionState.CONNECTED


def test_a_watch_that_fails_does_not_silence_the_others(tmp_path: Path) -> None:
    async def run() -> None:
        reported: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context["message"])
        )
        store = await open_embedded(str(tmp_path / "store.db"))
        told: list[WatchEvent] = []

        def fail(event: WatchEvent) -> None:
            raise ValueError(event)

        await store.exists("/a", watch=fail)
        await store.exists("/a", watch=told.append)
        await store.create("/a")
        assert told == [WatchEvent(EventKind.CREATED, "/a")]
        assert reported == ["a watch of /a failed"]
        await store.close()

    asyncio.run(run())
