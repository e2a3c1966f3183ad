"""Times as Spark writes them: 500ms, 10s, 15m, 1h, 2d; a bare number is milliseconds."""

import re
from typing import Final

__all__ = ["parse_duration_ms"]

_UNITS_US: Final = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}


def parse_duration_ms(text: str) -> int:
    """Milliseconds, rounded down.  Raises ValueError."""
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower(), re.ASCII)
    unit = (found[2] or "ms") if found else ""
    if found is None or unit not in _UNITS_US:
        raise ValueError(f"{text!r} is not a time such as 30s; units are {', '.join(_UNITS_US)}")
    return int(found[1]) * _UNITS_US[unit] // 1_000
