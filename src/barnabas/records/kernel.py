"""The record kernel: the code that looks at records one by one, compiled where it could be built.

`Kernel` is what both twins promise; `_kernel` (Cython) and `_kernel_plain` meet it and one test-suite.
BARNABAS_KERNEL=plain or =compiled picks at import; else the compiled twin serves if it is there.
`IMPLEMENTATION` says which one runs.

A payload is the uncompressed records area of a batch v2, any contiguous buffer; `count` is the record
count of its header.  Every function raises MalformedRecord, an InvalidRecord, for bytes that are not
`count` whole records, and reads nothing outside the buffer.  Functions over more than 64 KiB that make
no object per record give up the GIL in the compiled twin, so a thread may run them beside the loop.
"""

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Protocol, cast

from barnabas.base.environment import switch
from barnabas.records import _kernel_plain
from barnabas.records._kernel_plain import Checked
from barnabas.records._walk_plain import INT64_MIN, Data, Header

if TYPE_CHECKING:
    from barnabas.records._columns_plain import BinaryColumn, HeaderColumn, TimeColumn
    from barnabas.records._kernel_plain import ColumnBuilder, OffsetMap, PayloadBuilder, Record

__all__ = [
    "IMPLEMENTATION",
    "Checked",
    "ColumnBuilder",
    "Kernel",
    "OffsetMap",
    "PayloadBuilder",
    "Record",
    "check",
    "decode",
    "encode",
    "filter",
    "keys",
    "load",
    "place",
    "row_sum",
]


class Kernel(Protocol):
    """What a kernel module provides."""

    @property
    def Record(self) -> type[_kernel_plain.Record]: ...

    @property
    def PayloadBuilder(self) -> type[_kernel_plain.PayloadBuilder]: ...

    @property
    def ColumnBuilder(self) -> type[_kernel_plain.ColumnBuilder]: ...

    @property
    def OffsetMap(self) -> type[_kernel_plain.OffsetMap]: ...

    def decode(
        self,
        payload: Data,
        count: int,
        base_offset: int,
        base_timestamp: int,
        log_append_time: int | None = None,
        *,
        start_offset: int = INT64_MIN,
        topic: str | None = None,
        partition: int = -1,
        leader_epoch: int = -1,
    ) -> list[_kernel_plain.Record]:
        """The records as objects, without those below `start_offset`.

        `log_append_time`, unless None, replaces every timestamp.  Topic, partition and leader epoch are
        the same for all of them.  Header keys that are not UTF-8 have U+FFFD in place of the bad bytes.
        """

    def check(
        self, payload: Data, count: int, base_timestamp: int = 0, *, consecutive: bool = True
    ) -> Checked:
        """Walk all records as the broker must before it stores them, and say what they hold.

        Refuses offset deltas other than 0, 1, 2, …; with `consecutive` off, those that do not rise.
        """

    def encode(self, records: Iterable[tuple[int, Data | None, Data | None, Iterable[Header]]]) -> bytearray:
        """The payload of (timestamp, key, value, headers) records, offset deltas 0, 1, 2, …

        The base timestamp is that of the first record.  Raises as `PayloadBuilder.append`.
        """

    def keys(
        self, payload: Data, count: int, base_offset: int
    ) -> list[tuple[int, bytes | None, bool, int, int]]:
        """What compaction asks of each record: offset, key, value is null, byte position, byte size."""

    def filter(
        self, payload: Data, count: int, keep: Data, timestamp_shift: int = 0
    ) -> tuple[bytearray, int]:
        """The payload of the records whose byte in `keep` is not 0, and their count.

        They are copied as they are, so base offset and base timestamp of the batch stay.  When the base
        timestamp moves (a delete horizon takes its place), `timestamp_shift` is old base minus new.
        """

    def place(
        self,
        rows: int,
        partition_count: int,
        keys: "BinaryColumn | None" = None,
        chosen: "TimeColumn | None" = None,
    ) -> tuple[bytearray, list[tuple[int, int, int]]]:
        """Rows of columns in the order of their partitions, and (partition, first, behind the last) of each.

        `chosen`, numbers of partitions, decides; where it is null, the key does as Kafka's default
        partitioner; rows without either come first, as partition -1.  The order is the numbers of the rows,
        int32, and keeps the order of a partition's rows.  Raises Misuse for partitions that are not there.
        """

    def row_sum(
        self,
        rows: int,
        keys: "BinaryColumn | None" = None,
        values: "BinaryColumn | None" = None,
        headers: "HeaderColumn | None" = None,
        seed: int = 0,
    ) -> int:
        """A 64-bit sum over rows: the same for the same rows in any order, most likely another else.

        Both twins, and every version of them, agree on it.
        """


def load(name: str | None = None) -> Kernel:
    """The kernel called `plain` or `compiled`; with None the compiled one if it was built.

    Raises ImportError, with what to do, when a kernel that was asked for is not there.
    """
    if name not in (None, "plain", "compiled"):
        raise ImportError(f"BARNABAS_KERNEL is {name!r}; it may be 'plain' or 'compiled'")
    if name != "plain":
        try:
            return cast(Kernel, importlib.import_module("barnabas.records._kernel"))
        except ImportError as error:
            if name == "compiled":
                raise ImportError(
                    "BARNABAS_KERNEL=compiled, but the extension barnabas.records._kernel is not usable "
                    f"({error}); install again with a C compiler and Cython at hand, or unset the variable"
                ) from error
    return _kernel_plain


_chosen: Final = load(switch("BARNABAS_KERNEL"))
IMPLEMENTATION: Final = "plain" if _chosen is _kernel_plain else "compiled"

if not TYPE_CHECKING:
    ColumnBuilder = _chosen.ColumnBuilder
    OffsetMap = _chosen.OffsetMap
    PayloadBuilder = _chosen.PayloadBuilder
    Record = _chosen.Record
check = _chosen.check
decode = _chosen.decode
encode = _chosen.encode
filter = _chosen.filter
keys = _chosen.keys
place = _chosen.place
row_sum = _chosen.row_sum
