"""A data folder with a bit of everything, for the tools."""

from pathlib import Path

from barnabas.base.types import TopicPartition
from barnabas.log.checkpoints import MetaProperties, write_meta_properties, write_offsets, write_topic_id
from barnabas.log.config import LogConfig
from barnabas.log.layout import CLEANER_OFFSETS, META_PROPERTIES, PARTITION_METADATA, RECOVERY_POINTS
from barnabas.records.builder import build_batch
from barnabas.records.codecs import Codec
from tests.log._compaction import Bench
from tests.log._make import append

DENSE = LogConfig(compact=True, delete=False, min_cleanable_dirty_ratio=0, index_interval_bytes=100)


def sample_folder(folder: Path, *, cleaned: bool = False) -> Path:
    """A closed data folder with one partition of three segments; returns the partition's folder."""
    bench = Bench(folder, DENSE)
    bench.write(("a", "1"), ("b", "2"))
    for codec in Codec:
        bench.write(("c", "1" * 60), ("d", None), codec=codec)
    bench.write(("t", "aborted"), producer_id=7, transactional=True)
    bench.end(7, committed=False)
    bench.roll()
    bench.write(("t", "committed"), ("u", "x"), producer_id=7, transactional=True)
    bench.end(7, committed=True)
    bench.write(("e", "1"), producer_id=9)
    headers = (("h1", b"1"), ("h2", None))
    append(bench.log, memoryview(build_batch([(bench.clock.now_ms() + 5, b"k\xff", "ü".encode(), headers)])))
    bench.roll()
    if cleaned:
        bench.clean()
    bench.write(("z", "1"))
    bench.log.close(now_ms=bench.clock.now_ms())
    files, partition = bench.files, TopicPartition("topic", 0)
    write_topic_id(files, f"{folder}/topic-0/{PARTITION_METADATA}", bytes(range(16)))
    write_meta_properties(files, f"{folder}/{META_PROPERTIES}", MetaProperties(1, "cluster"))
    write_offsets(files, f"{folder}/{RECOVERY_POINTS}", {partition: bench.log.log_end_offset})
    write_offsets(files, f"{folder}/{CLEANER_OFFSETS}", {partition: 3})
    return folder / "topic-0"
