"""Offsets in Redis: a hash per group, a field per partition.  Needs the extra `redis`.

With a pipeline of the user (`save(…, pipeline=…)`) the offsets go out in its MULTI together with the results.
O2 is kept with WATCH: a hash that somebody else changed between the check and the write is refused.
"""

import json
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.offset_stores.store import overtaken
from barnabas.client.subscription import OffsetAndMetadata

__all__ = ["RedisOffsets"]


class RedisOffsets:
    """Offsets of any number of groups under `prefix`; `client` is a redis.Redis, or the URL of a server."""

    def __init__(self, client: Any, *, prefix: str = "barnabas:offsets:") -> None:
        try:
            redis = import_module("redis")
        except ImportError as error:
            raise Misuse("offsets in Redis need redis: pip install 'barnabas[redis]'") from error
        self._watch_error = redis.WatchError
        self._is_own = isinstance(client, str)
        self._client = redis.Redis.from_url(client) if isinstance(client, str) else client
        self._prefix = prefix
        self._known: dict[tuple[str, TopicPartition], bytes | None] = {}

    def load(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        wanted = list(partitions)
        if not wanted:
            return {}
        values = self._client.hmget(self._key(group), [_field(tp) for tp in wanted])
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        for tp, value in zip(wanted, values, strict=True):
            self._known[group, tp] = value
            if value is not None:
                offset, epoch, metadata = json.loads(value)
                found[tp] = OffsetAndMetadata(offset, metadata, epoch)
        return found

    def save(
        self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, pipeline: Any = None
    ) -> None:
        """Stores; with a `pipeline` in MULTI of the user only adds to it, and its end is the user's."""
        written = {tp: json.dumps([at.offset, at.leader_epoch, at.metadata]) for tp, at in offsets.items()}
        if not written:
            return
        values = {_field(tp): value for tp, value in written.items()}
        if pipeline is not None:
            pipeline.hset(self._key(group), mapping=values)
        else:
            with self._client.pipeline() as own:
                own.watch(self._key(group))
                self._check(group, list(offsets), own.hmget(self._key(group), list(values)))
                own.multi()
                own.hset(self._key(group), mapping=values)
                try:
                    own.execute()
                except self._watch_error as error:
                    raise overtaken(group, next(iter(offsets))) from error
        for tp, value in written.items():
            self._known[group, tp] = value.encode()

    def _check(self, group: str, partitions: list[TopicPartition], stored: list[Any]) -> None:
        for tp, value in zip(partitions, stored, strict=True):
            current = value.encode() if isinstance(value, str) else value
            known = self._known.get((group, tp), current)
            if (known.encode() if isinstance(known, str) else known) != current:
                raise overtaken(group, tp)

    def close(self) -> None:
        if self._is_own:
            self._client.close()

    def _key(self, group: str) -> str:
        return f"{self._prefix}{group}"


def _field(tp: TopicPartition) -> str:
    return f"{tp.topic}:{tp.partition}"
