"""Version ranges read and print as Kafka writes them."""

import pytest

from barnabas.protocol.versions import NEVER, Versions


@pytest.mark.parametrize(
    ("text", "inside", "outside"), [("0+", [0, 32767], [-1]), ("3-5", [3, 5], [2, 6]), ("2", [2], [1, 3])]
)
def test_both_ends_belong_to_the_range(text: str, inside: list[int], outside: list[int]) -> None:
    versions = Versions.parse(text)
    assert all(versions.has(version) for version in inside)
    assert not any(versions.has(version) for version in outside)
    assert str(versions) == text


def test_none_has_no_version() -> None:
    assert Versions.parse("none") == NEVER
    assert not NEVER.has(0)
    assert str(NEVER) == "none"
