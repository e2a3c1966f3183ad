"""Blocks are reused exactly when nobody looks at them."""

from barnabas.protocol.blocks import BLOCK_BYTES, BlockPool


def test_a_block_without_views_is_reused() -> None:
    pool = BlockPool()
    block = pool.take(10)
    pool.give(block)
    assert pool.take(10) is block
    assert len(block) == BLOCK_BYTES


def test_a_block_with_a_live_view_is_not() -> None:
    pool = BlockPool()
    block = pool.take(10)
    view = memoryview(block)[5:7]
    pool.give(block)
    other = pool.take(10)
    assert other is not block
    del view
    assert pool.take(10) is block


def test_a_block_in_use_does_not_hide_a_free_one() -> None:
    pool = BlockPool()
    free, busy = pool.take(1), pool.take(1)
    view = memoryview(busy)
    pool.give(free)
    pool.give(busy)
    assert pool.take(1) is free
    assert view.nbytes == BLOCK_BYTES


def test_large_blocks_are_powers_of_two_with_room_for_what_was_asked() -> None:
    pool = BlockPool()
    assert len(pool.take(BLOCK_BYTES + 1)) == 2 * BLOCK_BYTES
    assert len(pool.take(900_000)) == 2**20
    assert len(pool.take(2**20)) == 2**20


def test_sizes_are_kept_apart() -> None:
    pool = BlockPool()
    pool.give(pool.take(900_000))
    assert len(pool.take(1)) == BLOCK_BYTES


def test_a_pool_remembers_a_few_blocks_only() -> None:
    pool = BlockPool()
    blocks = [pool.take(1) for _ in range(20)]
    for block in blocks:
        pool.give(block)
    again = [pool.take(1) for _ in range(20)]
    assert sum(any(block is old for old in blocks) for block in again) == 4


def test_very_large_blocks_are_not_kept() -> None:
    pool = BlockPool()
    block = pool.take(5 * 2**20)
    pool.give(block)
    assert pool.take(5 * 2**20) is not block
