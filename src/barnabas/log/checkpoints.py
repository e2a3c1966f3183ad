"""The small text files of a data folder, in Apache Kafka's forms, replaced atomically.

A checkpoint is a version line ("0"), a line with the number of entries, then one entry a line:
`topic partition offset` in the four offset checkpoints.  `meta.properties` names the broker and the
cluster that own the folder, `partition.metadata` the topic id of a partition.  The clean-shutdown marker
is JSON; it is there only between a clean stop and the next start.

Reading raises CorruptCheckpoint with the path and the line; a missing file is an empty one.
Stateless: any thread may call, one writer a file.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.base.config import parse_properties
from barnabas.base.errors import ConfigFault
from barnabas.base.types import TopicPartition, Uuid, uuid_from_text, uuid_text
from barnabas.log.errors import CorruptCheckpoint
from barnabas.log.files import Files

__all__ = [
    "MetaProperties",
    "format_checkpoint",
    "parse_checkpoint",
    "read_clean_shutdown",
    "read_meta_properties",
    "read_offsets",
    "read_topic_id",
    "write_clean_shutdown",
    "write_meta_properties",
    "write_offsets",
    "write_topic_id",
]

_VERSION = 0


def format_checkpoint(lines: Iterable[str]) -> bytes:
    """The text of a checkpoint with these entries."""
    entries = list(lines)
    return "\n".join([str(_VERSION), str(len(entries)), *entries, ""]).encode()


def parse_checkpoint(path: str, content: bytes | None, fields: int) -> list[list[str]]:
    """The entries of a checkpoint, `fields` words each; nothing for a missing or empty file."""
    if not content:
        return []
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(f"{path}: {error}") from error
    if lines[0] != str(_VERSION):
        raise CorruptCheckpoint(f"{path}: version {lines[0]!r} instead of {_VERSION}")
    entries = [line.split() for line in lines[2:]]
    if len(lines) < 2 or lines[1] != str(len(entries)):
        raise CorruptCheckpoint(f"{path}: has {len(entries)} entries, not {lines[1:2]}")
    for number, words in enumerate(entries, 3):
        if len(words) != fields:
            raise CorruptCheckpoint(f"{path}, line {number}: {' '.join(words)!r} is not {fields} words")
    return entries


def checkpoint_integer(path: str, word: str) -> int:
    """A number in a checkpoint."""
    try:
        return int(word)
    except ValueError as error:
        raise CorruptCheckpoint(f"{path}: {word!r} is not a number") from error


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """An offset checkpoint."""
    return {
        TopicPartition(topic, checkpoint_integer(path, partition)): checkpoint_integer(path, offset)
        for topic, partition, offset in parse_checkpoint(path, files.load(path), 3)
    }


def write_offsets(
    files: Files, path: str, offsets: Mapping[TopicPartition, int], *, sync: bool = True
) -> None:
    """Replace an offset checkpoint; durable on return, if `sync`."""
    lines = (f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items())
    files.replace(path, format_checkpoint(lines), sync=sync)


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Who owns a data folder.  Version 0 (ZooKeeper days) says `broker.id`, version 1 `node.id`."""

    broker_id: int
    cluster_id: str | None = None
    directory_id: Uuid | None = None
    version: int = 1


def read_meta_properties(files: Files, path: str) -> MetaProperties | None:
    """The owner of the folder, or None when nobody took it yet."""
    if (content := files.load(path)) is None:
        return None
    try:
        given = parse_properties(content.decode().splitlines())
        version = int(given.get("version", "0"))
        broker_id = int(given["node.id"] if "node.id" in given else given["broker.id"])
        directory = given.get("directory.id")
        directory_id = None if directory is None else uuid_from_text(directory)
    except (ConfigFault, ValueError, KeyError) as error:
        raise CorruptCheckpoint(f"{path}: {error}") from error
    return MetaProperties(broker_id, given.get("cluster.id"), directory_id, version)


def write_meta_properties(files: Files, path: str, meta: MetaProperties) -> None:
    """Name the owner of the folder; durable on return."""
    lines = [f"version={meta.version}", f"{'node.id' if meta.version else 'broker.id'}={meta.broker_id}"]
    if meta.cluster_id is not None:
        lines.append(f"cluster.id={meta.cluster_id}")
    if meta.directory_id is not None:
        lines.append(f"directory.id={uuid_text(meta.directory_id)}")
    files.replace(path, ("\n".join(lines) + "\n").encode())


def read_topic_id(files: Files, path: str) -> Uuid | None:
    """The topic id in a `partition.metadata`, or None when there is no such file."""
    if (content := files.load(path)) is None:
        return None
    try:
        given = dict(line.split(": ", 1) for line in content.decode().splitlines() if line)
        if given["version"] != str(_VERSION):
            raise ValueError(f"version {given['version']!r} instead of {_VERSION}")
        return uuid_from_text(given["topic_id"])
    except (ValueError, KeyError) as error:
        raise CorruptCheckpoint(f"{path}: {error!r}") from error


def write_topic_id(files: Files, path: str, topic_id: Uuid) -> None:
    """Bind a partition folder to a topic id; durable on return."""
    files.replace(path, f"version: {_VERSION}\ntopic_id: {uuid_text(topic_id)}".encode())


def write_clean_shutdown(files: Files, path: str, broker_epoch: int) -> None:
    """Say that everything in the folder is flushed and closed."""
    files.replace(path, json.dumps({"version": _VERSION, "brokerEpoch": broker_epoch}).encode())


def read_clean_shutdown(files: Files, path: str) -> int | None:
    """The broker epoch of the last clean shutdown (-1 when it was not noted), or None after a crash."""
    if (content := files.load(path)) is None:
        return None
    try:
        epoch = json.loads(content or b"{}").get("brokerEpoch", -1)
    except (ValueError, AttributeError):
        return -1  # older Kafka left an empty or free-form file: being there is what counts
    return epoch if isinstance(epoch, int) else -1
