"""A landing of Parquet files, back into a topic.  Read with Arrow, a few files at a time; needs no Spark.

`land` keeps where each row came from (_topic, _partition, _offset, _timestamp, _key; of raw records the same
names without the dash).  That is the order of a replay, and the mark of how far it is:

F1  Rows of a partition go back in the order of their offsets, into the partition of the same number.
F2  The offset of the next row is committed in the transaction of the rows before it, so that a replay goes on
    without losing or doubling a row, also when files were merged meanwhile.
F3  Files whose offsets interleave are read together; otherwise one file at a time is in memory.

The value is the column `value` if there is one; else the columns without a dash in front as a JSON object,
without the date and hour that `land` made from the record's time to name folders.
"""

import heapq
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.admin_types import NewTopic
from barnabas.client.bulk_produce import BulkProducer
from barnabas.client.config import ADMIN, PRODUCER, settings_for
from barnabas.client.errors import UnknownTopic
from barnabas.records.builder import BatchBuilder
from barnabas.spark.pipelines.causes import explain
from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.mirror_task import Copied
from barnabas.spark.pipelines.replay_pace import Extent, duration_s
from barnabas.spark.pipelines.replay_plan import ReplayPlan
from barnabas.spark.pipelines.replay_topic import Estimate

if TYPE_CHECKING:
    import pyarrow.dataset

__all__ = ["FilesReplay"]

_BATCH_BYTES: Final = 256 << 10
_TRANSACTION_S: Final = 1.0
_SLICE_S: Final = 0.2

Names = Mapping[str, str]


class Row(NamedTuple):
    """One record; ordered by time, then by where it came from."""

    timestamp: int
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(slots=True)
class _Stretch:
    """The offsets of one partition in one file."""

    fragment: "pyarrow.dataset.Fragment"
    first: int
    last: int
    rows: int


class FilesReplay:
    """One replay of a landing.  Raises PipelineError if the files are not what `land` writes."""

    def __init__(self, plan: ReplayPlan) -> None:
        import pyarrow as pa
        import pyarrow.dataset as ds

        from barnabas.spark.pipelines.arrow_files import reading

        self._plan = plan
        system, path = reading(plan.path)
        try:
            found = ds.dataset(path, filesystem=system, format="parquet", partitioning="hive")
            # A landing outlives changes of its schema: what one file has, all have.
            schemas = [found.schema, *(each.physical_schema for each in found.get_fragments())]
            schema = pa.unify_schemas(schemas, promote_options="permissive")
            self._dataset = found.replace_schema(schema)
            in_files = {name for each in schemas[1:] for name in each.names}
            self._made = {name for name in ("date", "hour") if name in schema.names and name not in in_files}
        except FileNotFoundError as error:
            raise PipelineError(f"{plan.path} is not there") from error
        except (OSError, ValueError, pa.ArrowException) as error:
            raise PipelineError(f"{plan.path} cannot be read: {explain(error)}") from error
        self._columns = _columns(self._dataset.schema.names, plan.path)
        self._index = self._indexed()

    def _indexed(self) -> dict[int, list[_Stretch]]:
        """Which file holds which offsets of which partition: one pass over two narrow columns."""
        import pyarrow.compute as pc

        names = self._columns
        found: dict[int, list[_Stretch]] = {}
        topics: set[str] = set()
        for fragment in self._dataset.get_fragments():
            wanted = [names["topic"], names["partition"], names["offset"]]
            table = fragment.to_table(columns=wanted, schema=self._dataset.schema)
            topics.update(str(each) for each in pc.unique(table[names["topic"]]).to_pylist())
            if self._plan.topic:
                table = table.filter(pc.equal(table[names["topic"]], self._plan.topic))
            offset = names["offset"]
            grouped = table.group_by(names["partition"]).aggregate(
                [(offset, "min"), (offset, "max"), (offset, "count")]
            )
            for row in grouped.to_pylist():
                number = int(row[names["partition"]])
                if not self._plan.partitions or number in self._plan.partitions:
                    stretch = _Stretch(
                        fragment, row[f"{offset}_min"], row[f"{offset}_max"], row[f"{offset}_count"]
                    )
                    found.setdefault(number, []).append(stretch)
        if not self._plan.topic and len(topics) > 1:
            several = ", ".join(sorted(topics))
            raise PipelineError(f"{self._plan.path} holds several topics ({several}): say which one")
        for stretches in found.values():
            stretches.sort(key=lambda stretch: stretch.first)
        return dict(sorted(found.items()))

    def extents(self) -> dict[int, Extent]:
        return {
            number: Extent(stretches[0].first, max(stretch.last for stretch in stretches) + 1)
            for number, stretches in self._index.items()
        }

    def estimate(self) -> Estimate:
        """What would be done; the rows are counted, their size as JSON is guessed from the first ones."""
        rows = sum(stretch.rows for stretches in self._index.values() for stretch in stretches)
        sample: list[Row] = []
        times: list[int] = []
        for number in self._index:
            for row in self._rows(number, 0):
                sample.append(row)
                times.append(row.timestamp)
                if len(sample) % 100 == 0:
                    break
        each = sum(len(row.value or b"") + len(row.key or b"") + 10 for row in sample) / max(len(sample), 1)
        size = int(rows * each)
        seconds = duration_s(self._plan.rate, rows, size, self._last_ms() - min(times, default=0))
        return Estimate(self.extents(), rows, size, seconds if rows else 0.0, is_exact=True)

    def _last_ms(self) -> int:
        import pyarrow.compute as pc

        column = self._columns["timestamp"]
        latest = 0
        for fragment in self._dataset.get_fragments():
            value = pc.max(fragment.to_table(columns=[column], schema=self._dataset.schema)[column]).as_py()
            latest = max(latest, _millis(value))
        return latest

    # --- rows

    def _rows(self, number: int, position: int) -> Iterator[Row]:
        """The rows of a partition from an offset on, in order (F1, F3)."""
        group: list[_Stretch] = []
        last = -1
        for stretch in self._index[number]:
            if stretch.last < position:
                continue
            if group and stretch.first > last:
                yield from self._read(group, number, position)
                group = []
            group.append(stretch)
            last = max(last, stretch.last)
        if group:
            yield from self._read(group, number, position)

    def _read(self, group: list[_Stretch], number: int, position: int) -> Iterator[Row]:
        import pyarrow as pa
        import pyarrow.compute as pc

        names = self._columns
        wanted = pc.field(names["partition"]) == number
        wanted &= pc.field(names["offset"]) >= position
        if self._plan.topic:
            wanted &= pc.field(names["topic"]) == self._plan.topic
        schema = self._dataset.schema
        tables = [stretch.fragment.to_table(schema=schema, filter=wanted) for stretch in group]
        table = pa.concat_tables(tables).sort_by(names["offset"])
        before = -1
        for batch in table.to_batches(max_chunksize=1_000):
            for row in batch.to_pylist():
                offset = int(row[names["offset"]])
                if offset != before:
                    yield _record(row, names, self._made, number, offset)
                before = offset

    # --- doing it

    def run(
        self, stop: threading.Event | None = None, on_copied: Callable[[list[Copied]], None] | None = None
    ) -> dict[int, int]:
        """Replays until all is done or `stop` is set; how far each partition is."""
        stop = stop or threading.Event()
        self._make_topic()
        plan = self._plan
        with BulkProducer(
            settings_for(PRODUCER, plan.target), transactional_id=f"{plan.group}/files"
        ) as producer:
            done = {
                number: mark[0] if (mark := producer.committed(plan.group, plan.into, number)) else 0
                for number in self._index
            }
            writer = _Writer(plan, producer, done, on_copied)
            merged = heapq.merge(*(self._rows(number, done[number]) for number in self._index))
            for row in merged:
                if stop.is_set():
                    break
                writer.take(row, stop)
            writer.commit()
        return done

    def _make_topic(self) -> None:
        plan = self._plan
        partitions = max(self._index, default=0) + 1
        with Admin(settings_for(ADMIN, plan.target)) as admin:
            try:
                there = len(admin.describe_topic(plan.into).partitions)
            except UnknownTopic:
                admin.create_topics([NewTopic(plan.into, partitions)]).check()
                return
        if there < partitions:
            raise PipelineError(
                f"topic {plan.into} has {there} partitions and the landing has rows of {partitions}: "
                "add partitions, or replay into another topic"
            )


class _Writer:
    """Rows on their way, at the pace of the plan, in transactions with their marks (F2)."""

    def __init__(
        self,
        plan: ReplayPlan,
        producer: BulkProducer,
        done: dict[int, int],
        on_copied: Callable[[list[Copied]], None] | None,
    ) -> None:
        self._plan = plan
        self._producer = producer
        self._done = done
        self._on_copied = on_copied
        self._began = self._since = time.monotonic()
        self._first_ms: int | None = None
        self._count = 0
        self._bytes = 0
        self._builders: dict[int, BatchBuilder] = {}
        self._copied: dict[int, Copied] = {}

    def take(self, row: Row, stop: threading.Event) -> None:
        self._wait(row, stop)
        copied = self._copied.get(row.partition)
        if copied is None:
            if not self._copied:
                self._producer.begin()
            copied = Copied(self._plan.into, row.partition, row.offset, row.offset)
            self._copied[row.partition] = copied
        builder = self._builders.get(row.partition)
        if builder is None or not builder.append(row.timestamp, row.key, row.value, row.headers):
            self._send(row.partition)
            builder = self._builders[row.partition] = BatchBuilder(_BATCH_BYTES)
            builder.append(row.timestamp, row.key, row.value, row.headers)
        copied.records += 1
        copied.end = row.offset + 1
        self._count += 1
        self._bytes += len(row.value or b"") + len(row.key or b"")
        if time.monotonic() - self._since > _TRANSACTION_S:
            self.commit()

    def _send(self, partition: int) -> None:
        builder = self._builders.pop(partition, None)
        if builder is not None:
            data = builder.build()
            self._copied[partition].size_bytes += len(data)
            self._producer.send(self._plan.into, partition, data)

    def _wait(self, row: Row, stop: threading.Event) -> None:
        """Until the row is due; what waits meanwhile is committed, so that readers see it in time."""
        rate = self._plan.rate
        if self._first_ms is None:
            self._first_ms = row.timestamp
        match rate.kind:
            case "records":
                due_s = self._count / rate.amount
            case "bytes":
                due_s = self._bytes / rate.amount
            case "speed":
                due_s = (row.timestamp - self._first_ms) / 1000 / rate.amount
            case _:
                return
        early_s = due_s - (time.monotonic() - self._began)
        if early_s > _SLICE_S:
            self.commit()
            stop.wait(early_s)

    def commit(self) -> None:
        """Ends the transaction that is open, if one is."""
        self._since = time.monotonic()
        if not self._copied:
            return
        for partition in list(self._builders):
            self._send(partition)
        marks = {
            TopicPartition(self._plan.into, partition): (copied.end, "")
            for partition, copied in self._copied.items()
        }
        self._producer.send_offsets(self._plan.group, marks)
        self._producer.commit()
        copied, self._copied = list(self._copied.values()), {}
        for each in copied:
            self._done[each.partition] = each.end
        if self._on_copied is not None:
            self._on_copied(copied)


def _columns(names: list[str], path: str) -> dict[str, str]:
    """What `land` called the columns of the record."""
    found = {}
    for name in ("topic", "partition", "offset", "timestamp", "key"):
        column = next((each for each in (f"_{name}", name) if each in names), None)
        if column is None:
            raise PipelineError(
                f"{path} has no column _{name}: only a landing that keeps where rows came from "
                "(metadata: true) can be replayed"
            )
        found[name] = column
    return found


def _record(row: Mapping[str, Any], names: Names, made: set[str], partition: int, offset: int) -> Row:
    timestamp = _millis(row[names["timestamp"]])
    headers: tuple[tuple[str, bytes | None], ...] = ()
    if "value" in row and names["offset"] == "offset":
        value = _bytes(row["value"])
        headers = tuple((each["key"], each["value"]) for each in row.get("headers") or ())
    else:
        moment = datetime.fromtimestamp(timestamp / 1000, UTC)
        of_time = {"date": str(moment.date()), "hour": str(moment.hour)}
        fields = {
            name: found
            for name, found in row.items()
            if not name.startswith("_")
            and found is not None
            and not (name in made and str(found) == of_time[name])
        }
        value = json.dumps(fields, default=_json, ensure_ascii=False, separators=(",", ":")).encode()
    return Row(timestamp, partition, offset, _bytes(row[names["key"]]), value, headers)


def _bytes(value: object) -> bytes | None:
    if value is None:
        return None
    return value if isinstance(value, bytes) else str(value).encode()


def _millis(value: object) -> int:
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else int(str(value or 0))


def _json(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)
