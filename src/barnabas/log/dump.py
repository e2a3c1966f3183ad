"""What is in the files of a log, line by line, in the words of kafka-dump-log.

`dump` gives typed lines; `Line.text` is what Apache Kafka's tool prints, `Line.as_json` the same facts for
scripts.  What is wrong with a file is a line of its own (`is_problem`), for stderr, as there.

By the end of a name: `.log` (also marked `.deleted`, `.swap`, `.cleaned`), `.index`, `.timeindex`,
`.txnindex`, `.snapshot`, and beyond Kafka's tool the checkpoints, `partition.metadata` and `meta.properties`.
Reads only; raises DiskFault when a file cannot be read.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from barnabas.base.config import parse_properties
from barnabas.log.checkpoints import parse_checkpoint
from barnabas.log.cleaner_rewrite import DECOMPRESSED_BYTES_MAX, plain_payload
from barnabas.log.dump_decoders import Decoder, decode_text
from barnabas.log.errors import CorruptSnapshot, DiskFault
from barnabas.log.files import Files
from barnabas.log.layout import (
    CLEANED,
    CLEANER_OFFSETS,
    DELETED,
    HIGH_WATERMARKS,
    INDEX,
    LEADER_EPOCHS,
    LOG,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
)
from barnabas.log.producer_snapshot import decode_snapshot
from barnabas.log.stored_batches import LegacyEntry, StoredBatches, crc_fault
from barnabas.log.stored_indexes import load_aborted, load_offset_index, load_time_index, sanity_fault
from barnabas.records import kernel
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import ControlType, read_end_txn_marker
from barnabas.records.codecs import Codec
from barnabas.records.errors import RecordError
from barnabas.records.legacy import read_message_set
from barnabas.records.record import Record

__all__ = ["DumpOptions", "Line", "dump"]

_OFFSET_CHECKPOINTS: Final = (CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS)
_SEQUENCE_MASK: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """The flags of kafka-dump-log."""

    print_data_log: bool = False
    deep_iteration: bool = False
    verify_index_only: bool = False
    index_sanity_check: bool = False
    skip_record_metadata: bool = False
    max_bytes: int | None = None
    decoder: Decoder = decode_text

    @property
    def deep(self) -> bool:
        return self.deep_iteration or self.print_data_log


@dataclass(frozen=True, slots=True)
class Line:
    """One line: what kind of fact it is, its fields in order, and the whole text where that is a sentence."""

    kind: str
    fields: dict[str, Any]
    note: str | None = None

    @property
    def is_problem(self) -> bool:
        return self.kind == "problem"

    @property
    def is_aside(self) -> bool:
        """Not part of the file's content, so for stderr; gaps are no fault, compaction leaves them."""
        return self.kind in ("problem", "gap")

    @property
    def text(self) -> str:
        if self.note is not None:
            return self.note
        words = " ".join(f"{name}: {_shown(name, value)}" for name, value in self.fields.items())
        return f"| {words}" if self.kind == "record" else words

    @property
    def as_json(self) -> str:
        facts = self.fields if self.note is None or self.fields else {"text": self.note}
        return json.dumps({"kind": self.kind, **facts}, ensure_ascii=False)


# What Java prints for an OptionalLong.
_OPTIONAL: Final = ("deleteHorizonMs", "currentTxnFirstOffset")


def _shown(name: str, value: Any) -> str:
    if name in _OPTIONAL:
        return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{','.join(map(str, value))}]"
    return str(value)


def _note(text: str, **fields: Any) -> Line:
    return Line("note", fields, text)


def _problem(text: str, **fields: Any) -> Line:
    return Line("problem", fields, text)


def dump(files: Files, path: str, options: DumpOptions | None = None) -> Iterator[Line]:
    """The lines of one file.  Raises DiskFault."""
    options = options or DumpOptions()
    yield Line("file", {"path": path}, f"Dumping {path}")
    name = path.rpartition("/")[2]
    plain = name
    for mark in (DELETED, SWAP, CLEANED):
        plain = plain.removesuffix(mark)
    stem, dot, kind = plain.rpartition(".")
    kinds: dict[str, Callable[[Files, str, int, DumpOptions], Iterator[Line]]] = {
        LOG: _dump_log,
        INDEX: _dump_index,
        TIME_INDEX: _dump_time_index,
        TXN_INDEX: _dump_txn_index,
        SNAPSHOT: _dump_snapshot,
    }
    if dot + kind in kinds and stem.isdecimal():
        yield from kinds[dot + kind](files, path, int(stem), options)
    elif name in _OFFSET_CHECKPOINTS:
        yield from _dump_checkpoint(files, path, ("topic", "partition", "offset"))
    elif name == LEADER_EPOCHS:
        yield from _dump_checkpoint(files, path, ("epoch", "startOffset"))
    elif name in (META_PROPERTIES, PARTITION_METADATA):
        yield from _dump_properties(files, path)
    else:
        yield _problem(f"Ignoring unknown file {path}", path=path)


# -- segments ---------------------------------------------------------------------------------------


def _dump_log(files: Files, path: str, base_offset: int, options: DumpOptions) -> Iterator[Line]:
    yield _note(f"Log starting offset: {base_offset}", startingOffset=base_offset)
    batches = StoredBatches(files, files.open_to_read(path), options.max_bytes)
    gaps: list[tuple[int, int]] = []
    last_offset: int | None = None
    for position, batch in batches:
        yield _batch_line(position, batch)
        if not options.deep:
            continue
        try:
            records = _records(batch)
        except RecordError as error:
            yield _problem(f"{path}, position {position}: {error}", path=path, position=position)
            continue
        for record in records:
            if last_offset is not None and record.offset != last_offset + 1:
                gaps.append((last_offset, record.offset))
            last_offset = record.offset
            if (line := _record_line(batch, record, options)) is not None:
                yield line
    if batches.fault is not None and options.max_bytes is None:
        left = batches.size_bytes - batches.position
        yield _note(
            f"Found {left} invalid bytes at the end of {path.rpartition('/')[2]}",
            path=path,
            position=batches.position,
            invalidBytes=left,
            fault=batches.fault,
        )
    if gaps:
        yield Line("gap", {"path": path}, f"Non-consecutive offsets in {path}")
    for first, second in gaps:
        fields = {"path": path, "first": first, "second": second}
        yield Line("gap", fields, f"  {first} is followed by {second}")


def _batch_line(position: int, batch: RecordBatch | LegacyEntry) -> Line:
    if isinstance(batch, LegacyEntry):
        codec = batch.attributes & 7
        return Line(
            "batch",
            {
                "offset": batch.offset,
                "position": position,
                _time_name(batch): batch.timestamp,
                "size": batch.size_bytes,
                "magic": batch.magic,
                "compresscodec": _codec_name(codec),
                "crc": batch.crc,
                "isvalid": batch.is_valid,
            },
        )
    return Line(
        "batch",
        {
            "baseOffset": batch.base_offset,
            "lastOffset": batch.last_offset,
            "count": batch.record_count,
            "baseSequence": batch.base_sequence,
            "lastSequence": batch.last_sequence,
            "producerId": batch.producer_id,
            "producerEpoch": batch.producer_epoch,
            "partitionLeaderEpoch": batch.leader_epoch,
            "isTransactional": batch.is_transactional,
            "isControl": batch.is_control,
            "deleteHorizonMs": batch.delete_horizon_ms,
            "position": position,
            _time_name(batch): batch.max_timestamp,
            "size": batch.size_bytes,
            "magic": batch.magic,
            "compresscodec": _codec_name(batch.attributes & 7),
            "crc": batch.crc,
            "isvalid": crc_fault(batch) is None,
        },
    )


def _time_name(batch: RecordBatch | LegacyEntry) -> str:
    if batch.magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if batch.attributes & 8 else "CreateTime"


def _codec_name(codec: int) -> str:
    return Codec(codec).name.lower() if codec in Codec._value2member_map_ else f"unknown({codec})"


def _records(batch: RecordBatch | LegacyEntry) -> list[Record]:
    if isinstance(batch, LegacyEntry):
        return read_message_set(batch.view, limit=DECOMPRESSED_BYTES_MAX).records
    return kernel.decode(
        plain_payload(batch),
        batch.record_count,
        batch.base_offset,
        batch.base_timestamp,
        batch.log_append_time,
    )


def _record_line(batch: RecordBatch | LegacyEntry, record: Record, options: DumpOptions) -> Line | None:
    fields: dict[str, Any] = {}
    is_control = isinstance(batch, RecordBatch) and batch.is_control
    if not options.skip_record_metadata:
        fields = {
            "offset": record.offset,
            _time_name(batch): record.timestamp,
            "keySize": -1 if record.key is None else len(record.key),
            "valueSize": -1 if record.value is None else len(record.value),
        }
        if isinstance(batch, RecordBatch):
            delta = record.offset - batch.base_offset
            sequence = batch.base_sequence
            fields["sequence"] = sequence if sequence < 0 else (sequence + delta) & _SEQUENCE_MASK
            fields["headerKeys"] = [name for name, _ in record.headers]
            if is_control:
                fields |= _marker_fields(batch)
    elif is_control:
        return None
    if options.print_data_log and not is_control:
        key, value = options.decoder(record)
        if key is not None:
            fields["key"] = key
        if value is not None:
            fields["payload"] = value
    return Line("record", fields)


def _marker_fields(batch: RecordBatch) -> dict[str, Any]:
    try:
        marker = read_end_txn_marker(batch)
    except RecordError as error:
        return {"controlType": f"MALFORMED({error})"}
    if marker is None:
        return {"controlType": "UNKNOWN"}
    kind = ControlType.COMMIT if marker.committed else ControlType.ABORT
    return {"endTxnMarker": kind.name, "coordinatorEpoch": marker.coordinator_epoch}


# -- indexes ----------------------------------------------------------------------------------------


def _dump_index(files: Files, path: str, base_offset: int, options: DumpOptions) -> Iterator[Line]:
    entries = load_offset_index(files, path, base_offset)
    if not entries:
        yield _note(f"{path} is empty.", path=path)
        return
    if options.index_sanity_check:
        yield _sanity_line(path, sanity_fault(entries))
        return
    lasts = {position: each.last_offset for position, each in _shallow(files, path)}
    wrong: list[tuple[int, int]] = []
    for offset, position in entries:
        actual = lasts.get(position, -1)
        if actual != offset:
            wrong.append((offset, actual))
        if not options.verify_index_only:
            yield Line("index", {"offset": offset, "position": position})
    yield from _mismatches(
        f"Mismatches in :{path}", "  Index offset: {}, log offset: {}", path, "offset", wrong
    )


def _dump_time_index(files: Files, path: str, base_offset: int, options: DumpOptions) -> Iterator[Line]:
    entries = load_time_index(files, path, base_offset)
    if options.index_sanity_check:
        yield _sanity_line(path, sanity_fault(entries))
        return
    largest: dict[int, int] = {}
    for _, each in _shallow(files, path):
        largest[each.last_offset] = each.max_timestamp
    wrong_times: list[tuple[int, int]] = []
    not_found: list[tuple[int, int]] = []
    unordered: list[tuple[int, int]] = []
    before = -1
    for timestamp, offset in entries:
        if offset not in largest:
            not_found.append((offset, min((last for last in largest if last >= offset), default=-1)))
        elif largest[offset] != timestamp:
            wrong_times.append((timestamp, largest[offset]))
        if before >= timestamp:
            unordered.append((timestamp, before))
        before = timestamp
        if not options.verify_index_only:
            yield Line("timeindex", {"timestamp": timestamp, "offset": offset})
    yield from _mismatches(
        f"Found timestamp mismatch in :{path}",
        "  Index timestamp: {}, log timestamp: {}",
        path,
        "timestamp",
        wrong_times,
    )
    yield from _mismatches(
        f"Found out of order timestamp in :{path}",
        "  Index timestamp: {}, Previously indexed timestamp: {}",
        path,
        "order",
        unordered,
    )
    yield from _mismatches(
        f"The following indexed offsets are not found in the log in :{path}",
        "Indexed offset: {}, found log offset: {}",
        path,
        "missing",
        not_found,
    )


def _mismatches(head: str, form: str, path: str, kind: str, pairs: list[tuple[int, int]]) -> Iterator[Line]:
    if pairs:
        yield _problem(head, path=path, mismatch=kind)
    for indexed, found in pairs:
        yield _problem(form.format(indexed, found), path=path, mismatch=kind, indexed=indexed, found=found)


def _sanity_line(path: str, fault: str | None) -> Line:
    if fault is None:
        return _note(f"{path} passed sanity check.", path=path)
    return _problem(f"{path}: the index does not rise: {fault}", path=path)


class _Shallow(NamedTuple):
    last_offset: int
    max_timestamp: int


def _shallow(files: Files, index_path: str) -> Iterator[tuple[int, _Shallow]]:
    """Position, last offset and largest time of the batches in the segment that an index belongs to."""
    log_path = index_path.rpartition("/")[0] + "/" + index_path.rpartition("/")[2].partition(".")[0] + LOG
    for position, batch in StoredBatches(files, files.open_to_read(log_path)):
        if isinstance(batch, LegacyEntry):
            yield position, _Shallow(batch.offset, batch.timestamp)
        else:
            yield position, _Shallow(batch.last_offset, batch.max_timestamp)


def _dump_txn_index(files: Files, path: str, base_offset: int, options: DumpOptions) -> Iterator[Line]:
    for aborted in load_aborted(files, path):
        yield Line(
            "aborted",
            {
                "version": 0,
                "producerId": aborted.producer_id,
                "firstOffset": aborted.first_offset,
                "lastOffset": aborted.last_offset,
                "lastStableOffset": aborted.last_stable_offset,
            },
        )


# -- small files ------------------------------------------------------------------------------------


def _load(files: Files, path: str) -> bytes:
    content = files.load(path)
    if content is None:
        raise DiskFault(path, "No such file or directory")
    return content


def _dump_snapshot(files: Files, path: str, base_offset: int, options: DumpOptions) -> Iterator[Line]:
    try:
        entries = decode_snapshot(path, _load(files, path))
    except CorruptSnapshot as error:
        yield _problem(str(error), path=path)
        return
    for entry in entries:
        fields = {
            "producerId": entry.producer_id,
            "producerEpoch": entry.epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": (
                None if entry.transaction_first_offset < 0 else entry.transaction_first_offset
            ),
            "lastTimestamp": entry.last_timestamp,
        }
        for seen in entry.batches[:1]:
            fields |= {
                "firstSequence": seen.first_sequence,
                "lastSequence": seen.last_sequence,
                "lastOffset": seen.last_offset,
                "offsetDelta": seen.offset_delta,
                "timestamp": seen.timestamp,
            }
        yield Line("producer", fields)


def _dump_checkpoint(files: Files, path: str, names: tuple[str, ...]) -> Iterator[Line]:
    for words in parse_checkpoint(path, _load(files, path), len(names)):
        yield Line(
            "checkpoint",
            {name: word if name == "topic" else int(word) for name, word in zip(names, words, strict=True)},
        )


def _dump_properties(files: Files, path: str) -> Iterator[Line]:
    text = _load(files, path).decode("utf-8", "replace").replace(": ", "=")
    yield Line("properties", dict(parse_properties(text.splitlines())))
