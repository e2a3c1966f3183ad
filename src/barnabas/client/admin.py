"""The synchronous admin: every call waits for its result.  Any thread may call; calls may run side by side.

The work is done by the asynchronous admin on a private thread, so both faces have the same calls and the
same results.
"""

from collections.abc import Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas.base.clock import Clock
from barnabas.base.types import TopicPartition, Uuid
from barnabas.client.admin_configs import Change
from barnabas.client.admin_features import FeatureChange, Features
from barnabas.client.admin_offsets import When
from barnabas.client.admin_transactions import OpenTransaction, TransactionDescription, TransactionListing
from barnabas.client.admin_types import (
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    CreatedTopic,
    GroupDescription,
    GroupLag,
    GroupListing,
    ListedOffset,
    LogDir,
    NewTopic,
    OffsetChange,
    OffsetReset,
    ProducerInfo,
    TopicListing,
)
from barnabas.client.aio_admin import Admin as AsyncAdmin
from barnabas.client.metadata import TopicInfo
from barnabas.client.results import Results
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.client.thread import ClientThread

__all__ = ["Admin"]

Result = TypeVar("Result")


class Admin:
    """Looks after topics, settings, groups, offsets, records, transactions and features.

        with Admin(bootstrap_servers="localhost:9092") as admin:
            admin.create_topic("orders", 6)

    Finds the cluster at once: raises NoBrokersAvailable, and ConfigFault for wrong settings.
    """

    def __init__(
        self, config: Mapping[str, object] | None = None, *, clock: Clock | None = None, **settings: object
    ) -> None:
        self._core = AsyncAdmin(config, clock=clock, **settings)
        self._thread = ClientThread("barnabas-client-admin", closing=self._core.close)
        try:
            self._thread.call(self._core.start())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends every connection and the thread; calls of other threads fail.  May be called again."""
        self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._core)

    def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._thread.call(work)

    # --- topics

    def create_topics(
        self, topics: Iterable[NewTopic | str], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Results[str, CreatedTopic]:
        """Makes topics; a name alone stands for a topic with the cluster's defaults.

        With `validate_only` the brokers only say what they would do.
        """
        return self._call(
            self._core.create_topics(topics, validate_only=validate_only, timeout_ms=timeout_ms)
        )

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        configs: Mapping[str, str] | None = None,
        timeout_ms: int | None = None,
    ) -> CreatedTopic:
        """Makes one topic.  Raises TopicExists, InvalidTopic …"""
        return self._call(
            self._core.create_topic(
                name, partitions, replication_factor, configs=configs, timeout_ms=timeout_ms
            )
        )

    def delete_topics(self, names: Iterable[str], *, timeout_ms: int | None = None) -> Results[str, None]:
        """Deletes topics with all their records."""
        return self._call(self._core.delete_topics(names, timeout_ms=timeout_ms))

    def list_topics(self, *, internal: bool = False, timeout_ms: int | None = None) -> list[TopicListing]:
        """All topics by name, with the cluster's own ones if asked for."""
        return self._call(self._core.list_topics(internal=internal, timeout_ms=timeout_ms))

    def describe_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, TopicInfo]:
        """Partitions, leaders, replicas and in-sync replicas of topics."""
        return self._call(self._core.describe_topics(names, timeout_ms=timeout_ms))

    def describe_topic(self, name: str, *, timeout_ms: int | None = None) -> TopicInfo:
        """One topic.  Raises UnknownTopic."""
        return self._call(self._core.describe_topic(name, timeout_ms=timeout_ms))

    def topic_by_id(self, topic_id: Uuid, *, timeout_ms: int | None = None) -> TopicInfo:
        """The topic with an id.  Raises UnknownTopic."""
        return self._call(self._core.topic_by_id(topic_id, timeout_ms=timeout_ms))

    def create_partitions(
        self, totals: Mapping[str, int], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Results[str, None]:
        """Raises the number of partitions of topics to these totals; it cannot be lowered."""
        return self._call(
            self._core.create_partitions(totals, validate_only=validate_only, timeout_ms=timeout_ms)
        )

    # --- configs

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """The settings of each resource by name, or only some `names`."""
        return self._call(
            self._core.describe_configs(
                resources, names=names, documentation=documentation, timeout_ms=timeout_ms
            )
        )

    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, Change]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, None]:
        """Changes only the settings named: to a value, back to the default (None), by Append or Subtract."""
        return self._call(
            self._core.alter_configs(changes, validate_only=validate_only, timeout_ms=timeout_ms)
        )

    def replace_configs(
        self,
        configs: Mapping[ConfigResource, Mapping[str, str | int | bool | float]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, None]:
        """Sets the settings named and puts all others of the resource back to their defaults."""
        return self._call(
            self._core.replace_configs(configs, validate_only=validate_only, timeout_ms=timeout_ms)
        )

    # --- groups

    def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = (), timeout_ms: int | None = None
    ) -> list[GroupListing]:
        """All groups by name, or those in some `states` ("Stable", "Empty" …) or of some `types`."""
        return self._call(self._core.list_groups(states=states, types=types, timeout_ms=timeout_ms))

    def describe_groups(
        self, groups: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, GroupDescription]:
        """State, members and what each member subscribed to and reads.  Unknown groups: UnknownGroup."""
        return self._call(self._core.describe_groups(groups, timeout_ms=timeout_ms))

    def describe_group(self, group: str, *, timeout_ms: int | None = None) -> GroupDescription:
        """One group.  Raises UnknownGroup."""
        return self._call(self._core.describe_group(group, timeout_ms=timeout_ms))

    def delete_groups(self, groups: Iterable[str], *, timeout_ms: int | None = None) -> Results[str, None]:
        """Deletes groups with their offsets.  A group that still has members: GroupNotEmpty."""
        return self._call(self._core.delete_groups(groups, timeout_ms=timeout_ms))

    # --- offsets

    def list_offsets(
        self,
        partitions: Mapping[TopicPartition, When],
        *,
        read_committed: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, ListedOffset]:
        """The offset of a role or a time in each partition.

        A time gives the first record at or after it; offset -1 means that there is none.
        With `read_committed`, LATEST is the end of what is not in an open transaction.
        """
        return self._call(
            self._core.list_offsets(partitions, read_committed=read_committed, timeout_ms=timeout_ms)
        )

    def list_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, OffsetAndMetadata | None]:
        """What a group has committed: for some partitions (None where it has not), or all there is.

        With `require_stable` it waits for transactions that are about to commit offsets.
        """
        return self._call(
            self._core.list_group_offsets(
                group, partitions, require_stable=require_stable, timeout_ms=timeout_ms
            )
        )

    def alter_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, None]:
        """Commits offsets for a group without members; it is made if there is none.

        Raises GroupNotEmpty if it has members: they would go on from where they are and commit over this.
        """
        return self._call(self._core.alter_group_offsets(group, offsets, timeout_ms=timeout_ms))

    def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, None]:
        """Forgets what a group has committed for partitions of topics that it does not read now."""
        return self._call(self._core.delete_group_offsets(group, partitions, timeout_ms=timeout_ms))

    def reset_group_offsets(
        self,
        group: str,
        to: OffsetReset,
        *,
        topics: Iterable[str] = (),
        partitions: Iterable[TopicPartition] = (),
        dry_run: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, OffsetChange]:
        """Moves a group: all partitions it has offsets in, or those of `topics` and `partitions` only.

        With `dry_run` nothing is changed and the result is the plan.  Offsets outside the log become its
        start or end, with a note.  Raises GroupNotEmpty, also in a dry run, while the group has members.
        """
        return self._call(
            self._core.reset_group_offsets(
                group, to, topics=topics, partitions=partitions, dry_run=dry_run, timeout_ms=timeout_ms
            )
        )

    # --- lag

    def group_lags(
        self, groups: Iterable[str], *, seconds: bool = True, timeout_ms: int | None = None
    ) -> Results[str, GroupLag]:
        """How far groups are behind; without `seconds` no record is read."""
        return self._call(self._core.group_lags(groups, seconds=seconds, timeout_ms=timeout_ms))

    def group_lag(self, group: str, *, seconds: bool = True, timeout_ms: int | None = None) -> GroupLag:
        """How far one group is behind.  Raises UnknownGroup."""
        return self._call(self._core.group_lag(group, seconds=seconds, timeout_ms=timeout_ms))

    # --- cluster

    def describe_cluster(self, *, timeout_ms: int | None = None) -> ClusterDescription:
        """The brokers that are up, and which of them is the controller."""
        return self._call(self._core.describe_cluster(timeout_ms=timeout_ms))

    def describe_features(self, *, timeout_ms: int | None = None) -> Features:
        """The levels in force and those that a broker can serve."""
        return self._call(self._core.describe_features(timeout_ms=timeout_ms))

    def update_features(
        self,
        levels: Mapping[str, int],
        *,
        change: FeatureChange = FeatureChange.UPGRADE,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Gives features these levels, all or none; 0 switches one off.

        Clients learn of it when they connect.  Raises KafkaError with the code INVALID_UPDATE_VERSION for a
        level that cannot be, or not by such a change.
        """
        self._call(
            self._core.update_features(
                levels, change=change, validate_only=validate_only, timeout_ms=timeout_ms
            )
        )

    def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, int]:
        """Deletes all records below an offset (-1: all there are); the result is the new start of the log."""
        return self._call(self._core.delete_records(before, timeout_ms=timeout_ms))

    def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        *,
        partitions: Iterable[TopicPartition] | None = None,
        timeout_ms: int | None = None,
    ) -> Results[int, Results[str, LogDir]]:
        """The data folders of brokers (all of them by default) with the size of each replica in them."""
        return self._call(self._core.describe_log_dirs(brokers, partitions=partitions, timeout_ms=timeout_ms))

    def describe_producers(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, tuple[ProducerInfo, ...]]:
        """The idempotent and transactional producers that a partition's leader remembers."""
        return self._call(self._core.describe_producers(partitions, timeout_ms=timeout_ms))

    # --- transactions

    def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        timeout_ms: int | None = None,
    ) -> list[TransactionListing]:
        """All transactional ids that the brokers coordinate, or those in these states, by these producers."""
        return self._call(
            self._core.list_transactions(states=states, producer_ids=producer_ids, timeout_ms=timeout_ms)
        )

    def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, TransactionDescription]:
        """State, producer, age and partitions of transactional ids."""
        return self._call(self._core.describe_transactions(transactional_ids, timeout_ms=timeout_ms))

    def open_transactions(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> list[OpenTransaction]:
        """The transactions that are open in these partitions, each with its owner; first the oldest."""
        return self._call(self._core.open_transactions(partitions, timeout_ms=timeout_ms))

    def abort_transaction(
        self, partition: TopicPartition, producer: ProducerInfo, *, timeout_ms: int | None = None
    ) -> None:
        """Ends a transaction in one partition by an abort marker; only for one that hangs.

        The coordinator is not told: if it knows the transaction, abort by the producer instead.
        """
        self._call(self._core.abort_transaction(partition, producer, timeout_ms=timeout_ms))
