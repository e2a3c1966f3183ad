"""barnabas.broker.producer_ids: no id is ever given twice."""

import asyncio
from pathlib import Path

from barnabas.broker.cluster import load_image
from barnabas.broker.producer_ids import BLOCK_SIZE, ProducerIds
from barnabas.store import paths
from barnabas.store.documents import ProducerIdBlock
from barnabas.store.embedded import EmbeddedTree, open_embedded
from tests.broker._parts import run


def test_ids_rise_from_zero_and_go_on_in_the_next_block(folder: Path) -> None:
    async def main() -> None:
        store = await open_embedded(str(folder / "db"))
        await load_image(store, new_cluster_id=lambda: "c")
        ids = ProducerIds(store, 1)
        assert [await ids.next() for _ in range(BLOCK_SIZE + 3)] == list(range(BLOCK_SIZE + 3))
        data, _ = await store.get(paths.PRODUCER_ID_BLOCK)
        block = ProducerIdBlock.decode(data)
        assert (block.first, block.last) == (BLOCK_SIZE, 2 * BLOCK_SIZE - 1)
        await store.close()

    run(main())


def test_a_restart_begins_a_block_of_its_own(folder: Path) -> None:
    async def main() -> None:
        given: list[int] = []
        for _ in range(3):
            store = await open_embedded(str(folder / "db"))
            await load_image(store, new_cluster_id=lambda: "c")
            ids = ProducerIds(store, 1)
            given += [await ids.next() for _ in range(3)]
            await store.close()
        assert given == [n + block * BLOCK_SIZE for block in range(3) for n in range(3)]

    run(main())


def test_callers_at_once_get_different_ones(folder: Path) -> None:
    async def main() -> None:
        store = await open_embedded(str(folder / "db"))
        await load_image(store, new_cluster_id=lambda: "c")
        ids = ProducerIds(store, 1)
        given = await asyncio.gather(*(ids.next() for _ in range(50)))
        assert sorted(given) == list(range(50))
        await store.close()

    run(main())


def test_two_brokers_on_one_tree_never_share_a_block(folder: Path) -> None:
    async def main() -> None:
        tree = await EmbeddedTree.open(str(folder / "db"))
        one, two = await tree.connect(), await tree.connect(owns_tree=True)
        await load_image(one, new_cluster_id=lambda: "c")
        first, second = ProducerIds(one, 1), ProducerIds(two, 2)
        given = await asyncio.gather(*(ids.next() for _ in range(20) for ids in (first, second)))
        assert len(set(given)) == 40
        assert {number // BLOCK_SIZE for number in given} == {0, 1}
        await one.close()
        await two.close()

    run(main())
