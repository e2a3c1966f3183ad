"""The driver's questions to the cluster: which partitions there are, where they begin, where they end.

One admin client for the life of the object, made at the first question.  Every question is repeated
`fetchOffset.numRetries` times when it failed for a reason that may pass.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.admin_types import OffsetSpec
from barnabas.client.config import ADMIN, settings_for
from barnabas.client.errors import KafkaError, UnknownTopic
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.spark.errors import OptionError, SparkPartError
from barnabas.spark.offsets import Positions
from barnabas.spark.options import (
    EARLIEST,
    LATEST,
    Assign,
    AtOffsets,
    AtTime,
    AtTimes,
    Bound,
    Edge,
    SourceOptions,
    Subscribe,
    SubscribePattern,
)

__all__ = ["Lookup"]

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class Lookup:
    """Answers about one cluster.  One caller at a time; `close` ends its connections."""

    def __init__(self, options: SourceOptions, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._admin: Admin | None = None
        self._monotonic = monotonic
        self._listed: frozenset[TopicPartition] = frozenset()
        self._listed_until = float("-inf")

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    # --- partitions

    def partitions(self, *, gone_is_fine: bool = False) -> frozenset[TopicPartition]:
        """The partitions that the options select now.

        A topic or partition that is named and not there is an error, unless `gone_is_fine`.
        """
        if self._monotonic() < self._listed_until:
            return self._listed
        found = self._ask(lambda admin: self._select(admin, gone_is_fine))
        self._listed = frozenset(found)
        if self._options.metadata_ttl_ms >= 0:
            self._listed_until = self._monotonic() + self._options.metadata_ttl_ms / 1000
        return self._listed

    def _select(self, admin: Admin, gone_is_fine: bool) -> Iterable[TopicPartition]:
        match self._options.selection:
            case SubscribePattern(pattern):
                return [
                    TopicPartition(topic.name, index)
                    for topic in admin.list_topics()
                    if pattern.matches(topic.name)
                    for index in range(topic.partitions)
                ]
            case Subscribe(topics):
                counts = self._counts(admin, topics, "subscribe", gone_is_fine)
                return [
                    TopicPartition(topic, index) for topic, count in counts.items() for index in range(count)
                ]
            case Assign(partitions):
                names = dict.fromkeys(each.topic for each in partitions)
                counts = self._counts(admin, names, "assign", gone_is_fine)
                missing = [each for each in partitions if each.partition >= counts.get(each.topic, 0)]
                if missing and not gone_is_fine:
                    raise OptionError(
                        "assign",
                        f"there is no partition {missing[0]}: "
                        f"topic {missing[0].topic} has {counts[missing[0].topic]} partitions",
                    )
                return [each for each in partitions if each not in missing]

    def _counts(self, admin: Admin, topics: Iterable[str], option: str, gone_is_fine: bool) -> dict[str, int]:
        found = admin.describe_topics(topics)
        for topic, error in found.errors.items():
            if not isinstance(error, UnknownTopic):
                raise error
            if not gone_is_fine:
                raise OptionError(option, f"topic {topic!r} does not exist") from error
        return {topic: len(info.partitions) for topic, info in found.succeeded.items()}

    # --- offsets

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each; partitions that vanished meanwhile are left out."""
        return self._offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The end of each: of what is committed, when only that is read."""
        return self._offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))

    def ends(
        self, partitions: Iterable[TopicPartition], known: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """As `latest`, but asked again while one ends before the place that is known of it.

        A broker that is not the leader any more, or not long, may not know the end: that is no loss yet.
        """
        wanted = frozenset(partitions)
        found = self.latest(wanted)
        for _ in range(self._options.lookup_retries):
            if all(found.get(where, at) >= at for where, at in known.items()):
                break
            time.sleep(self._options.lookup_retry_interval_ms / 1000)
            found = self.latest(wanted)
        return found

    def _offsets(self, asked: Mapping[TopicPartition, OffsetSpec | int]) -> dict[TopicPartition, int]:
        if not asked:
            return {}
        committed = self._options.isolation_level == "read_committed"

        def ask(admin: Admin) -> dict[TopicPartition, int]:
            found = admin.list_offsets(asked, read_committed=committed)
            for error in found.errors.values():
                if not isinstance(error, UnknownTopic):
                    raise error
            return {where: each.offset for where, each in found.succeeded.items()}

        return self._ask(ask)

    def resolve(self, bound: Bound, partitions: frozenset[TopicPartition], *, starting: bool) -> Positions:
        """The offset that a bound means in each partition.  Raises OptionError."""
        side = "starting" if starting else "ending"
        match bound:
            case Edge.EARLIEST:
                return self.earliest(partitions)
            case Edge.LATEST:
                return self.latest(partitions)
            case AtOffsets(offsets):
                _check_cover(f"{side}Offsets", offsets, partitions)
                ends = self.latest(where for where, offset in offsets.items() if offset == LATEST)
                starts = self.earliest(where for where, offset in offsets.items() if offset == EARLIEST)
                return {**offsets, **ends, **starts}
            case AtTime(moment):
                return self._at_times(f"{side}Timestamp", dict.fromkeys(partitions, moment), starting)
            case AtTimes(timestamps):
                option = f"{side}OffsetsByTimestamp"
                _check_cover(option, timestamps, partitions)
                return self._at_times(option, timestamps, starting)

    def _at_times(
        self, option: str, times: Mapping[TopicPartition, int], starting: bool
    ) -> dict[TopicPartition, int]:
        found = self._offsets(times)
        later = sorted(where for where, offset in found.items() if offset < 0)
        if later and starting and self._options.starting_after_last == "error":
            raise OptionError(
                option,
                f"{later[0]} has no record at or after {times[later[0]]}",
                "set startingOffsetsByTimestampStrategy=latest to start at its end",
            )
        return {**found, **self.latest(later)}

    # --- sizes and groups

    def bytes_per_offset(self, begins: Positions, ends: Positions) -> dict[TopicPartition, float]:
        """The average size of what the log has for each offset; 0 where nobody knows."""
        found = self._ask(lambda admin: admin.describe_log_dirs(partitions=ends))
        sizes: dict[TopicPartition, int] = {}
        for folders in found.succeeded.values():
            for folder in folders.succeeded.values():
                for replica in folder.replicas:
                    where = replica.partition
                    sizes[where] = max(sizes.get(where, 0), replica.size_bytes)
        return {where: sizes.get(where, 0) / max(1, end - begins[where]) for where, end in ends.items()}

    def commit(
        self, group: str, positions: Positions, metadata: str, *, timeout_ms: int | None = None
    ) -> None:
        """Tells the group where the stream is.  Raises KafkaError."""
        values = {where: OffsetAndMetadata(offset, metadata) for where, offset in positions.items()}
        self._client().alter_group_offsets(group, values, timeout_ms=timeout_ms).check()

    def committed(
        self, group: str, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What a group has committed; nothing when there is no such group.  Raises KafkaError."""
        return self._client().list_group_offsets(group, timeout_ms=timeout_ms).succeeded

    def forget_group(self, group: str, *, timeout_ms: int | None = None) -> None:
        """Raises KafkaError."""
        self._client().delete_groups([group], timeout_ms=timeout_ms).check()

    def _client(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(settings_for(ADMIN, self._options.client))
        return self._admin

    def _ask(self, question: Callable[[Admin], Answer]) -> Answer:
        """The answer, after some repeats.  Raises SparkPartError with the cluster's words."""
        tries = self._options.lookup_retries
        while True:
            try:
                return question(self._client())
            except KafkaError as error:
                if tries <= 0 or not error.retriable:
                    where = self._options.client.get("bootstrap.servers", "")
                    did = "did not answer" if error.retriable else "refuses to answer"
                    raise SparkPartError(f"the cluster at {where} {did}: {_flat(error)}") from error
                log.debug("a look-up failed and is repeated: %s", error)
            tries -= 1
            time.sleep(self._options.lookup_retry_interval_ms / 1000)


def _flat(error: KafkaError) -> str:
    return " ".join(str(error).split())


def _check_cover(option: str, given: Positions, partitions: frozenset[TopicPartition]) -> None:
    """Raises OptionError unless exactly the partitions selected are given."""
    missing, extra = sorted(partitions - set(given)), sorted(set(given) - partitions)
    if missing or extra:
        odd = f"{missing[0]} is missing" if missing else f"{extra[0]} is not among them"
        raise OptionError(option, f"it must name exactly the partitions that are read; {odd}")
