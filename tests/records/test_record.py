"""A record as an object: fields, equality, hash, pickle, text; the same in both kernels."""

import copy
import gc
import pickle
from typing import Any

import pytest

from barnabas.records import kernel, record
from barnabas.records.kernel import Kernel
from tests.records._kernels import KERNELS

both = pytest.mark.parametrize("kernel", KERNELS)

FULL = (7, 1000, b"k", b"v", (("h", b"x"), ("n", None)), "topic", 3, 1, 5)


def test_record_is_the_class_of_the_kernel_that_runs() -> None:
    assert record.Record is kernel.Record


@both
def test_fields_have_their_defaults(kernel: Kernel) -> None:
    made = kernel.Record(7, 1000, None, None)
    assert (made.offset, made.timestamp, made.key, made.value, made.headers) == (7, 1000, None, None, ())
    assert (made.topic, made.partition, made.timestamp_type, made.leader_epoch) == (None, -1, 0, -1)


@both
def test_headers_become_tuples(kernel: Kernel) -> None:
    assert kernel.Record(0, 0, None, None, [("h", bytearray(b"x"))]).headers == (("h", b"x"),)  # type: ignore[list-item]  # any buffer passes
    with pytest.raises(TypeError, match=r"^a header key is text, not NoneType$"):
        kernel.Record(0, 0, None, None, [(None, b"x")])  # type: ignore[list-item]  # on purpose


@both
@pytest.mark.parametrize("field", range(len(FULL)))
def test_records_are_equal_when_every_field_is(kernel: Kernel, field: int) -> None:
    other: list[Any] = list(FULL)
    other[field] = [8, 1001, b"K", None, (), None, 4, 0, 6][field]
    assert kernel.Record(*FULL) == kernel.Record(*FULL)
    assert hash(kernel.Record(*FULL)) == hash(kernel.Record(*FULL))
    assert kernel.Record(*FULL) != kernel.Record(*other)
    assert kernel.Record(*FULL) != FULL


@both
def test_a_record_never_changes(kernel: Kernel) -> None:
    made: Any = kernel.Record(*FULL)
    for field in ("offset", "key", "headers", "topic", "unknown"):
        with pytest.raises(AttributeError):
            setattr(made, field, None)


@both
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_it_survives_pickle_and_copy(kernel: Kernel, protocol: int) -> None:
    made = kernel.Record(*FULL)
    assert pickle.loads(pickle.dumps(made, protocol)) == made
    assert copy.copy(made) == made


@both
def test_its_text_shows_the_place_only_when_it_has_one(kernel: Kernel) -> None:
    assert repr(kernel.Record(*FULL)) == (
        "Record(offset=7, timestamp=1000, key=b'k', value=b'v', "
        "headers=(('h', b'x'), ('n', None)), topic='topic', partition=3)"
    )
    assert repr(kernel.Record(1, 2, None, b"")) == (
        "Record(offset=1, timestamp=2, key=None, value=b'', headers=())"
    )


@both
def test_many_records_come_and_go(kernel: Kernel) -> None:
    """More than the compiled class keeps for reuse, so that both ways of freeing are taken."""
    payload = kernel.encode([(i, b"key", b"value", (("h", b"x"),)) for i in range(3000)])
    for _ in range(3):
        assert len({r.offset for r in kernel.decode(payload, 3000, 0, 0, topic="t")}) == 3000
    gc.collect()
