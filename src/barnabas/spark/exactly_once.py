"""Each task of each batch is written once: a transaction per task, with a marker in it that says so.

Spark runs a batch again, as whole tasks, until its commit log has it.  A task may therefore commit at once,
if a repeat can see that it did: the offset that group `spark-sink:<id>/<p>` has committed for the marker
topic is the number of the next batch of task p, and its note says which rows were written.  (A group per
task, as brokers take offsets only for partitions that exist, and nobody knows how many tasks there will be.)

    1  take over the transactional id of task p: older attempts are fenced, what they left open is aborted
    2  read the marker, once no transaction is about to change it
    3  it is of this batch: same rows? then all is done; else the replay is not deterministic: error
       it is of a later batch of this query: the checkpoint was set back: error
    4  write the rows; 5 put the marker into the transaction; 6 commit

E1  for one transactional id epochs rise: a second attempt's step 1 either fences the first, which then cannot
    commit, or waits for its commit and sees its marker
E2  so at most one transaction of a task is committed per batch, and Spark repeats until there is one
E3  a commit without an answer fails the attempt: the next one decides by the marker

Conditions: rows are assigned to tasks the same way on a replay (step 3 notices most of what breaks this);
nobody else uses the sink id; readers use isolation.level=read_committed.
"""

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from barnabas.base.types import TopicPartition
from barnabas.client.bulk_produce import BulkProducer
from barnabas.client.errors import KafkaError, ProducerFenced, TransactionAborted
from barnabas.protocol.codes import ErrorCode
from barnabas.spark.endings import Ending
from barnabas.spark.errors import OptionError, ReplayRefused, SparkPartError
from barnabas.spark.sink_options import SinkOptions
from barnabas.spark.writing import RowWriter, Tally, lend

__all__ = ["Marker", "Plan", "TaskName", "decide", "write_exactly_once"]

_PREFIX: Final = "spark-sink:"
_MARKER_PARTITION: Final = 0
# What a producer is told whose transaction was ended by somebody else.
_ENDED: Final = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
)


@dataclass(frozen=True, slots=True)
class TaskName:
    """Which part of which batch of which query a task writes."""

    sink_id: str
    query: str
    batch: int
    partition: int

    @property
    def key(self) -> str:
        """The transactional id of the task, and the group that holds its marker."""
        return f"{_PREFIX}{self.sink_id}/{self.partition}"

    def __str__(self) -> str:
        return f"task {self.partition} of batch {self.batch}"


class Marker(NamedTuple):
    """What a task wrote last."""

    query: str
    batch: int
    rows: int
    total: int

    def note(self) -> str:
        """As text beside the offset; keys are those of the first version and stay."""
        return json.dumps({"q": self.query, "batch": self.batch, "rows": self.rows, "sum": f"{self.total:x}"})

    @classmethod
    def read(cls, note: str) -> "Marker":
        """Raises ReplayRefused for a note that is none of ours."""
        try:
            found = json.loads(note)
            return cls(str(found["q"]), int(found["batch"]), int(found["rows"]), int(found["sum"], 16))
        except (ValueError, TypeError, KeyError) as error:
            raise ReplayRefused(
                f"the sink's group holds {note!r} where its marker should be; "
                "the option sinkId names a sink that somebody else uses"
            ) from error


class Plan(Enum):
    """What to do with the rows of a task."""

    WRITE = auto()
    COMPARE = auto()
    REFUSE = auto()


def decide(marker: Marker | None, task: TaskName) -> Plan:
    """Step 3.  A marker of another query, whose checkpoint was another, says nothing about this one."""
    if marker is None or marker.query != task.query or marker.batch < task.batch:
        return Plan.WRITE
    return Plan.COMPARE if marker.batch == task.batch else Plan.REFUSE


def write_exactly_once(batches: Iterable[Any], options: SinkOptions, task: TaskName) -> tuple[int, bool]:
    """Writes rows, or finds that they were written: how many, and whether they were there before.

    Raises SparkPartError, KafkaError; the rows then are not written, or the next attempt finds that they are.
    """
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return _write_nothing(options, task)
    rows = itertools.chain([first], filled)
    try:
        with Ending() as ending, lend(options.client, task.key) as producer, ending.interrupts():
            marker = _read_marker(producer, options, task)
            match decide(marker, task):
                case Plan.COMPARE:
                    assert marker is not None, "there is one to compare with"
                    return _compare(rows, options, task, marker), True
                case Plan.REFUSE if not options.rewrites_after_rollback:
                    assert marker is not None, "there is one that is later"
                    raise _rolled_back(task, marker)
            return _write(rows, options, task, producer), False
    except KafkaError as error:
        raise _explained(error, options, task) from error


def _write(rows: Iterable[Any], options: SinkOptions, task: TaskName, producer: BulkProducer) -> int:
    producer.begin()
    tally = Tally(options)
    writer = RowWriter(producer, options, tally=tally)
    for batch in rows:
        writer.write(batch)
    writer.finish()
    marker = Marker(task.query, task.batch, tally.rows, tally.total)
    place = TopicPartition(options.marker_topic, _MARKER_PARTITION)
    producer.send_offsets(task.key, {place: (task.batch + 1, marker.note())})
    producer.commit()
    return tally.rows


def _write_nothing(options: SinkOptions, task: TaskName) -> tuple[int, bool]:
    """A task without rows has nothing to commit; but it must not have had some."""
    with lend(options.client) as producer:
        marker = _read_marker(producer, options, task)
    if decide(marker, task) is Plan.COMPARE:
        assert marker is not None, "there is one to compare with"
        raise _differs(task, marker, 0)
    return 0, False


def _read_marker(producer: BulkProducer, options: SinkOptions, task: TaskName) -> Marker | None:
    found = producer.committed(task.key, options.marker_topic, _MARKER_PARTITION)
    return None if found is None else Marker.read(found[1])


def _compare(rows: Iterable[Any], options: SinkOptions, task: TaskName, marker: Marker) -> int:
    tally = Tally(options)
    for batch in rows:
        tally.add(batch)
    if (tally.rows, tally.total) != (marker.rows, marker.total):
        raise _differs(task, marker, tally.rows)
    return tally.rows


def _differs(task: TaskName, marker: Marker, rows: int) -> ReplayRefused:
    return ReplayRefused(
        f"{task} was written before, with {marker.rows} rows, and is now given {rows} rows that are not the "
        "same: the query gives other rows to its tasks when a batch is repeated.  Leave out what depends on "
        "chance or on the cluster (round-robin repartition, rand, current time, changed options), "
        "or use a new checkpoint, or set option delivery=at-least-once"
    )


def _rolled_back(task: TaskName, marker: Marker) -> ReplayRefused:
    return ReplayRefused(
        f"{task} was to be written, but batch {marker.batch} of the same query is written already: the "
        "checkpoint was set back.  Restore the newer checkpoint; or set option checkpointRollback=rewrite to "
        "write these batches again"
    )


def _explained(error: KafkaError, options: SinkOptions, task: TaskName) -> SparkPartError | KafkaError:
    """The error in the words of who runs the query."""
    if error.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT:
        return OptionError(
            "kafka.transaction.timeout.ms",
            f"{options.transaction_timeout_ms} is more than the brokers allow",
            "see their setting transaction.max.timeout.ms",
        )
    cause = error.__cause__ if isinstance(error, TransactionAborted) else error
    code = cause.code if isinstance(cause, KafkaError) else error.code
    if isinstance(error, ProducerFenced | TransactionAborted) and code in _ENDED:
        return SparkPartError(
            f"{task}: its transaction was ended from outside, so nothing of this attempt is written: another "
            f"attempt took over, or it was open for longer than {options.transaction_timeout_ms} ms; if no "
            "other attempt ran, raise the option kafka.transaction.timeout.ms (brokers allow "
            "transaction.max.timeout.ms) or write fewer rows per task"
        )
    return error
