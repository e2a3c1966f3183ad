"""The options of the source, a row for each; the table of docs/spark.md is made of it."""

from dataclasses import dataclass
from typing import Final

from barnabas.spark.planning import PACK_RECORDS

__all__ = ["OPTIONS", "Option", "markdown"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its name, default as shown, where it applies, and what it does."""

    name: str
    default: str
    use: str
    doc: str


OPTIONS: Final = tuple(
    Option(*row)
    for row in (
        (
            "kafka.bootstrap.servers",
            "required",
            "both",
            "Brokers to ask first; any `kafka.*` goes to the client.",
        ),
        ("assign", "none", "both", 'Partitions to read: `{"orders":[0,1]}`. One of the three is required.'),
        ("subscribe", "none", "both", "Topics to read, separated by commas."),
        (
            "subscribePattern",
            "none",
            "both",
            "Java regular expression for topic names; `^…$` for the whole of one.",
        ),
        ("startingTimestamp", "none", "both", "Milliseconds since 1970 to start from in all partitions."),
        (
            "startingOffsetsByTimestamp",
            "none",
            "both",
            'Times by partition: `{"orders":{"0":1700000000000}}`.',
        ),
        (
            "startingOffsets",
            "latest (stream), earliest (batch)",
            "both",
            'earliest, latest, or by partition: `{"orders":{"0":23,"1":-2}}`; -2 is earliest, -1 latest.',
        ),
        (
            "startingOffsetsByTimestampStrategy",
            "error",
            "both",
            "What to do when no record is that new: error, or latest.",
        ),
        ("endingTimestamp", "none", "batch", "Milliseconds since 1970 to end before."),
        ("endingOffsetsByTimestamp", "none", "batch", "Times by partition, as above."),
        ("endingOffsets", "latest", "batch", "latest, or offsets by partition; -1 latest."),
        ("failOnDataLoss", "true", "both", "Fail, or warn and go on, when offsets to be read are gone."),
        ("maxOffsetsPerTrigger", "none", "stream", "Offsets per batch at most, shared out by backlog."),
        (
            "maxBytesPerTrigger",
            "none",
            "stream",
            "Bytes per batch at most, by the average size of records; `64m`.",
        ),
        ("minOffsetsPerTrigger", "none", "stream", "Wait for so many offsets …"),
        ("maxTriggerDelay", "15m", "stream", "… but no longer than this."),
        (
            "trigger",
            "none",
            "stream",
            "`processingTime` says that the query has such a trigger; limits ask for it before PySpark 4.2.",
        ),
        ("minPartitions", "none", "both", "Split large partitions until there are about so many tasks."),
        ("maxRecordsPerPartition", "none", "both", "Split partitions into tasks of at most so many offsets."),
        (
            "minRecordsPerTask",
            str(PACK_RECORDS),
            "both",
            "Read small partitions together until a task has so many offsets; 0: a task for each.",
        ),
        ("columns", "all", "both", "Columns wanted, separated by commas: `value,offset`; fewer are faster."),
        ("includeHeaders", "false", "both", "Add the column `headers`."),
        ("key.format", "binary", "both", "`string`: the column `key` is a string, as `cast(key as string)`."),
        ("value.format", "binary", "both", "`string`: likewise the column `value`."),
        (
            "queryName",
            "none",
            "stream",
            "Commit progress to the group `spark:<queryName>`; without it the query's own name is used.",
        ),
        ("commitProgress", "true", "stream", "Tell a group how far the query is, for lag tools."),
        ("groupIdPrefix", "spark-kafka-source", "both", "Taken for compatibility; no group is joined."),
        ("kafka.group.id", "none", "both", "Commit progress to exactly this group."),
        ("kafkaConsumer.pollTimeoutMs", "120000", "both", "How long a task waits for data before it fails."),
        ("fetchOffset.numRetries", "3", "both", "How often the driver repeats a failed look-up."),
        ("fetchOffset.retryIntervalMs", "10", "both", "Pause between those."),
        (
            "partition.metadata.cache.ttl.ms",
            "-1",
            "both",
            "How long the driver may go on with a list of partitions; -1: asks every time.",
        ),
    )
)


def markdown() -> str:
    """The table as the guide shows it."""
    rows = ["| option | default | reads | meaning |", "|---|---|---|---|"]
    rows += [f"| `{each.name}` | {each.default} | {each.use} | {each.doc} |" for each in OPTIONS]
    return "\n".join(rows) + "\n"
