"""Files of a batch, published once: what plain readers of a folder see is exact, also after kill -9.

Every batch is staged beside the table, then decided, then published:

    <parent>/.<table>.staging/<writer>/<run>/<batch>/…    files as Spark wrote them, apart for every run
    <table>/_barnabas/<writer>/<batch>.json         the decision: which staged file becomes which file
    <table>/<partition>/<writer>-<query>-<batch>-<n>.parquet
    <table>/_barnabas/<writer>/<batch>.done

L1  before the decision nothing of a batch is in the table; staging is thrown away and made again
L2  after the decision nothing is computed again: a replay moves the files that are still staged
L3  a row is in at most one file of the table at any time; a file is replaced only by one with its rows, too
L4  one query writes under one name: another checkpoint, or an older state of it, is refused
L5  a batch is decided once, whoever else runs: tasks of a killed driver may write for a while, into the
    folder of its own run, and of two drivers the one that comes second to a decision ends

Readers skip names with _ and . in front (Spark, Hive, Arrow), and the staging folder is outside of the table.
With `file_size` the newest file of a partition grows (L3) until it is as large: few files instead of many.
"""

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import unquote

from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.landing_files import NEW, Files, Found, sibling

__all__ = ["Decision", "Landing", "Part", "Tables", "partition_values"]

JOURNAL: Final = "_barnabas"
Part = tuple[str, Sequence[str]]
"""A folder, and files below it whose partitions are counted from there."""
_KEPT: Final = 3
_TAILS_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a staged batch."""

    query: str
    batch: int
    staged: str = ""
    """The folder of the staged files, relative to that of the writer."""
    moves: list[tuple[str, str]] = field(default_factory=list)
    """Staged file -> file of the table, both relative to their folders."""
    sizes: dict[str, int] = field(default_factory=dict)
    """File of the table -> bytes."""
    rows: dict[str, int] = field(default_factory=dict)
    """File of the table -> rows; filled where the table's format wants to know."""
    tails: dict[str, str] = field(default_factory=dict)
    """Partition folder -> its file that may still grow."""

    def to_json(self) -> str:
        names = ("query", "batch", "staged", "moves", "sizes", "rows", "tails")
        return json.dumps({name: getattr(self, name) for name in names})

    @classmethod
    def from_json(cls, text: str) -> "Decision":
        found = json.loads(text)
        moves = [(str(staged), str(final)) for staged, final in found.pop("moves")]
        found.setdefault("staged", str(found["batch"]))  # once, all runs shared one folder
        return cls(moves=moves, **found)


class Tables(Protocol):
    """Who writes and reads Parquet; see landing_spark.py."""

    def write(self, rows: Any, folder: str) -> None:
        """Rows as files below a folder, in folders of their partitions; nothing for no rows."""

    def merge(self, old: Part, new: Part, folder: str) -> None:
        """The rows of files below two folders together, one file for each partition, below a third."""

    def counts(self, folder: str) -> dict[str, int]:
        """Path of each file below a folder -> its rows."""


class Landing:
    """Writes the batches of one query into one table.  One caller at a time, batch after batch."""

    def __init__(
        self,
        files: Files,
        tables: Tables,
        table: str,
        *,
        writer: str,
        query: str,
        file_size: int | None = None,
        staging: str | None = None,
        counted: bool = False,
        commit: Callable[[Decision, Any], None] | None = None,
    ) -> None:
        """`commit` makes moved files count, where the folder alone does not; it may be called again.

        `counted` puts the rows of every file into the decision.
        """
        table = table.rstrip("/")
        name = table.rpartition("/")[2]
        self._files = files
        self._tables = tables
        self._table = table
        self._writer = writer
        self._query = query
        self._file_size = file_size
        self._staging = f"{(staging or sibling(table, f'.{name}.staging')).rstrip('/')}/{writer}"
        self._run = uuid.uuid4().hex[:12]
        self._journal = f"{table}/{JOURNAL}/{writer}"
        self._counted = counted
        self._commit = commit
        self._last: Decision | None = None
        self._published = -1
        self._is_open = False

    def take(self, rows: Any, batch: int) -> None:
        """Lands a batch, or finishes one that was decided before.  Raises PipelineError."""
        self._open()
        if self._last is not None and self._last.batch == batch:
            self._publish(self._last, rows)  # L2; a second time is harmless
            return
        if self._last is not None and self._last.batch > batch:
            raise PipelineError(
                f"{self._table} holds batch {self._last.batch} of {self._writer}, and the checkpoint begins "
                f"again with {batch}: it was rolled back; put its newer state back, or land in another folder"
            )
        if self._last is not None:
            self._publish(self._last, rows)  # done already, unless Spark went on without our word
        decision = self._stage(rows, batch)
        if decision is None:
            return
        if not self._files.put_new(self._entry(batch), decision.to_json()):  # L5
            raise PipelineError(
                f"another process landed batch {batch} of {self._writer} in {self._table} just now, from the "
                "same checkpoint; stop one of them"
            )
        self._last = decision
        self._publish(decision, rows)

    def _open(self) -> None:
        """Finds the last decision of an earlier run, which must be ours."""
        if self._is_open:
            return
        names = [name.removesuffix(".json") for name in self._files.names(self._journal)]
        batches = sorted(int(name) for name in names if name.isdigit())
        if batches:
            text = self._files.read(self._entry(batches[-1]))
            assert text is not None, "it was listed"
            last = Decision.from_json(text)
            if last.query != self._query:  # L4
                raise PipelineError(
                    f"{self._table} was landed by {self._writer} with another checkpoint, and its records "
                    f"would land twice; give that checkpoint, land in another folder, or remove "
                    f"{self._journal} to go on all the same"
                )
            self._last = last
        self._tidy(names)
        self._is_open = True

    def _tidy(self, names: list[str]) -> None:
        """Removes what earlier runs had no time to finish, but not the files of a decision."""
        needed = self._last.staged.partition("/")[0] if self._last is not None else None
        for run in self._files.names(self._staging):
            if run != needed:
                self._files.remove(f"{self._staging}/{run}")
        for name in names:
            if name.endswith(NEW):
                self._files.remove(f"{self._journal}/{name}")

    def _stage(self, rows: Any, batch: int) -> Decision | None:
        """The batch in the staging folder; None when it has no rows."""
        folder = f"{self._staging}/{self._run}/{batch}"
        self._files.remove(folder)
        first = f"{folder}/new"
        self._tables.write(rows, first)
        staged = self._parquet(first)
        if not staged:
            self._files.remove(folder)
            return None
        tails = dict(self._last.tails) if self._last is not None and self._file_size else {}
        kept = [each for each in staged if _folder(each.path) not in tails]
        moves = [(f"new/{each.path}", each) for each in kept]
        grown: dict[str, str] = {}
        if len(kept) < len(staged):
            grown = {
                place: tails[place] for place in {_folder(each.path) for each in staged} if place in tails
            }
            touched = [f"{first}/{each.path}" for each in staged if _folder(each.path) in grown]
            old = [f"{self._table}/{tail}" for tail in grown.values()]
            self._tables.merge((self._table, old), (first, touched), f"{folder}/grown")
            moves += [(f"grown/{each.path}", each) for each in self._parquet(f"{folder}/grown")]
        return self._decide(batch, moves, grown, tails)

    def _decide(
        self,
        batch: int,
        staged: list[tuple[str, Found]],
        grown: dict[str, str],
        tails: dict[str, str],
    ) -> Decision:
        decision = Decision(self._query, batch, f"{self._run}/{batch}")
        waiting = dict(grown)
        for number, (source, each) in enumerate(staged):
            place = _folder(each.path)
            fresh = f"{self._writer}-{self._query[:8]}-{batch:09d}-{number:05d}.parquet"
            # A grown file takes the place of the one whose rows it holds (L3).
            target = waiting.pop(place, None) if source.startswith("grown/") else None
            target = target or (f"{place}/{fresh}" if place else fresh)
            decision.moves.append((source, target))
            decision.sizes[target] = each.size
            if self._file_size is not None:
                tails.pop(place, None)
                if each.size < self._file_size:
                    tails[place] = target
        assert not waiting, f"L3: rows of {waiting} would be there twice"
        decision.tails.update(dict(list(tails.items())[-_TAILS_MAX:]))
        if self._counted:
            folder = f"{self._staging}/{decision.staged}"
            tops = sorted({source.partition("/")[0] for source, _ in decision.moves})
            found = {
                f"{top}/{path}": rows
                for top in tops
                for path, rows in self._tables.counts(f"{folder}/{top}").items()
            }
            decision.rows.update({target: found[source] for source, target in decision.moves})
        return decision

    def _publish(self, decision: Decision, rows: Any) -> None:
        if self._published == decision.batch:
            return
        folder = f"{self._staging}/{decision.staged}"
        mark = self._mark(decision.batch)
        if self._files.exists(mark):
            self._published = decision.batch
            self._files.remove(folder)
            return
        for staged, target in decision.moves:
            source = f"{folder}/{staged}"
            if self._files.exists(source):
                self._files.move(source, f"{self._table}/{target}")
            elif not self._files.exists(f"{self._table}/{target}"):
                raise PipelineError(
                    f"{self._table}/{target} is gone, and so is its staged copy {source}: somebody removed "
                    "both while the batch was being published"
                )
        if self._commit is not None:
            self._commit(decision, rows)
        self._files.put(mark, "")
        self._published = decision.batch
        self._files.remove(folder)
        self._forget(decision.batch)

    def _forget(self, newest: int) -> None:
        for name in self._files.names(self._journal):
            number, _, kind = name.partition(".")
            if number.isdigit() and int(number) <= newest - _KEPT and kind in ("json", "done"):
                self._files.remove(f"{self._journal}/{name}")

    def _parquet(self, folder: str) -> list[Found]:
        return [each for each in self._files.walk(folder) if each.path.endswith(".parquet")]

    def _entry(self, batch: int) -> str:
        return f"{self._journal}/{batch}.json"

    def _mark(self, batch: int) -> str:
        return f"{self._journal}/{batch}.done"


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def partition_values(path: str) -> dict[str, str | None]:
    """The values in the folders of a file: date=2026-01-01/region=eu/x.parquet."""
    values: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, _, value = part.partition("=")
        values[unquote(name)] = None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)
    return values
