"""The asynchronous names are found where users look for them, without loading what they do not use."""

import pytest

from barnabas.client import aio


def test_every_name_is_there_and_listed() -> None:
    for name in aio.__all__:
        assert getattr(aio, name).__name__ == name
    assert set(aio.__all__) <= set(dir(aio))


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match=r"module 'barnabas.client.aio' has no attribute 'Broker'"):
        aio.Broker  # noqa: B018 -- the access is the test
