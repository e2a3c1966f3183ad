"""Times as Spark writes them."""

import pytest

from barnabas.spark.durations import parse_duration_ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("15m", 900_000),
        ("10 s", 10_000),
        ("250", 250),
        ("3ms", 3),
        ("1H", 3_600_000),
        ("2d", 172_800_000),
        ("1min", 60_000),
        ("1500us", 1),
        ("0", 0),
    ],
)
def test_units(text: str, ms: int) -> None:
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1.5s", "1w", "s"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time such as 30s"):
        parse_duration_ms(text)
