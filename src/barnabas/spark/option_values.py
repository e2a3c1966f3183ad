"""Single values of options.  Each parser takes the text without blanks around it and raises ValueError."""

from collections.abc import Callable

__all__ = ["at_least", "boolean", "byte_count", "one_of", "or_else"]


def or_else(value: int | None, default: int) -> int:
    return default if value is None else value


def boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def at_least(low: int) -> Callable[[str], int]:
    def parsed(text: str) -> int:
        try:
            value = int(text)
        except ValueError as error:
            raise ValueError(f"{text!r} is not a whole number") from error
        if value < low:
            raise ValueError(f"{value} is below {low}")
        return value

    return parsed


def one_of(*words: str) -> Callable[[str], str]:
    def parsed(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"{text!r} is none of {', '.join(words)}")
        return text.lower()

    return parsed


def byte_count(text: str) -> int:
    """A number with Spark's units: 64m, 1g, 512k, 1048576b, or bytes."""
    lower = text.lower()
    stem = lower.removesuffix("b") or lower
    shift = {"k": 10, "m": 20, "g": 30, "t": 40}.get(stem[-1:], 0)
    digits = stem[:-1] if shift else stem
    if not digits.isascii() or not digits.isdigit() or int(digits) == 0:
        raise ValueError(f"{text!r} is not a size such as 64m")
    return int(digits) << shift
