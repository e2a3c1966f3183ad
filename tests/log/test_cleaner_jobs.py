"""The pieces of a compaction, one by one, as a thread runs them."""

import threading
from pathlib import Path

import pytest

from barnabas.base.clock import ManualClock
from barnabas.log.cleaner_jobs import (
    CleaningStats,
    GroupJob,
    ListJob,
    MapJob,
    Source,
    Stopped,
    SyncJob,
    Throttle,
    Workplace,
)
from barnabas.log.cleaner_plan import GroupMember
from barnabas.log.cleaner_rewrite import BatchCleaner
from barnabas.log.cleaner_transactions import CleanedTransactions
from barnabas.log.errors import CorruptSegment, DiskFault
from barnabas.log.files import OsFiles
from barnabas.log.layout import CLEANED
from barnabas.log.offset_map import BYTES_PER_SLOT, OffsetMap
from barnabas.log.segment import Segment
from tests.log._compaction import Bench, QuickFiles


class TestThrottle:
    def test_bytes_cost_time(self) -> None:
        clock = ManualClock()
        throttle = Throttle(clock, 1000)
        assert throttle.debt_s(500) == 0.5
        assert throttle.debt_s(500) == 1.0
        clock.advance(1000)
        assert throttle.debt_s(0) == 0

    def test_idle_time_is_not_saved_up(self) -> None:
        clock = ManualClock()
        throttle = Throttle(clock, 1000)
        clock.advance(10_000)
        assert throttle.debt_s(1000) == 1.0

    def test_without_a_limit_nothing_waits(self) -> None:
        assert Throttle(ManualClock(), 1.7976931348623157e308).debt_s(10**12) < 1e-9


@pytest.fixture
def place() -> Workplace:
    clock = ManualClock()
    throttle = Throttle(clock, 1.7976931348623157e308)
    return Workplace(QuickFiles(), clock, throttle, CleaningStats(0, 0), threading.Event())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    made.write(("a", "1"), ("b", "1"))
    made.write(("a", "2"))
    made.roll()
    made.write(("c", "1"))
    return made


def source(bench: Bench, *, start: int = 0) -> Source:
    first, second = bench.log.segments
    return Source(first.path, start, first.size_bytes, second.base_offset)


def group_job(
    place: Workplace, bench: Bench, offsets: OffsetMap, transactions: CleanedTransactions
) -> GroupJob:
    cleaner = BatchCleaner(
        offsets, transactions, now_ms=0, delete_retention_ms=0, last_records={}, end_offset=3
    )
    cleaned = Segment(place.files, bench.log.folder, 0, suffix=CLEANED)
    return GroupJob(place, [source(bench)], cleaned, cleaner, transactions, write_bytes=4096)


class TestTheMap:
    def test_learns_every_key_up_to_the_next_segment(self, place: Workplace, bench: Bench) -> None:
        offsets = OffsetMap(10_000)
        job = MapJob(place, source(bench), offsets, CleanedTransactions())
        job.run()
        assert (job.error, job.full) == (None, False)
        assert (offsets.get(b"a"), offsets.get(b"b"), offsets.latest_offset) == (2, 1, 2)
        assert place.stats.map_bytes_read == bench.log.segments[0].size_bytes

    def test_stops_when_it_is_full(self, place: Workplace, bench: Bench) -> None:
        offsets = OffsetMap(3 * BYTES_PER_SLOT, load_factor=0.4)
        job = MapJob(place, source(bench), offsets, CleanedTransactions())
        job.run()
        assert job.full
        assert offsets.latest_offset == 0

    def test_passes_over_what_is_clean(self, place: Workplace, bench: Bench) -> None:
        place.stats.first_dirty_offset = 2
        offsets = OffsetMap(10_000)
        MapJob(place, source(bench), offsets, CleanedTransactions()).run()
        assert (offsets.get(b"a"), offsets.get(b"b")) == (2, -1)

    def test_keeps_what_went_wrong(self, place: Workplace, bench: Bench) -> None:
        path = bench.log.segments[0].path
        with open(path, "r+b") as file:
            file.seek(100)
            file.write(b"\xff\xff")
        job = MapJob(place, source(bench), OffsetMap(1000), CleanedTransactions())
        job.run()
        assert isinstance(job.error, CorruptSegment)
        assert job.error.path == path


class TestTheGroup:
    def test_writes_what_stays_and_syncs_it(self, place: Workplace, bench: Bench) -> None:
        offsets, transactions = OffsetMap(10_000), CleanedTransactions()
        MapJob(place, source(bench), offsets, CleanedTransactions()).run()
        job = group_job(place, bench, offsets, transactions)
        job.run()
        assert job.error is None
        assert place.stats.records_read == 3
        assert place.stats.records_written == 2
        assert job.cleaned.next_offset == 3
        names = {path.name for path in Path(bench.log.folder).glob("*.cleaned")}
        assert names == {f"{'0' * 20}.{kind}.cleaned" for kind in ("log", "index", "timeindex")}
        job.discard()
        assert not list(Path(bench.log.folder).glob("*.cleaned"))

    def test_names_the_batch_that_is_malformed(self, place: Workplace, bench: Bench) -> None:
        job = group_job(place, bench, OffsetMap(1000), CleanedTransactions())
        Path(bench.log.segments[0].path).write_bytes(b"x" * bench.log.segments[0].size_bytes)
        job.run()
        assert isinstance(job.error, CorruptSegment)
        assert job.error.position == 0

    def test_stops_when_told_to(self, tmp_path: Path, place: Workplace) -> None:
        bench = Bench(tmp_path)
        for _ in range(2):
            bench.write(*((f"{number}", "x" * 1000) for number in range(700)))
        bench.roll()
        place.stop.set()
        job = MapJob(place, source(bench), OffsetMap(100_000), CleanedTransactions())
        job.run()
        assert isinstance(job.error, Stopped)


class TestSmallJobs:
    def test_a_listing_knows_the_size_of_indexes(self, place: Workplace, bench: Bench) -> None:
        job = ListJob(place, bench.log.folder)
        job.run()
        first = bench.log.segments[0]
        assert job.member(first) == GroupMember(0, first.size_bytes, 0, 12)

    def test_a_folder_that_is_gone_is_an_error_for_later(self, place: Workplace) -> None:
        place.files = OsFiles()
        listing, sync = ListJob(place, "/nowhere/at/all"), SyncJob(place, "/nowhere/at/all")
        listing.run()
        sync.run()
        assert isinstance(listing.error, DiskFault)
        assert isinstance(sync.error, DiskFault)
