"""barnabas.base.errors: the kinds of fault."""

from barnabas.base import errors
from barnabas.base.errors import BarnabasError, Closed, Misuse


def test_every_kind_is_a_barnabas_error_that_is_not_retried_by_itself() -> None:
    kinds = [getattr(errors, name) for name in errors.__all__]
    assert all(issubclass(kind, BarnabasError) and not kind.retriable for kind in kinds)


def test_use_after_close_is_the_callers_fault() -> None:
    assert issubclass(Closed, Misuse)


def test_the_list_of_exports_is_sorted() -> None:
    assert errors.__all__ == sorted(errors.__all__)
