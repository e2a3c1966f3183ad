"""Which topic names are allowed, and which of them are internal; the texts are Kafka's.

Metric names turn '.' into '_', so two topics that differ only there cannot live side by side.
"""

import re
from collections.abc import Iterable

from barnabas.base.errors import BarnabasError

__all__ = [
    "GROUP_METADATA_TOPIC",
    "INTERNAL_TOPICS",
    "TOPIC_NAME_LENGTH_MAX",
    "TRANSACTION_STATE_TOPIC",
    "InvalidTopicName",
    "check_collision",
    "check_topic_name",
    "is_internal",
    "topic_name_fault",
]

GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC})

TOPIC_NAME_LENGTH_MAX = 249  # a folder is the name, '-' and a partition number, in at most 255 bytes
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


class InvalidTopicName(BarnabasError):
    """The name is not allowed for a topic."""


def topic_name_fault(name: str) -> str | None:
    """Why the name is not allowed, or None when it is."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {TOPIC_NAME_LENGTH_MAX}"
    if _LEGAL.fullmatch(name) is None:
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def check_topic_name(name: str) -> None:
    """Raises InvalidTopicName unless the name is allowed."""
    fault = topic_name_fault(name)
    if fault is not None:
        raise InvalidTopicName(f"Topic name is invalid: {fault}")


def check_collision(name: str, existing: Iterable[str]) -> None:
    """Raises InvalidTopicName when another existing topic differs from `name` only in '.' and '_'."""
    if "." not in name and "_" not in name:
        return
    unified = name.replace(".", "_")
    for other in existing:
        if other != name and other.replace(".", "_") == unified:
            raise InvalidTopicName(f"Topic '{name}' collides with existing topic: {other}")


def is_internal(name: str) -> bool:
    """True for topics that the cluster writes itself."""
    return name in INTERNAL_TOPICS
