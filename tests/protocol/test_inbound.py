"""Bytes in, frames out, whatever the cuts; memory bounded by what was received."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.blocks import BLOCK_BYTES, BlockPool
from barnabas.protocol.inbound import COPY_BYTES, GROWTH, Inbound

LIMIT = 8 * 2**20


def framed(*payloads: bytes) -> bytes:
    return b"".join(len(payload).to_bytes(4, "big") + payload for payload in payloads)


def read(inbound: Inbound, data: bytes, step: int) -> list[memoryview]:
    """Feeds `data` as a socket would that never has more than `step` bytes at once."""
    frames, position = [], 0
    while position < len(data) and inbound.fault is None:
        space = inbound.space()
        assert len(space) > 0
        count = min(step, len(space), len(data) - position)
        space[:count] = data[position : position + count]
        del space
        frames += inbound.advance(count)
        position += count
    return frames


_SIZES = st.one_of(
    st.integers(0, 50), st.sampled_from([COPY_BYTES - 4, COPY_BYTES, 20_000, BLOCK_BYTES, 300_000])
)


@settings(max_examples=40)
@given(st.lists(_SIZES, max_size=8), st.sampled_from([1000, 1447, 17_000, 65_536, 10**6]), st.booleans())
def test_how_the_bytes_are_cut_changes_nothing(sizes: list[int], step: int, kept: bool) -> None:
    payloads = [bytes([index + 1]) * size for index, size in enumerate(sizes)]
    inbound = Inbound(frame_bytes_max=LIMIT)
    frames = read(inbound, framed(*payloads), step)
    assert [bytes(frame) for frame in frames] == payloads  # none was written over by a later read
    assert inbound.unfinished_bytes == 0
    if not kept:
        frames.clear()
    assert [bytes(frame) for frame in read(inbound, framed(b"next"), step)] == [b"next"]


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(1, 30))
def test_even_single_bytes_make_the_same_frames(payloads: list[bytes], step: int) -> None:
    assert [bytes(frame) for frame in read(Inbound(frame_bytes_max=100), framed(*payloads), step)] == payloads


def test_received_data_may_be_handed_over_whole() -> None:
    payloads = [b"a", b"", b"b" * 200_000, b"c"]
    frames = Inbound(frame_bytes_max=LIMIT).receive(framed(*payloads))
    assert [bytes(frame) for frame in frames] == payloads


@pytest.mark.parametrize("size", [10, COPY_BYTES + 1, 200_000])
def test_frames_are_writable_views(size: int) -> None:
    (frame,) = Inbound(frame_bytes_max=LIMIT).receive(framed(bytes(size)))
    frame[:3] = b"xyz"
    assert bytes(frame[:3]) == b"xyz"


class TestSizesThatAreRefused:
    @pytest.mark.parametrize("size", [-1, 101, 2**31 - 1, -(2**31)])
    def test_a_size_outside_the_limit_is_a_fault(self, size: int) -> None:
        inbound = Inbound(frame_bytes_max=100)
        assert inbound.receive(size.to_bytes(4, "big", signed=True)) == []
        assert inbound.fault == f"frame size {size} is outside 0 to 100"

    def test_frames_before_the_fault_are_good_and_none_comes_after(self) -> None:
        inbound = Inbound(frame_bytes_max=100)
        frames = inbound.receive(framed(b"one") + b"\xff\xff\xff\xff" + framed(b"two"))
        assert [bytes(frame) for frame in frames] == [b"one"]
        assert inbound.receive(framed(b"three")) == []

    def test_the_limit_may_change(self) -> None:
        inbound = Inbound(frame_bytes_max=10)
        inbound.frame_bytes_max = 100
        assert len(inbound.receive(framed(bytes(50)))) == 1
        assert inbound.fault is None


class TestMemory:
    def test_a_large_frame_announced_and_not_sent_costs_nothing(self) -> None:
        inbound = Inbound(frame_bytes_max=100 * 2**20)
        tracemalloc.start()
        inbound.receive((100 * 2**20).to_bytes(4, "big") + b"only ten b")
        held, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2 * BLOCK_BYTES
        assert inbound.unfinished_bytes == 14
        assert held < peak  # the block went back to the pool

    def test_a_started_frame_holds_a_bounded_multiple_of_what_arrived(self) -> None:
        inbound = Inbound(frame_bytes_max=100 * 2**20)
        data = (100 * 2**20).to_bytes(4, "big") + bytes(300_000)
        tracemalloc.start()
        read(inbound, data, 5000)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held < (GROWTH + 1) * len(data)

    def test_many_idle_connections_hold_no_block(self) -> None:
        pool = BlockPool()
        connections = [Inbound(frame_bytes_max=LIMIT, pool=pool) for _ in range(100)]
        tracemalloc.start()
        for connection in connections:
            read(connection, framed(b"request") + b"\0\0", 1000)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held < 2 * BLOCK_BYTES

    def test_a_small_request_that_waits_pins_only_itself(self) -> None:
        inbound = Inbound(frame_bytes_max=LIMIT)
        (frame,) = inbound.receive(framed(b"waits"))
        assert frame.nbytes == 5
        assert len(memoryview(frame.obj)) == 9

    def test_a_large_frame_is_not_copied(self) -> None:
        inbound = Inbound(frame_bytes_max=LIMIT)
        space = inbound.space()
        data = framed(bytes(100_000))
        space[: len(data)] = data
        (frame,) = inbound.advance(len(data))
        assert frame.obj is space.obj

    def test_a_peer_that_sent_a_large_frame_gets_the_room_at_once(self) -> None:
        inbound = Inbound(frame_bytes_max=LIMIT)
        inbound.receive(framed(bytes(900_000)))
        inbound.receive(framed(bytes(900_000))[:20])
        assert len(inbound.space()) > 900_000

    def test_a_read_inside_a_large_frame_stops_soon_after_it(self) -> None:
        inbound = Inbound(frame_bytes_max=LIMIT)
        inbound.receive(framed(bytes(60_000))[:50_000])
        assert len(inbound.space()) == 10_004 + 4096
