"""barnabas.cli.times: durations and moments as people write them."""

import contextlib
from datetime import UTC, datetime, timedelta

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.times import parse_duration, parse_moment, time_text

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10m", timedelta(minutes=10)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("500ms", timedelta(milliseconds=500)),
        ("1.5d", timedelta(hours=36)),
        ("2w", timedelta(weeks=2)),
        ("PT1H30M", timedelta(hours=1, minutes=30)),
        ("P1DT0.5S", timedelta(days=1, seconds=0.5)),
        ("pt5s", timedelta(seconds=5)),
    ],
)
def test_a_duration_is_short_or_of_iso_8601(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "10", "m", "P", "PT", "10 m", "1h30", "-1h", "1y"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="is not a duration; write 10m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("-90s", NOW - timedelta(seconds=90)),
        ("-PT1H", NOW - timedelta(hours=1)),
        ("@1000", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("2026-05-01T10:00:00.250", datetime(2026, 5, 1, 10, 0, 0, 250_000, tzinfo=UTC)),
        ("2026-05-01T10:00Z", datetime(2026, 5, 1, 10, tzinfo=UTC)),
        ("2026-05-01T12:00+02:00", datetime(2026, 5, 1, 10, tzinfo=UTC)),
        ("2026-05-01", datetime(2026, 5, 1, tzinfo=UTC)),
    ],
)
def test_a_moment_without_a_zone_is_utc(text: str, expected: datetime) -> None:
    assert parse_moment(text, NOW) == expected


@given(st.text(max_size=12) | st.from_regex(r"-?[0-9.]{1,12}(ms|[smhdw])", fullmatch=True))
def test_rubbish_is_a_moment_or_wrong_usage_and_nothing_else(text: str) -> None:
    with contextlib.suppress(click.UsageError):
        assert parse_moment(text, NOW).tzinfo is not None


@pytest.mark.parametrize("text", ["-9999999999w", "@99999999999999999999", "-2000000d"])
def test_a_moment_too_far_away_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError):
        parse_moment(text, NOW)


def test_times_of_records_are_told_in_utc() -> None:
    assert time_text(1_000) == "1970-01-01T00:00:01.000Z"
