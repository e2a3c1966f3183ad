"""Single values of options."""

import pytest

from barnabas.spark.option_values import at_least, boolean, byte_count, one_of, or_else


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("64m", 64 << 20), ("1GB", 1 << 30), ("512k", 512 << 10), ("7b", 7), ("2T", 2 << 40)],
)
def test_sizes(text: str, size: int) -> None:
    assert byte_count(text) == size


@pytest.mark.parametrize("text", ["", "m", "0", "-1", "1.5m", "b", "ten"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size such as 64m"):
        byte_count(text)


def test_the_rest() -> None:
    assert (boolean("True"), boolean("false"), at_least(2)("3"), one_of("a", "b")("A")) == (
        True,
        False,
        3,
        "a",
    )
    assert (or_else(None, 4), or_else(0, 4)) == (4, 0)
    with pytest.raises(ValueError, match="1 is below 2"):
        at_least(2)("1")
