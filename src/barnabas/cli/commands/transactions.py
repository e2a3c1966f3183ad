"""`barnabas transactions`: list and describe transactions, find and end those that hang.

The options of kafka-transactions work too.
"""

import time
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli import completion
from barnabas.cli.actions import names_of
from barnabas.cli.connection import Connection, connected, json_option

if TYPE_CHECKING:
    from barnabas.base.types import TopicPartition
    from barnabas.client.admin import Admin
    from barnabas.client.admin_transactions import OpenTransaction, TransactionDescription

EXAMPLES = """
\b
Examples:
  barnabas transactions list --state Ongoing
  barnabas transactions describe billing-1
  barnabas transactions find-hanging                  in all topics
  barnabas transactions find-hanging --topic orders --all
  barnabas transactions abort --topic orders --partition 0 --start-offset 1234
"""

_MINUTE_MS = 60_000
_LONGEST_MINUTES = 15  # transaction.max.timeout.ms of brokers, unless it was changed

timeout_option = click.option(
    "--timeout", "timeout_ms", type=click.IntRange(1), help="Longest time in ms.  [default: 60000]"
)


@click.group(epilog=EXAMPLES, short_help="List and describe transactions, find and end those that hang.")
def command() -> None:
    """List and describe transactions, find and end those that hang."""


@command.command("list", short_help="List transactional ids.")
@click.option("--state", "states", help="Only those in these states, by comma, as Ongoing.")
@timeout_option
@json_option
@connected
def list_(states: str | None, timeout_ms: int | None, as_json: bool, connection: Connection) -> None:
    """List transactional ids with their producers and states."""
    from barnabas.cli.output import document, table

    wanted = [word.strip() for word in (states or "").split(",") if word.strip()]
    with connection.admin() as admin:
        found = admin.list_transactions(states=wanted, timeout_ms=timeout_ms)
    if as_json:
        document(
            [
                {
                    "transactional_id": each.transactional_id,
                    "coordinator": each.coordinator,
                    "producer_id": each.producer_id,
                    "state": each.state,
                }
                for each in found
            ]
        )
    else:
        table(
            ("TRANSACTIONAL-ID", "COORDINATOR", "PRODUCER-ID", "STATE"),
            [(each.transactional_id, each.coordinator, each.producer_id, each.state) for each in found],
        )


@command.command(short_help="Show state, producer, age and partitions of transactional ids.")
@click.argument("names", nargs=-1, metavar="[ID]...")
@click.option("--transactional-id", "by_flag", multiple=True, metavar="ID", help="An id, as an argument.")
@timeout_option
@json_option
@connected
def describe(
    names: tuple[str, ...],
    by_flag: tuple[str, ...],
    timeout_ms: int | None,
    as_json: bool,
    connection: Connection,
) -> int:
    """Show state, producer, age and partitions of transactional ids."""
    from barnabas.cli.output import document, table

    with connection.admin() as admin:
        wanted = names_of(names, by_flag, "transactional id")
        results = admin.describe_transactions(wanted, timeout_ms=timeout_ms)
    shown = [_described(each) for each in results.succeeded.values()]
    if as_json:
        document(shown)
    elif shown:
        table(
            (
                "TRANSACTIONAL-ID",
                "COORDINATOR",
                "PRODUCER-ID",
                "EPOCH",
                "STATE",
                "TIMEOUT-MS",
                "AGE-S",
                "PARTITIONS",
            ),
            [
                (
                    *(each[key] for key in ("transactional_id", "coordinator", "producer_id")),
                    *(each[key] for key in ("producer_epoch", "state", "timeout_ms")),
                    "-" if each["age_s"] is None else each["age_s"],
                    ",".join(each["partitions"]) or "-",
                )
                for each in shown
            ],
        )
    for error in results.errors.values():
        click.echo(f"barnabas: {error}", err=True)
    return 1 if results.errors else 0


def _described(found: "TransactionDescription") -> dict[str, Any]:
    return {
        "transactional_id": found.transactional_id,
        "coordinator": found.coordinator,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "state": found.state,
        "timeout_ms": found.timeout_ms,
        "start_ms": found.start_ms if found.start_ms >= 0 else None,
        "age_s": _age_s(found.start_ms) if found.start_ms >= 0 else None,
        "partitions": [f"{topic}-{partition}" for topic, partition in found.partitions],
    }


def _age_s(since_ms: int) -> int:
    return max(0, round(time.time() - since_ms / 1000))


@command.command("find-hanging", short_help="Find transactions that nobody will end.")
@click.option(
    "--topic", "topics", multiple=True, shell_complete=completion.topics, help="Only in this topic."
)
@click.option("--partition", "numbers", multiple=True, type=click.IntRange(0), help="Only in this partition.")
@click.option(
    "--max-transaction-timeout",
    "minutes",
    type=click.IntRange(0),
    default=_LONGEST_MINUTES,
    show_default=True,
    help="Minutes without a record before one counts as hanging.",
)
@click.option("--all", "everything", is_flag=True, help="All that are open, also those that will be ended.")
@timeout_option
@json_option
@connected
def find_hanging(
    topics: tuple[str, ...],
    numbers: tuple[int, ...],
    minutes: int,
    everything: bool,
    timeout_ms: int | None,
    as_json: bool,
    connection: Connection,
) -> None:
    """Find transactions that nobody will end, with their owners and ages.

    Such a transaction is open in a partition, and no coordinator knows of it; readers of committed records
    wait before it for ever.
    """
    from barnabas.cli.output import document, table

    with connection.admin() as admin:
        partitions = _partitions(admin, topics, numbers, timeout_ms)
        found = admin.open_transactions(partitions, timeout_ms=timeout_ms)
    if not everything:
        latest_ms = time.time() * 1000 - minutes * _MINUTE_MS
        found = [each for each in found if each.is_hanging and each.producer.last_timestamp <= latest_ms]
    shown = [_opened(each) for each in found]
    if as_json:
        document(shown)
    else:
        columns = [
            "topic",
            "partition",
            "start_offset",
            "producer_id",
            "producer_epoch",
            "coordinator_epoch",
            "transactional_id",
            "state",
            "age_s",
            "hanging",
        ]
        table(
            [column.upper().replace("_", "-") for column in columns],
            [["-" if each[column] is None else each[column] for column in columns] for each in shown],
        )


def _opened(found: "OpenTransaction") -> dict[str, Any]:
    producer = found.producer
    return {
        "topic": found.partition.topic,
        "partition": found.partition.partition,
        "start_offset": producer.transaction_start_offset,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "transactional_id": found.transactional_id,
        "state": found.state,
        "age_s": _age_s(producer.last_timestamp),
        "hanging": found.is_hanging,
    }


def _partitions(
    admin: "Admin", topics: tuple[str, ...], numbers: tuple[int, ...], timeout_ms: int | None
) -> "list[TopicPartition]":
    from barnabas.base.types import TopicPartition

    if numbers and not topics:
        raise click.UsageError("--partition needs --topic.")
    names = topics or [each.name for each in admin.list_topics(internal=True, timeout_ms=timeout_ms)]
    described = admin.describe_topics(names, timeout_ms=timeout_ms)
    return [
        TopicPartition(name, partition.index)
        for name in names
        for partition in described[name].partitions
        if not numbers or partition.index in numbers
    ]


@command.command(short_help="End a transaction that hangs in a partition.")
@click.option("--topic", required=True, shell_complete=completion.topics, help="Where it hangs.")
@click.option("--partition", required=True, type=click.IntRange(0), help="Where it hangs.")
@click.option("--start-offset", required=True, type=click.IntRange(0), help="Its first record there.")
@click.option("--force", is_flag=True, help="Also when its coordinator knows of it and will end it.")
@timeout_option
@json_option
@connected
def abort(
    topic: str,
    partition: int,
    start_offset: int,
    force: bool,
    timeout_ms: int | None,
    as_json: bool,
    connection: Connection,
) -> int:
    """End a transaction that hangs in a partition: its records there count as aborted.

    find-hanging tells the offset.
    """
    from barnabas.base.types import TopicPartition
    from barnabas.cli.output import document

    where = TopicPartition(topic, partition)
    with connection.admin() as admin:
        opened = admin.open_transactions([where], timeout_ms=timeout_ms)
        found = next((o for o in opened if o.producer.transaction_start_offset == start_offset), None)
        if found is None:
            click.echo(
                f"barnabas: no transaction is open at {topic}-{partition} from {start_offset} on", err=True
            )
            return 1
        if not found.is_hanging and not force:
            click.echo(
                f"barnabas: the transaction belongs to {found.transactional_id} ({found.state}) and will be "
                "ended by its coordinator; --force ends it here all the same",
                err=True,
            )
            return 1
        admin.abort_transaction(where, found.producer, timeout_ms=timeout_ms)
    if as_json:
        document({"topic": topic, "partition": partition, "start_offset": start_offset, "aborted": True})
    else:
        click.echo(f"aborted in {topic}-{partition} from offset {start_offset} on")
    return 0
