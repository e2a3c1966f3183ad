"""The plain twin and the compiled one come to the same result, or the same error, on every call.

Damaged payloads are the larger part: that is where twins drift apart, and where bytes outside the buffer
would be read.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Misuse
from barnabas.records._kernel_plain import header_tuples
from barnabas.records.kernel import Kernel
from tests.records._kernels import COMPILED, INT64, PLAIN, Row, mutations, needs_both, outcome, rows

SAMPLE: list[Row] = [
    (1000, b"key", b"value", ()),
    (1005, None, b"no key", ()),
    (990, b"gone", None, ()),
    (10**12, b"", b"", ()),
    (1001, b"h", b"x" * 300, (("trace", b"\x00\xff"), ("null", None), ("", b""), ("é鍵🔑", b"v"))),
    (2000, b"k" * 63, b"v" * 64, (("a" * 70, b"b" * 70),)),
]


def calls(kernel: Kernel, payload: bytes, count: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every function of a kernel over one payload."""
    yield "decode", lambda: kernel.decode(payload, count, 7, 1000, topic="t", partition=1)
    yield "decode from", lambda: kernel.decode(payload, count, 7, 1000, 5, start_offset=9)
    yield "check", lambda: kernel.check(payload, count, 1000)
    yield "check gaps", lambda: kernel.check(payload, count, -5, consecutive=False)
    yield "keys", lambda: kernel.keys(payload, count, 7)
    mask = bytes(i % 2 for i in range(max(count, 0)))
    yield "filter", lambda: kernel.filter(payload, count, mask)
    yield "filter shifted", lambda: kernel.filter(payload, count, mask, -(2**40))
    yield "offset map", partial(learn_and_retain, kernel, payload, count)
    for wanted in (63, 8, 16, 33):
        yield f"columns {wanted}", partial(columns, kernel, payload, count, wanted)


def learn_and_retain(kernel: Kernel, payload: bytes, count: int) -> list[Any]:
    offsets = kernel.OffsetMap(50, bytes(16), keys_max=4)
    learnt = outcome(partial(offsets.put, payload, count, 7, start_offset=8))
    retained = outcome(partial(offsets.retain, payload, count, 7, tombstones=False))
    return [learnt, retained, len(offsets), offsets.latest_offset]


def columns(kernel: Kernel, payload: bytes, count: int, wanted: int) -> list[Any]:
    builder = kernel.ColumnBuilder(wanted, rows_max=3, bytes_max=200)
    taken: list[Any] = []
    index = position = 0
    while True:
        index, position = builder.append(payload, count, 7, 1000, index=index, position=position)
        taken.append((index, position, builder.rows, builder.size, builder.take()))
        if index == count:
            return taken


def assert_twins_agree(payload: bytes, count: int) -> None:
    assert COMPILED is not None
    both = zip(calls(PLAIN, payload, count), calls(COMPILED, payload, count), strict=True)
    for (name, plain), (_, compiled) in both:
        assert outcome(plain) == outcome(compiled), (name, payload, count)


@needs_both
class TestTwins:
    @given(rows(max_size=6))
    def test_they_agree_on_sound_payloads(self, rows: list[Row]) -> None:
        assert COMPILED is not None
        payload = bytes(PLAIN.encode(rows))
        assert COMPILED.encode(rows) == payload
        assert_twins_agree(payload, len(rows))

    @given(st.binary(max_size=60), st.integers(-1, 8))
    def test_they_agree_on_rubbish(self, payload: bytes, count: int) -> None:
        assert_twins_agree(payload, count)

    @pytest.mark.slow
    def test_they_agree_on_damaged_payloads(self) -> None:
        payload = bytes(PLAIN.encode(SAMPLE))
        for seed, damaged in enumerate(mutations(payload, 1500, seed=3)):
            assert_twins_agree(damaged, len(SAMPLE) - (seed % 7 == 0))

    @pytest.mark.soak
    def test_they_agree_on_very_many_damaged_payloads(self) -> None:
        payload = bytes(PLAIN.encode(SAMPLE))
        for damaged in mutations(payload, 100_000, seed=4):
            assert_twins_agree(damaged, len(SAMPLE))

    def test_they_agree_wherever_a_payload_is_cut(self) -> None:
        payload = bytes(PLAIN.encode(SAMPLE[:5]))
        for end in range(0, len(payload), 3):
            assert_twins_agree(payload[:end], 5)

    @given(
        st.lists(
            st.tuples(
                INT64 | st.integers(-(2**64), 2**64),
                st.none() | st.binary(max_size=9) | st.just("text"),
                st.none() | st.binary(max_size=9) | st.integers(),
                st.lists(
                    st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3))
                    | st.sampled_from([("k",), ("k", "v"), (b"k", b"v"), ["k", b"v"], 5, ("\ud800", None)]),
                    max_size=2,
                ),
                st.integers(-1, 9) | st.integers(2**31 - 2, 2**31),
            ),
            max_size=6,
        ),
        st.integers(0, 90),
    )
    def test_their_builders_agree(self, appends: list[Any], limit: int) -> None:
        assert COMPILED is not None
        plain, compiled = PLAIN.PayloadBuilder(limit, reserve=2), COMPILED.PayloadBuilder(limit, reserve=2)
        for row in appends:
            ours, theirs = outcome(partial(plain.append, *row)), outcome(partial(compiled.append, *row))
            # The interpreter's own text for values that are no buffer differs by a prefix.
            assert ours == theirs or _type(ours) is _type(theirs) is TypeError
            for fact in (
                "count",
                "size",
                "base_timestamp",
                "max_timestamp",
                "max_timestamp_delta",
                "last_offset_delta",
            ):
                assert getattr(plain, fact) == getattr(compiled, fact), fact
        assert plain.take() == compiled.take()

    @given(st.integers(0, 2**32), st.integers(0, 300), INT64)
    def test_their_builders_move_or_refuse_the_same_records(self, seed: int, limit: int, base: int) -> None:
        assert COMPILED is not None
        whole = bytes(PLAIN.encode([(5, b"key", b"value", [("h", b"x")]), (9, None, b"v" * 40, ())]))
        plain, compiled = PLAIN.PayloadBuilder(limit), COMPILED.PayloadBuilder(limit)
        for damaged in [whole, *mutations(whole, 8, seed), whole]:
            ours = outcome(partial(plain.append_payload, damaged, 2, base))
            assert ours == outcome(partial(compiled.append_payload, damaged, 2, base))
            for fact in ("count", "size", "base_timestamp", "max_timestamp", "max_timestamp_delta"):
                assert getattr(plain, fact) == getattr(compiled, fact), fact
        assert plain.take() == compiled.take()


def _type(result: object) -> object:
    return result[0] if isinstance(result, tuple) else None


class TestHeaderTuples:
    def test_lists_and_buffers_become_tuples_and_bytes(self) -> None:
        assert header_tuples([["k", bytearray(b"v")], ("n", None)]) == (("k", b"v"), ("n", None))  # type: ignore[list-item]  # lists pass too

    def test_text_without_a_utf8_form_is_refused(self) -> None:
        with pytest.raises(Misuse, match=r"^header key '\\udc80' cannot be written as UTF-8$"):
            header_tuples([("\udc80", None)])
