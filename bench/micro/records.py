"""How fast single records are handled: objects, building, Arrow columns, checks; with ratios.

Run `python -m bench.micro.records [--seconds S]`.  One core, one process, everything in memory: 100-byte
values, 10-byte keys, batches of 1,000 records unless a row says otherwise.  Rows of one task take turns, so
that the load of the machine falls on all of them; a figure is the best of its turns.  `aim` is the ratio or
rate that the project asks for.  Both sides of a ratio keep what they make: a list of records, a batch.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from aiokafka.record._crecords.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from barnabas.records import columns, columns_out
from barnabas.records.batch import HEADER_BYTES, RecordBatch, patch_batch, split_batches
from barnabas.records.builder import BatchBuilder, build_batch
from barnabas.records.codecs import Codec
from barnabas.records.kernel import Kernel, load

COUNT = 1000
COLUMN_COUNT = 100_000
NOW = 1_700_000_000_000
ROWS: list[Any] = [(NOW + i, b"key-%06d" % i, b"v" * 100, ()) for i in range(COUNT)]


class Task(NamedTuple):
    name: str
    records: int  # handled by one call
    run: Callable[[], object]
    against: str = ""  # the task that it is compared with
    aim: float = 0.0  # ratio to `against`, or million records/s without


def rates(tasks: Sequence[Task], seconds: float) -> dict[str, float]:
    """Records per second of each task, the best of turns that go round."""
    best = dict.fromkeys((task.name for task in tasks), 0.0)
    calls = {}
    for task in tasks:
        begin = time.perf_counter()
        task.run()
        calls[task.name] = max(1, int(0.02 / (time.perf_counter() - begin)))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for task in tasks:
            begin = time.perf_counter()
            for _ in range(calls[task.name]):
                task.run()
            rate = task.records * calls[task.name] / (time.perf_counter() - begin)
            best[task.name] = max(best[task.name], rate)
    return best


def show(title: str, tasks: Sequence[Task], seconds: float) -> None:
    found = rates(tasks, seconds)
    print(f"\n{title}")
    for task in tasks:
        rate = found[task.name]
        line = f"  {task.name:<44}{rate / 1e6:>9.2f} M/s {1e9 / rate:>8.1f} ns"
        if task.against:
            ratio = rate / found[task.against]
            line += f" {ratio:>8.2f}x {task.against}"
            line += f" (aim {task.aim:g}x: {'met' if ratio >= task.aim else 'MISSED'})" if task.aim else ""
        elif task.aim:
            line += f"   aim {task.aim:g} M/s: {'met' if rate >= task.aim * 1e6 else 'MISSED'}"
        print(line)


def decoding(compiled: Kernel, plain: Kernel) -> list[Task]:
    batch = bytes(build_batch(ROWS))
    payload = batch[HEADER_BYTES:]
    make = partial(compiled.decode, payload, COUNT, 0, NOW, topic="topic", partition=0)

    def whole() -> object:
        view = RecordBatch(memoryview(batch))
        view.check()
        return compiled.decode(view.payload, view.record_count, view.base_offset, view.base_timestamp)

    def consume() -> None:
        for _ in make():
            pass

    def theirs() -> object:
        return list(DefaultRecordBatch(batch))

    def theirs_checked() -> object:
        read = DefaultRecordBatch(batch)
        read.validate_crc()
        return list(read)

    def theirs_consumed() -> None:
        for _ in DefaultRecordBatch(batch):
            pass

    return [
        Task("aiokafka compiled, a list", COUNT, theirs),
        Task("aiokafka compiled, a list, with CRC", COUNT, theirs_checked),
        Task("aiokafka compiled, each dropped at once", COUNT, theirs_consumed),
        Task("kernel decode, a list", COUNT, make, "aiokafka compiled, a list", 2.0),
        Task("kernel decode, a list, with CRC", COUNT, whole, "aiokafka compiled, a list, with CRC", 2.0),
        Task("kernel decode, a list gone through", COUNT, consume, "aiokafka compiled, each dropped at once"),
        Task("plain twin", COUNT, partial(plain.decode, payload, COUNT, 0, NOW)),
    ]


def building(compiled: Kernel, plain: Kernel) -> list[Task]:
    listed = [(i, *row[:3], []) for i, row in enumerate(ROWS)]

    def theirs() -> object:
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 2**30)
        append = builder.append
        for offset, timestamp, key, value, headers in listed:
            append(offset, timestamp, key, value, headers)
        return builder.build()

    def ours() -> object:
        builder = BatchBuilder(2**30)
        append = builder.append
        for timestamp, key, value, headers in ROWS:
            append(timestamp, key, value, headers)
        return builder.build()

    return [
        Task("aiokafka compiled builder", COUNT, theirs),
        Task("BatchBuilder", COUNT, ours, "aiokafka compiled builder", 2.0),
        Task("kernel encode, the payload alone", COUNT, partial(compiled.encode, ROWS)),
        Task("plain twin encode", COUNT, partial(plain.encode, ROWS)),
    ]


def table(value_bytes: int = 100, count: int = COLUMN_COUNT) -> Any:
    return pa.table(
        {
            "key": pa.array([b"key-%06d" % i for i in range(count)]),
            "value": pa.array([b"v" * value_bytes] * count),
            "timestamp": pa.array(range(NOW, NOW + count)),
        }
    )


def fetched(size_limit: int, codec: Codec, rows: Any = None) -> bytes:
    """What a broker would send for the table, in batches of about `size_limit`."""
    rows = table() if rows is None else rows
    out = columns_out.write_columns(rows, timestamp=NOW, size_limit=size_limit, codec=codec)
    log, offset = bytearray(), 0
    for batch in out:
        (view,) = split_batches(memoryview(batch))
        patch_batch(batch, 0, offset, 0)
        offset = view.record_count + offset
        log += batch
    return bytes(log)


def column_tasks() -> list[Task]:
    rows, count = table(), COLUMN_COUNT
    small, medium, large = (fetched(size, Codec.NONE) for size in (16_384, 130_000, 1_000_000))
    packed = fetched(1_000_000, Codec.LZ4)
    longer = table(1000, count // 10)
    long_small, long_medium = (fetched(size, Codec.NONE, longer) for size in (16_384, 130_000))

    def read(data: bytes, *names: str) -> object:
        return list(columns.read_columns(data, names or columns.DEFAULT_COLUMNS))

    def write(size_limit: int, codec: Codec = Codec.NONE) -> object:
        return list(columns_out.write_columns(rows, timestamp=NOW, size_limit=size_limit, codec=codec))

    return [
        Task("batches of 130 KB to all columns", count, partial(read, medium), aim=5),
        Task("batches of 16 KB to all columns", count, partial(read, small), aim=5),
        Task("batches of 1 MB to all columns", count, partial(read, large), aim=5),
        Task("batches of 1 MB to key and value", count, partial(read, large, "key", "value"), aim=5),
        Task("batches of 1 MB to offset and timestamp", count, partial(read, large, "offset", "timestamp")),
        Task("lz4 batches of 1 MB to all columns", count, partial(read, packed)),
        Task("1-KB records, batches of 16 KB", count // 10, partial(read, long_small)),
        Task("1-KB records, batches of 130 KB", count // 10, partial(read, long_medium)),
        Task("columns to batches of 16 KB", count, partial(write, 16_384), aim=5),
        Task("columns to batches of 1 MB", count, partial(write, 1_000_000), aim=5),
        Task("columns to lz4 batches of 1 MB", count, partial(write, 1_000_000, Codec.LZ4)),
    ]


def walking(compiled: Kernel, plain: Kernel) -> list[Task]:
    payload = bytes(compiled.encode(ROWS))
    mask = bytes(i % 2 for i in range(COUNT))
    one = bytes(compiled.encode(ROWS[:1]))
    offsets = compiled.OffsetMap(1_000_000, bytes(16), keys_max=900_000)
    return [
        Task("check", COUNT, partial(compiled.check, payload, COUNT, NOW), aim=20),
        Task("check, one record a batch", 1, partial(compiled.check, one, 1, NOW)),
        Task("check, plain twin", COUNT, partial(plain.check, payload, COUNT, NOW)),
        Task("keys, for compaction", COUNT, partial(compiled.keys, payload, COUNT, 0)),
        Task("offset map: put", COUNT, partial(offsets.put, payload, COUNT, 0)),
        Task("offset map: retain", COUNT, partial(offsets.retain, payload, COUNT, 0, tombstones=True)),
        Task("filter, every second record", COUNT, partial(compiled.filter, payload, COUNT, mask)),
        Task("filter with new timestamps", COUNT, partial(compiled.filter, payload, COUNT, mask, 12345)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each of the four tables")
    seconds = parser.parse_args().seconds
    compiled, plain = load("compiled"), load("plain")
    show("Batch of 1,000 to objects", decoding(compiled, plain), seconds)
    show("Objects to a batch of 1,000", building(compiled, plain), seconds)
    show(f"Arrow, {COLUMN_COUNT:,} records, CRC included", column_tasks(), seconds)
    show("Walks over a payload of 1,000", walking(compiled, plain), seconds)


if __name__ == "__main__":
    main()
