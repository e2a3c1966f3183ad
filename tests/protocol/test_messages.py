"""Every API and version that kio knows: the same bytes, and equal values both ways."""

from typing import Any

import pytest
from hypothesis import given, settings
from kio.static.constants import EntityType

from barnabas.base.buffers import join_buffers
from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.schema import Message

from . import oracle
from .strategies import messages

EXAMPLES = settings().max_examples // 3  # 10, and 333 with --hypothesis-profile=thorough
_KINDS = {EntityType.request: "request", EntityType.response: "response"}


def cases(newest_only: bool) -> list[Any]:
    found = []
    for key in ApiKey:
        api = API[key]
        versions = [v for v in oracle.known_versions(key.name.lower()) if api.versions.has(v)]
        for version in versions[-1:] if newest_only else versions[:-1]:
            found += [
                pytest.param(key, version, kind, id=f"{key.title}-{version}-{kind.name}") for kind in _KINDS
            ]
    return found


def agree(ours: type[Message], version: int, theirs: type[Any]) -> None:
    strategy = messages(ours, version, oracle.narrowed(ours, theirs))

    @settings(max_examples=EXAMPLES)
    @given(strategy)
    def check(message: Message) -> None:
        twin = oracle.to_kio(message, theirs)
        encoded = join_buffers(message.encode(version))
        assert encoded == oracle.write(twin)
        assert ours.decode(version, encoded) == message
        assert oracle.read(theirs, encoded) == twin

    check()


@pytest.mark.parametrize(("key", "version", "kind"), cases(newest_only=True))
def test_the_newest_version_is_byte_for_byte_kios(key: ApiKey, version: int, kind: EntityType) -> None:
    ours: type[Message] = getattr(API[key], _KINDS[kind])
    agree(ours, version, oracle.load(key.name.lower(), version, kind))


@pytest.mark.slow
@pytest.mark.parametrize(("key", "version", "kind"), cases(newest_only=False))
def test_every_older_version_is_byte_for_byte_kios(key: ApiKey, version: int, kind: EntityType) -> None:
    ours: type[Message] = getattr(API[key], _KINDS[kind])
    agree(ours, version, oracle.load(key.name.lower(), version, kind))
