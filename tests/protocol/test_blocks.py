"""Blocks are reused exactly when nobody looks at them."""

import pytest

from barnabas.protocol.blocks import BLOCK_BYTES, BlockPool


def test_a_block_that_nobody_else_saw_is_reused() -> None:
    pool = BlockPool()
    block = pool.take(10)
    pool.give(block, shared=False)
    assert pool.take(10) is block
    assert len(block.view) == BLOCK_BYTES


@pytest.mark.parametrize("size", [10, 900_000])
def test_a_shared_block_is_reused_when_its_last_view_is_gone(size: int) -> None:
    pool = BlockPool()
    block = pool.take(size)
    seen = block.view[5:7]
    pool.give(block, shared=True)
    assert pool.take(size) is not block
    del seen
    assert pool.take(size) is block
    block.view[0] = 1


def test_a_block_in_use_does_not_hide_a_free_one() -> None:
    pool = BlockPool()
    busy, free = pool.take(1), pool.take(1)
    seen = busy.view[:]
    pool.give(busy, shared=True)
    pool.give(free, shared=True)
    assert pool.take(1) is free
    assert seen.nbytes == BLOCK_BYTES


def test_large_blocks_are_powers_of_two_with_room_for_what_was_asked() -> None:
    pool = BlockPool()
    assert len(pool.take(BLOCK_BYTES + 1).view) == 2 * BLOCK_BYTES
    assert len(pool.take(900_000).view) == 2**20
    assert len(pool.take(2**20).view) == 2**20


def test_sizes_are_kept_apart() -> None:
    pool = BlockPool()
    pool.give(pool.take(900_000), shared=False)
    assert len(pool.take(1).view) == BLOCK_BYTES


@pytest.mark.parametrize("shared", [False, True])
def test_a_pool_remembers_a_few_blocks_only(shared: bool) -> None:
    pool = BlockPool()
    blocks = [pool.take(1) for _ in range(20)]
    for block in blocks:
        pool.give(block, shared=shared)
    again = [pool.take(1) for _ in range(20)]
    assert sum(any(block is old for old in blocks) for block in again) == 4


def test_very_large_blocks_are_not_kept() -> None:
    pool = BlockPool()
    block = pool.take(5 * 2**20)
    pool.give(block, shared=True)
    assert pool.take(5 * 2**20) is not block
