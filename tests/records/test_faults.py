"""The texts of what can be wrong inside a record; test_kernel shows each with bytes that cause it."""

import pickle

import pytest

from barnabas.records import faults
from barnabas.records.errors import InvalidRecord


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (faults.ENDED, "the payload ends after 3 of 9 records"),
        (faults.CUT, "record 3: the bytes end inside its key length"),
        (faults.NOT_VARINT, "record 3: its key length is not a varint of that width"),
        (faults.LENGTH, "record 3: its length is 9, 2 bytes follow"),
        (faults.SIZE, "record 3: its key length is 9, 2 bytes follow in the record"),
        (faults.LEFTOVER, "record 3: 9 bytes are left over behind its headers"),
        (faults.DELTA, "record 3: its offset delta is 9 instead of 2"),
        (faults.FALLING, "record 3: its offset delta is 9 instead of 2 or more"),
        (faults.TRAILING, "9 bytes follow the last record"),
        (faults.COUNT, "9 records cannot be in 2 bytes"),
    ],
)
def test_each_kind_has_its_words(kind: int, text: str) -> None:
    error = faults.malformed(kind, faults.KEY_LENGTH, 3, 9, 2)
    assert str(error) == text
    assert error.index == 3
    assert isinstance(error, InvalidRecord)


def test_the_index_survives_pickle() -> None:
    error = faults.malformed(faults.DELTA, 0, 3, 9, 2)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.index) == (str(error), 3)
