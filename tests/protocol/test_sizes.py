"""Smallest sizes, which bound what a count may claim, and where bulk data sits."""

import pytest

from barnabas.base.buffers import buffers_bytes
from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.schema import Message
from barnabas.protocol.sizes import bytes_min, has_bulk


@pytest.mark.parametrize("key", list(ApiKey), ids=lambda key: str(key.title))
def test_an_element_is_never_smaller_than_its_minimum(key: ApiKey) -> None:
    for cls in (API[key].request, API[key].response):
        for version in range(cls.VERSIONS.low, cls.VERSIONS.high + 1):
            check(cls, version)


def check(cls: type[Message], version: int) -> None:
    """One default element costs at least its minimum, and no array can hold empty elements."""
    for field in cls.FIELDS:
        if field.is_array and field.struct is not None and field.versions.has(version) and field.tag is None:
            empty = buffers_bytes(cls().encode(version))
            one = buffers_bytes(cls(**{field.name: [field.struct()]}).encode(version))
            assert one - empty >= bytes_min(field, version, cls.FLEXIBLE.has(version)) >= 1


def test_bulk_is_found_at_any_depth_and_only_where_the_version_has_it() -> None:
    assert has_bulk(FetchResponse, 0)
    assert has_bulk(JoinGroupResponse, 9)
    assert not has_bulk(FetchRequest, 18)
