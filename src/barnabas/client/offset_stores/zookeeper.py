"""Offsets in ZooKeeper, at /consumers/<group>/offsets/<topic>/<partition>, where Kafka 0.8 kept them.

The value is the offset as text, so that old tools read it; the epoch and the note have no place there.
O2 is kept with the version of the node: one that somebody else wrote since is refused.  All writes of a save
are one ZooKeeper transaction.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.base.errors import PeerFault
from barnabas.base.types import TopicPartition
from barnabas.client.offset_stores.store import overtaken
from barnabas.client.subscription import OffsetAndMetadata

__all__ = ["ZooKeeperOffsets"]

_ABSENT = -1


class ZooKeeperOffsets:
    """Offsets of any number of groups; `client` is a started KazooClient, or hosts to connect to."""

    def __init__(self, client: Any, *, root: str = "/consumers") -> None:
        self._is_own = isinstance(client, str)
        if isinstance(client, str):
            from kazoo.client import KazooClient

            client = KazooClient(client)
            client.start()
        self._client = client
        self._root = root
        self._versions: dict[tuple[str, TopicPartition], int] = {}

    def load(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        from kazoo.exceptions import NoNodeError

        found: dict[TopicPartition, OffsetAndMetadata] = {}
        for tp in partitions:
            path = self._path(group, tp)
            try:
                value, stat = self._client.get(path)
            except NoNodeError:
                self._versions[group, tp] = _ABSENT
                continue
            self._versions[group, tp] = stat.version
            try:
                found[tp] = OffsetAndMetadata(int(value))
            except ValueError as error:
                raise PeerFault(f"{path} holds {value!r}, which is no offset") from error
        return found

    def save(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if not offsets:
            return
        self.load(group, [tp for tp in offsets if (group, tp) not in self._versions])
        for topic in {tp.topic for tp in offsets}:
            self._client.ensure_path(f"{self._root}/{group}/offsets/{topic}")
        transaction = self._client.transaction()
        for tp, at in offsets.items():
            value, version = b"%d" % at.offset, self._versions[group, tp]
            if version == _ABSENT:
                transaction.create(self._path(group, tp), value)
            else:
                transaction.set_data(self._path(group, tp), value, version)
        results = transaction.commit()
        failed = [isinstance(result, Exception) for result in results]
        if any(failed):
            # The first real cause; the others only say that they were rolled back with it.
            causes = [result for result in results if type(result).__name__ != "RolledBackError"]
            at_fault = list(offsets)[results.index(causes[0])] if causes else next(iter(offsets))
            raise overtaken(group, at_fault) from causes[0]
        for tp in offsets:
            self._versions[group, tp] += 1

    def close(self) -> None:
        if self._is_own:
            self._client.stop()
            self._client.close()

    def _path(self, group: str, tp: TopicPartition) -> str:
        return f"{self._root}/{group}/offsets/{tp.topic}/{tp.partition}"
