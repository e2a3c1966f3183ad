"""Files with offsets of partitions: the CSV of `groups reset-offsets`, the JSON of `delete-records`.

"orders",0,1200                                                   a group's offsets
"billing","orders",0,1200                                         with the group, for several
{"partitions": [{"topic": "orders", "partition": 0, "offset": 1200}], "version": 1}
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from barnabas.base.errors import ConfigFault
from barnabas.base.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin_types import OffsetChange

__all__ = ["read_json_offsets", "read_offsets", "write_offsets"]


def write_offsets(changes: "Iterable[tuple[str, OffsetChange]]", *, with_group: bool) -> Iterator[str]:
    """The lines of the CSV."""
    for group, change in changes:
        line = io.StringIO()
        topic, partition = change.partition
        row = [*([group] if with_group else []), topic, partition, change.after]
        csv.writer(line, quoting=csv.QUOTE_NONNUMERIC, lineterminator="").writerow(row)
        yield line.getvalue()


def read_offsets(file: TextIO, group: str) -> dict[TopicPartition, int]:
    """The offsets for one group.  Raises ConfigFault for a line that is none."""
    found: dict[TopicPartition, int] = {}
    for number, row in enumerate(csv.reader(file), 1):
        if not row:
            continue
        try:
            *groups, topic, partition, offset = row
            if len(groups) > 1:
                raise ValueError("too many columns")
            where = TopicPartition(topic, int(partition))
            if not groups or groups[0] == group:
                found[where] = int(offset)
        except ValueError as error:
            raise ConfigFault(
                f"line {number} is not [group,]topic,partition,offset: {','.join(row)!r}"
            ) from error
    return found


def read_json_offsets(text: str) -> dict[TopicPartition, int]:
    """The offsets of a file for deleting records.  Raises ConfigFault."""
    try:
        document = json.loads(text)
        if document.get("version", 1) != 1:
            raise ConfigFault(f"version {document['version']} of the file is not known; there is 1")
        rows = [
            (str(row["topic"]), int(row["partition"]), int(row["offset"])) for row in document["partitions"]
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigFault(
            'the file must be {"partitions": [{"topic": "t", "partition": 0, "offset": 5}], "version": 1}'
        ) from error
    found: dict[TopicPartition, int] = {}
    for topic, partition, offset in rows:
        where = TopicPartition(topic, partition)
        if where in found:
            raise ConfigFault(f"{where} is named twice")
        found[where] = offset
    return found
