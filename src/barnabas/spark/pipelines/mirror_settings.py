"""What a mirror is told: where from, where to, which topics and groups, and how.

Frozen values that travel to Spark's workers as they are.  Patterns are regular expressions that must match
the whole name; several may be given with commas, as in MirrorMaker.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from barnabas.base.errors import ConfigFault
from barnabas.client.config import ADMIN, CONSUMER, PRODUCER

__all__ = ["GROUP_PREFIX", "MirrorPlan", "Names", "OffsetMode", "known_settings", "names_of"]

OffsetMode = Literal["auto", "kept", "translated"]

_TABLES: Final = (CONSUMER, PRODUCER, ADMIN)
GROUP_PREFIX: Final = "mirror:"
CONFIGS_NOT_COPIED: Final = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "min.insync.replicas",
    "unclean.leader.election.enable",
)
"""What belongs to a cluster and not to its topics, as in MirrorMaker 2."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names that match one of `include` and none of `exclude`."""

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()

    def matches(self, name: str) -> bool:
        if any(re.fullmatch(pattern, name) for pattern in self.exclude):
            return False
        return any(re.fullmatch(pattern, name) for pattern in self.include)


def names_of(include: Iterable[str], exclude: Iterable[str] = ()) -> Names:
    """Patterns, each possibly several with commas; `*` alone is everything.  Raises ConfigFault."""
    return Names(_patterns(include), _patterns(exclude))


def _patterns(given: Iterable[str]) -> tuple[str, ...]:
    found = []
    for text in given:
        for pattern in _split(text):
            whole = ".*" if pattern == "*" else pattern
            try:
                re.compile(whole)
            except re.error as error:
                raise ConfigFault(f"{pattern!r} is no regular expression: {error}") from None
            found.append(whole)
    return tuple(found)


def _split(text: str) -> list[str]:
    """At commas that are not inside brackets: `a{1,2},b` are two patterns."""
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth <= 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    return [each.strip() for each in [*parts, part] if each.strip()]


def known_settings(settings: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The settings that some client has, and the names of the others."""
    known = {name: value for name, value in settings.items() if any(name in table for table in _TABLES)}
    return known, [name for name in settings if name not in known]


@dataclass(frozen=True, slots=True)
class MirrorPlan:
    """One mirror.  `source` and `target` are client settings; secrets in them are not shown."""

    source: Mapping[str, str] = field(repr=False)
    target: Mapping[str, str] = field(repr=False)
    topics: Names
    group: str
    """Holds the state of the mirror, in the target cluster; begins every transactional id."""
    groups: Names = Names((".*",))
    prefix: str = ""
    """Put before the names of topics at the target."""
    offsets: OffsetMode = "auto"
    start: Literal["earliest", "latest"] = "earliest"
    """Where a partition begins of which nothing was copied."""
    sync_configs: bool = True
    sync_groups: bool = True
    replication_factor: int = -1
    tasks: int = 0
    """How many tasks copy at once; 0 leaves it to the cores there are."""
    skip_lost: bool = False
    """Go on when the source has deleted what was to be copied."""
    sync_interval_ms: int = 10_000
    """How often topics, settings and groups are looked at."""
    batch_offsets: int = 2_000_000
    """How much of a partition is copied before the next look at all of them."""
    transaction_bytes: int = 64 << 20
    transaction_ms: int = 5_000
    timeout_ms: int = 120_000
    """How long one request may be tried again before a task fails."""

    @property
    def reads(self) -> list[str]:
        """For people: what is copied from where."""
        return [f"{self.source.get('bootstrap.servers', '')}: {', '.join(self.topics.include)}"]

    @property
    def writes(self) -> list[str]:
        return [f"{self.target.get('bootstrap.servers', '')}: {self.prefix or 'the same names'}"]

    def target_topic(self, topic: str) -> str:
        return self.prefix + topic

    def transactional_id(self, topic: str, partition: int) -> str:
        return f"{self.group}/{topic}-{partition}"
