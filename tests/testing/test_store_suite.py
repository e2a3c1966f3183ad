"""The suite for backends of the tree: it runs all its rules, and it can fail."""

import asyncio
import itertools
from pathlib import Path

import pytest

from barnabas.store.embedded import EmbeddedStore, EmbeddedTree
from barnabas.store.tree import ANY_VERSION, Stat
from barnabas.testing.store_suite import RULES, Connect, check_store


def test_it_runs_every_rule_on_a_tree_of_its_own(tmp_path: Path) -> None:
    numbers = itertools.count()
    trees: list[EmbeddedTree] = []

    async def make_tree() -> Connect:
        trees.append(await EmbeddedTree.open(str(tmp_path / f"{next(numbers)}.db")))
        return trees[-1].connect

    async def run() -> None:
        await check_store(make_tree)
        for tree in trees:
            await tree.close()

    asyncio.run(run())
    assert len(trees) == len(RULES)


def test_a_backend_that_ignores_versions_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_set = EmbeddedStore.set

    async def careless_set(
        self: EmbeddedStore, path: str, data: bytes, *, version: int = ANY_VERSION
    ) -> Stat:
        return await real_set(self, path, data)

    numbers = itertools.count()
    trees: list[EmbeddedTree] = []

    async def make_tree() -> Connect:
        trees.append(await EmbeddedTree.open(str(tmp_path / f"{next(numbers)}.db")))
        return trees[-1].connect

    async def run() -> None:
        try:
            with pytest.raises(AssertionError, match="BadVersion expected"):
                await check_store(make_tree)
        finally:
            for tree in trees:
                await tree.close()

    monkeypatch.setattr(EmbeddedStore, "set", careless_set)
    asyncio.run(run())
