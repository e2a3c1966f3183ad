"""What `groups describe` shows of a group: as JSON, and as the tables of kafka-consumer-groups.

The lag in seconds stands behind Kafka's columns, so that scripts find those where they always were.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.output import table

if TYPE_CHECKING:
    from barnabas.client.admin_types import GroupDescription, GroupLag

__all__ = ["group_json", "lag_json", "print_group"]


def group_json(group: "GroupDescription") -> dict[str, Any]:
    return {
        "group": group.id,
        "state": group.state,
        "type": group.type,
        "assignor": group.assignor,
        "coordinator": {
            "id": group.coordinator.id,
            "host": group.coordinator.host,
            "port": group.coordinator.port,
        },
        "members": [
            {
                "member_id": member.id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "subscription": list(member.subscription),
                "assignment": [{"topic": topic, "partition": number} for topic, number in member.assignment],
            }
            for member in group.members
        ],
    }


def lag_json(lag: "GroupLag") -> dict[str, Any]:
    return {
        **group_json(lag.group),
        "lag": lag.messages,
        "lag_seconds": lag.seconds,
        "partitions": [
            {
                "topic": part.partition.topic,
                "partition": part.partition.partition,
                "current_offset": part.committed,
                "log_start_offset": part.start,
                "log_end_offset": part.end,
                "lag": None if part.committed is None else part.messages,
                "lag_seconds": part.seconds,
                "member_id": part.member.id if part.member else None,
                "host": part.member.host if part.member else None,
                "client_id": part.member.client_id if part.member else None,
            }
            for part in lag.partitions
        ],
    }


_OFFSETS = (
    ("GROUP", "group"),
    ("TOPIC", "topic"),
    ("PARTITION", "partition"),
    ("CURRENT-OFFSET", "current_offset"),
    ("LOG-END-OFFSET", "log_end_offset"),
    ("LAG", "lag"),
    ("CONSUMER-ID", "member_id"),
    ("HOST", "host"),
    ("CLIENT-ID", "client_id"),
    ("LAG-SECONDS", "lag_seconds"),
)


def print_group(group: dict[str, Any], view: str, verbose: bool) -> None:
    name, members = group["group"], group["members"]
    columns: tuple[str, ...] = tuple(heading for heading, _ in _OFFSETS)
    rows: list[tuple[object, ...]]
    if view == "state":
        where = group["coordinator"]
        address = f"{where['host']}:{where['port']} ({where['id']})"
        columns = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
        table(columns, [(name, address, group["assignor"], group["state"], len(members))])
        return
    if not members:
        click.echo(f"Group {name!r} has no members; it is {group['state']}.", err=True)
    if view == "members":
        columns = ("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "INSTANCE-ID")
        rows = [
            (name, m["member_id"], m["host"], m["client_id"], len(m["assignment"]), m["instance_id"])
            for m in members
        ]
        if verbose:
            columns = (*columns, "ASSIGNMENT")
            rows = [(*row, _places_text(m["assignment"])) for row, m in zip(rows, members, strict=True)]
    else:
        rows = [tuple({**part, "group": name}[key] for _, key in _OFFSETS) for part in group["partitions"]]
    if rows:
        table(columns, rows)


def _places_text(assignment: Iterable[dict[str, Any]]) -> str:
    by_topic: dict[str, list[str]] = {}
    for place in assignment:
        by_topic.setdefault(place["topic"], []).append(str(place["partition"]))
    return ", ".join(f"{topic}({','.join(numbers)})" for topic, numbers in by_topic.items())
