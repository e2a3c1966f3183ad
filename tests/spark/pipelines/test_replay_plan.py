"""barnabas.spark.pipelines.replay_plan: rates and places as people write them."""

import pytest

from barnabas.base.errors import ConfigFault
from barnabas.spark.pipelines.replay_plan import Edge, Rate, ReplayPlan, parse_edge, parse_rate

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max", Rate()),
        ("5000/s", Rate("records", 5_000)),
        ("0.5/s", Rate("records", 0.5)),
        ("10mb/s", Rate("bytes", 10 * 2**20)),
        ("512 KB / sec", Rate("bytes", 512 * 1024)),
        ("100b/s", Rate("bytes", 100)),
        ("x2", Rate("speed", 2)),
        ("0.5x", Rate("speed", 0.5)),
    ],
)
def test_rates(text: str, expected: Rate) -> None:
    assert parse_rate(text) == expected


@pytest.mark.parametrize("text", ["fast", "5", "5/m", "0/s", "x0", "-1/s", "1.2.3/s", "0mb/s"])
def test_wrong_rates_say_what_is_right(text: str) -> None:
    with pytest.raises(ConfigFault, match="is no rate"):
        parse_rate(text)


def test_rates_are_shown() -> None:
    assert [str(Rate()), str(Rate("speed", 2)), str(Rate("bytes", 1_000))] == [
        "as fast as it goes",
        "2 times as fast as recorded",
        "1,000 bytes/s",
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("earliest", Edge("earliest")),
        ("now", Edge("latest")),
        (500, Edge("offset", 500)),
        ("500", Edge("offset", 500)),
        ({"0": 5, 1: "7"}, Edge("offsets", offsets={0: 5, 1: 7})),
        ("@1700000000000", Edge("time", 1_700_000_000_000)),
        ("-2h", Edge("time", NOW_MS - 7_200_000)),
        ("2023-11-14T22:13:20", Edge("time", 1_700_000_000_000)),
        ("2023-11-14T23:13:20+01:00", Edge("time", 1_700_000_000_000)),
    ],
)
def test_places(value: object, expected: Edge) -> None:
    assert parse_edge(value, now_ms=NOW_MS) == expected


@pytest.mark.parametrize("value", ["sometime", "-x", {"a": 1}, {"0": "x"}])
def test_wrong_places_are_named(value: object) -> None:
    with pytest.raises(ConfigFault, match="is no place in a topic|does not give an offset"):  # noqa: RUF043 -- either
        parse_edge(value, now_ms=NOW_MS)


def test_secrets_are_not_shown() -> None:
    plan = ReplayPlan({"sasl.password": "hush"}, {"sasl.password": "hush"}, "t", "r1")
    assert "hush" not in repr(plan)
    assert plan.group == "replay:r1"
    assert plan.writes == ["t"]
