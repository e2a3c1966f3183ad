"""One clean of one log: crashes at every point, full disks, throttling, and random histories."""

import asyncio
import contextlib
import itertools
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.base.buffers import SharedFile
from barnabas.log.cleaner import CleanerSettings
from barnabas.log.cleaner_run import Outcome
from barnabas.log.config import LogConfig
from barnabas.log.errors import DiskFault, DiskFull
from barnabas.log.files import Bytes
from barnabas.log.offset_map import BYTES_PER_SLOT
from barnabas.log.retention import enforce_retention
from barnabas.records.codecs import Codec
from tests.log import _killed_cleaner
from tests.log._compaction import (
    SMALL,
    Bench,
    Crash,
    CrashingFiles,
    QuickFiles,
    batches,
    committed,
    pairs,
    records,
    table,
)
from tests.log._disk import LossyFiles
from tests.log._make import NOW_MS, open_log

FOUR_GROUPS = LogConfig(
    compact=True, delete=False, min_cleanable_dirty_ratio=0.0, delete_retention_ms=0, segment_bytes=700
)


def write_history(bench: Bench) -> None:
    """Several segments with overwritten, deleted, aborted and committed records."""
    for number in range(12):
        bench.write((f"key-{number % 5}", f"value {number}"), ("always", f"{number}"))
        if number % 4 == 1:
            bench.write((f"key-{number % 3}", "aborted"), producer_id=7, transactional=True)
            bench.end(7, committed=False)
        if number % 4 == 2:
            bench.write(("committed", f"{number}"), producer_id=8, transactional=True)
            bench.end(8, committed=True)
        if number % 6 == 5:
            bench.write(("key-1", None))
        if number % 2:
            bench.roll()
    bench.write(("active", "1"))


class TestCrashes:
    def run_until(self, folder: Path, changes: int, config: LogConfig) -> tuple[Bench, bool]:
        """A clean that ends after so many changes of the disk; says whether it came to its end."""
        files = CrashingFiles()
        bench = Bench(folder, config, files=files)
        write_history(bench)
        files.left = changes
        try:
            bench.clean()
        except Crash:
            return bench, False
        return bench, True

    @pytest.mark.slow
    @pytest.mark.parametrize("config", [SMALL, FOUR_GROUPS], ids=["one group", "several groups"])
    def test_at_every_change_of_the_disk_the_readers_see_the_same(
        self, tmp_path: Path, config: LogConfig
    ) -> None:
        expected: dict[str, str] | None = None
        for changes in count():
            bench, finished = self.run_until(tmp_path / str(changes), changes, config)
            crashed_at = sorted(path.name for path in (bench.folder / "topic-0").iterdir())
            bench.reopen()
            seen = table(committed(bench.log))
            expected = expected or seen
            assert seen == expected, f"after {changes} changes: {crashed_at}"
            assert bench.log.log_end_offset == 39
            names = {path.suffix for path in (bench.folder / "topic-0").iterdir()}
            assert not names & {".cleaned", ".swap", ".deleted"}
            if finished:
                break
        assert changes > 15
        assert expected == {
            "active": "1",
            "always": "11",
            "committed": "10",
            **{f"key-{key}": f"value {value}" for key, value in ((0, 10), (2, 7), (3, 8), (4, 9))},
        }

    def test_what_a_crash_left_is_cleaned_again(self, tmp_path: Path) -> None:
        for changes in range(0, 60, 7):
            bench, _ = self.run_until(tmp_path / str(changes), changes, FOUR_GROUPS)
            bench.log.release()
            again = Bench(bench.folder, FOUR_GROUPS)
            again.clean()
            kept = [key for _, key, _ in pairs(records(again.log))]
            assert len(set(kept)) == len(kept), f"after {changes} changes"


@pytest.mark.slow
class TestChangesInTheMiddle:
    """Whatever happens to the log before or after any piece of work, readers never see what is gone."""

    def run(self, folder: Path, at: int, change: Callable[[Bench], None]) -> tuple[Bench, bool]:
        """A clean with a change just before its piece number `at`; says whether there was one."""
        bench = Bench(folder, FOUR_GROUPS)
        write_history(bench)
        cleaning = bench.cleaner.pick()
        assert cleaning is not None
        number = -1
        for number, work in enumerate(bench.cleaner.clean(cleaning)):
            if number == at:
                change(bench)
            work()
        assert cleaning.outcome in (Outcome.CLEANED, Outcome.ABORTED)
        assert not list((folder / "topic-0").glob("*.cleaned"))
        return bench, number >= at

    @pytest.mark.parametrize("offset", [3, 20, 38])
    def test_a_truncation(self, tmp_path: Path, offset: int) -> None:
        for at in itertools.count():
            bench, happened = self.run(
                tmp_path / str(at), at, lambda bench: bench.log.truncate_to(offset, now_ms=NOW_MS)
            )
            if not happened:
                break
            assert bench.log.log_end_offset <= offset
            assert all(record.offset < offset for record in records(bench.log))
            bench.write(("after", "1"))
            assert table(records(bench.log))["after"] == "1"
        assert at > 5

    def test_deleted_records(self, tmp_path: Path) -> None:
        def delete(bench: Bench) -> None:
            bench.log.advance_log_start(20)
            enforce_retention(bench.log, bench.files, high_watermark=39, now_ms=NOW_MS)

        for at in itertools.count():
            bench, happened = self.run(tmp_path / str(at), at, delete)
            if not happened:
                break
            assert bench.log.log_start_offset == 20
            assert table(records(bench.log))["active"] == "1"
        assert at > 5

    def test_everything_dropped(self, tmp_path: Path) -> None:
        for at in itertools.count():
            bench, happened = self.run(
                tmp_path / str(at),
                at,
                lambda bench: bench.log.truncate_fully_and_start_at(100, now_ms=NOW_MS),
            )
            if not happened:
                break
            assert (bench.log.log_start_offset, records(bench.log)) == (100, [])
        assert at > 5


class PowerlessFiles(LossyFiles, CrashingFiles):
    """A process that ends at a chosen change, on a machine that loses its power with it."""

    def __init__(self, root: str) -> None:
        LossyFiles.__init__(self, root)
        CrashingFiles.__init__(self)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_power_failure_at_every_change_loses_nothing_that_was_flushed(tmp_path: Path, seed: int) -> None:
    expected: dict[str, str] | None = None
    for changes in itertools.count(seed, 2):
        folder = tmp_path / str(changes)
        files = PowerlessFiles(str(folder))
        bench = Bench(folder, FOUR_GROUPS, files=files)
        write_history(bench)
        bench.log.flush(now_ms=bench.clock.now_ms())
        flushed = bench.log.log_end_offset
        files.left = changes
        with contextlib.suppress(Crash):
            bench.clean()
        finished, files.left = files.left > 0, 10**9
        files.crash(random.Random(seed * 1000 + changes))
        log = open_log(folder / "topic-0", FOUR_GROUPS, files=QuickFiles(), recovery_point=flushed)
        seen = table(committed(log))
        expected = expected or seen
        assert seen == expected, f"after {changes} changes"
        assert log.log_end_offset == flushed
        if finished:
            return


class FullFiles(QuickFiles):
    """A disk on which `room` more bytes can be written to compacted segments."""

    def __init__(self, fault: type[DiskFault] = DiskFull) -> None:
        self.room = 10**9
        self._fault = fault

    def append(self, file: SharedFile, position: int, buffers: Sequence[Bytes]) -> None:
        if ".cleaned" in file.path:
            self.room -= sum(map(len, buffers))
            if self.room < 0:
                raise self._fault(file.path, "No space left on device")
        super().append(file, position, buffers)


class TestDisks:
    def test_a_full_disk_postpones_the_clean(self, tmp_path: Path) -> None:
        files = FullFiles()
        bench = Bench(tmp_path, files=files)
        write_history(bench)
        before = records(bench.log)
        files.room = 100
        cleaning = bench.cleaner.pick()
        assert cleaning is not None
        assert bench.cleaner.clean_now(cleaning) is Outcome.ABORTED
        assert isinstance(cleaning.reason, DiskFull)
        assert records(bench.log) == before
        assert not list((tmp_path / "topic-0").glob("*.cleaned"))
        files.room = 10**9
        assert bench.clean()
        assert len(records(bench.log)) < len(before)

    def test_a_broken_disk_is_the_callers_to_know(self, tmp_path: Path) -> None:
        files = FullFiles(DiskFault)
        bench = Bench(tmp_path, files=files)
        write_history(bench)
        files.room = 100
        cleaning = bench.cleaner.pick()
        assert cleaning is not None
        with pytest.raises(DiskFault, match="No space left"):
            bench.cleaner.clean_now(cleaning)
        assert bench.cleaner.state.in_progress == ()


def test_a_throttled_clean_stops_at_once(tmp_path: Path) -> None:
    slow = CleanerSettings(io_max_bytes_per_second=1, io_buffer_bytes=4096)
    bench = Bench(tmp_path, settings=slow)
    for _ in range(2):
        bench.write(*((f"{number}", "x" * 1000) for number in range(600)))
    bench.roll()
    cleaning = bench.cleaner.pick()
    assert cleaning is not None

    async def main() -> None:
        for work in bench.cleaner.clean(cleaning):
            running = asyncio.ensure_future(asyncio.to_thread(work))
            await asyncio.sleep(0)
            bench.cleaner.abort_all()
            await running

    asyncio.run(main())
    assert cleaning.outcome is Outcome.ABORTED


def test_memory_for_keys_follows_the_dirty_range(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.write(("a", "1"))
    bench.roll()
    cleaning = bench.cleaner.pick()
    assert cleaning is not None
    assert bench.cleaner.clean_now(cleaning) is Outcome.CLEANED
    assert cleaning._offsets.memory_bytes < 100 * BYTES_PER_SLOT


# -- random histories ------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "c"])
WRITES = st.lists(st.tuples(KEYS, st.none() | st.integers(0, 9).map(str)), min_size=1, max_size=3)
TRANSACTORS = st.sampled_from([3, 4])
APPENDS = st.one_of(
    st.tuples(st.just("write"), WRITES, st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4])),
    st.tuples(st.just("transact"), TRANSACTORS, WRITES),
    st.tuples(st.just("transact"), TRANSACTORS, WRITES),
    st.tuples(st.just("end"), TRANSACTORS, st.booleans()),
    st.tuples(st.just("end"), TRANSACTORS, st.booleans()),
)
CHANGES = st.one_of(
    APPENDS,
    APPENDS,
    st.tuples(st.just("roll")),
    st.tuples(st.just("clean")),
    st.tuples(st.just("clean")),
    st.tuples(st.just("wait"), st.sampled_from([400, 1100])),
    st.tuples(st.just("expire")),
    st.tuples(st.just("reopen"), st.booleans()),
)
Change = tuple[object, ...]


class Model:
    """The same history in a list: committed records in order, and what transactions hold back."""

    def __init__(self) -> None:
        self.visible: list[tuple[int, str, str | None]] = []
        self.open: dict[int, list[tuple[int, str, str | None]]] = {}


def apply(bench: Bench, model: Model, change: Change, others: Iterator[Change]) -> None:
    match change:
        case ("write", list() as written, Codec() as codec):
            model.visible += [(bench.log.log_end_offset + n, *pair) for n, pair in enumerate(written)]
            bench.write(*written, codec=codec)
        case ("transact", int() as producer_id, list() as written):
            held = model.open.setdefault(producer_id, [])
            held += [(bench.log.log_end_offset + n, *pair) for n, pair in enumerate(written)]
            bench.write(*written, producer_id=producer_id, transactional=True)
        case ("end", int() as producer_id, bool() as is_commit):
            if producer_id in model.open:
                held = model.open.pop(producer_id)
                model.visible += held if is_commit else []
                bench.end(producer_id, committed=is_commit)
        case ("roll",):
            bench.roll()
        case ("wait", int() as ms):
            bench.clock.advance(ms)
        case ("expire",):
            bench.log.expire_producers(bench.clock.now_ms(), 1000)
            follow_sequences(bench)
        case ("reopen", bool() as crashed):
            bench.reopen(crashed=crashed)
            follow_sequences(bench)
        case ("clean",):
            bench.roll()
            clean_beside(bench, model, others)


def follow_sequences(bench: Bench) -> None:
    """Producers go on behind what the log remembers of them, which may be nothing or more than before."""
    known = bench.log.producers.producers
    for producer_id in (3, 4):
        bench.sequences[producer_id] = known[producer_id].last_sequence + 1 if producer_id in known else 0


def clean_beside(bench: Bench, model: Model, others: Iterator[Change]) -> bool:
    """Clean, with other changes between the steps; False when there is nothing to clean."""
    if (cleaning := bench.cleaner.pick()) is None:
        return False
    for work in bench.cleaner.clean(cleaning):
        work()
        if (other := next(others, None)) is not None:
            apply(bench, model, other, iter(()))
    assert cleaning.outcome is Outcome.CLEANED
    return True


def check(bench: Bench, model: Model) -> None:
    """Readers of committed data end with the model's table, and see only what was written."""
    open_from = min((held[0][0] for held in model.open.values()), default=bench.log.log_end_offset)
    seen = [row for row in pairs(committed(bench.log)) if row[0] < open_from]
    model_rows = [row for row in sorted(model.visible) if row[0] < open_from]
    assert set(seen) <= set(model_rows)
    assert [row[0] for row in seen] == sorted({row[0] for row in seen})
    last_seen: dict[str, str | None] = {key: value for _, key, value in seen}
    last_written: dict[str, str | None] = {key: value for _, key, value in model_rows}
    assert {k: v for k, v in last_seen.items() if v is not None} == {
        k: v for k, v in last_written.items() if v is not None
    }
    lasts = [each.last_offset for each in batches(bench.log)]
    assert lasts == sorted(set(lasts))


def run_history(changes: list[Change], others: list[Change], map_slots: int) -> None:
    """A history, with other appends between the steps of its cleans; the model is compared all the way."""
    with TemporaryDirectory() as folder:
        slots = CleanerSettings(dedupe_buffer_bytes=map_slots * BYTES_PER_SLOT)
        bench, model = Bench(Path(folder), settings=slots), Model()
        meanwhile = iter(others)
        for change in changes:
            apply(bench, model, change, meanwhile)
            check(bench, model)
        for producer_id in tuple(model.open):
            apply(bench, model, ("end", producer_id, True), meanwhile)
        bench.roll()
        while clean_beside(bench, model, iter(())):
            check(bench, model)
        kept = [key for _, key, _ in pairs(records(bench.log))]
        assert len(kept) == len(set(kept)), "each key once, and nothing that was aborted"
        bench.reopen()
        check(bench, model)


HISTORY = (
    st.lists(CHANGES, min_size=15, max_size=40),
    st.lists(APPENDS, max_size=20),
    st.sampled_from([3, 1000]),
)


@pytest.mark.slow
@settings(max_examples=100)
@given(*HISTORY)
def test_any_history_compacts_to_its_last_values_while_appends_go_on(
    changes: list[Change], others: list[Change], map_slots: int
) -> None:
    run_history(changes, others, map_slots)


@pytest.mark.soak
@settings(max_examples=2000)
@given(*HISTORY)
def test_very_many_histories_compact_to_their_last_values(
    changes: list[Change], others: list[Change], map_slots: int
) -> None:
    run_history(changes, others, map_slots)


# -- kill -9 ---------------------------------------------------------------------------------------


def outlive(folder: Path, seed: int, deaths: int) -> int:
    """Kill the worker again and again; after each death the log holds what was written.  Says how much."""
    chosen = random.Random(seed)
    end = 0
    for death in range(deaths):
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.log._killed_cleaner", str(folder), str(seed)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parents[2],
        )
        assert worker.stdout is not None
        written = end
        with worker.stdout as lines:
            for line in itertools.islice(lines, chosen.randrange(1, 400)):
                if line.startswith("written"):
                    written = int(line.split()[1])
            worker.kill()
        worker.wait()
        log = open_log(folder / "topic-0", _killed_cleaner.CONFIG, files=QuickFiles())
        end = log.log_end_offset
        assert end >= written, f"seed {seed}, death {death}"
        expected: dict[str, str | None] = dict(_killed_cleaner.record(seed, offset) for offset in range(end))
        alive = {key: value for key, value in expected.items() if value is not None}
        assert table(committed(log)) == alive, f"seed {seed}, death {death}"
        log.release()
    return end


@pytest.mark.slow
def test_a_killed_cleaner_loses_nothing(tmp_path: Path) -> None:
    assert outlive(tmp_path, seed=1, deaths=5) > 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 22))
def test_a_cleaner_killed_again_and_again_loses_nothing(tmp_path: Path, seed: int) -> None:
    outlive(tmp_path, seed, deaths=20)
