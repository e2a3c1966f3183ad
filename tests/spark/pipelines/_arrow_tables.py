"""The tables of a landing by Arrow alone, so that the protocol can be tested without Spark."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from barnabas.spark.pipelines.landing import Part, partition_values

Row = Mapping[str, Any]


class ArrowTables:
    """Implements landing.Tables; a batch is a list of rows."""

    def __init__(self, partition_by: Sequence[str] = (), files_per_partition: int = 1) -> None:
        self._partition_by = list(partition_by)
        self._files = files_per_partition

    def write(self, rows: Sequence[Row], folder: str) -> None:
        by_place: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            by_place["/".join(f"{name}={row[name]}" for name in self._partition_by)].append(row)
        for place, held in by_place.items():
            for number in range(self._files):
                part = [
                    {k: v for k, v in row.items() if k not in self._partition_by}
                    for row in held[number :: self._files]
                ]
                if part:
                    at = Path(folder, place)
                    at.mkdir(parents=True, exist_ok=True)
                    pyarrow.parquet.write_table(
                        pa.Table.from_pylist(part), at / f"part-{number}.parquet", compression="none"
                    )

    def merge(self, old: Part, new: Part, folder: str) -> None:
        self.write([row for part in (old, new) for row in _rows(part)], folder)

    def counts(self, folder: str) -> dict[str, int]:
        return {
            str(file.relative_to(folder)): pyarrow.parquet.read_metadata(file).num_rows
            for file in Path(folder).rglob("*.parquet")
        }


def _rows(part: Part) -> list[Row]:
    base, files = part
    found: list[Row] = []
    for file in files:
        values = partition_values(str(Path(file).relative_to(base)))
        found += [{**row, **values} for row in pyarrow.parquet.ParquetFile(file).read().to_pylist()]
    return found


def plain_rows(table: str) -> list[int]:
    """The ids that a plain reader of the folder sees."""
    if not Path(table).exists():
        return []
    found = pyarrow.dataset.dataset(table, format="parquet", partitioning="hive").to_table()
    return [] if found.num_rows == 0 else sorted(found["id"].to_pylist())


def plain_files(table: str) -> list[str]:
    """What a glob for Parquet files finds."""
    return sorted(str(file.relative_to(table)) for file in Path(table).rglob("*.parquet"))
