"""The kinds of fault that records have."""

import pytest

from barnabas.base.errors import PeerFault
from barnabas.records import errors


@pytest.mark.parametrize("name", [name for name in errors.__all__ if name != "RecordError"])
def test_every_fault_is_the_senders(name: str) -> None:
    fault = getattr(errors, name)
    assert issubclass(fault, errors.RecordError)
    assert issubclass(fault, PeerFault)
    assert not fault.retriable
