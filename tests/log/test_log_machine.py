"""A log against a plain list of batches, under everything that can happen to it, crashes included.

What must hold after every step: reading gives exactly the batches of the list; after a crash the log is a
prefix of the list that has all that was flushed; producers, transactions, epochs and times agree with it.
"""

import random
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.log.config import LogConfig
from barnabas.log.partition_log import Origin, PartitionLog
from barnabas.records.batch import RecordBatch
from tests.log._disk import LossyFiles
from tests.log._make import NOW_MS, PARTITION, batch, marker, read_batches

CONFIG = LogConfig(segment_bytes=2000, index_interval_bytes=200, file_delete_delay_ms=0)


@dataclass(frozen=True)
class Written:
    """One batch of the list."""

    offset: int
    count: int
    timestamp: int
    leader_epoch: int
    crc: int
    producer_id: int = -1
    last_sequence: int = -1
    transactional: bool = False
    committed: bool | None = None
    """For markers."""

    @property
    def end(self) -> int:
        return self.offset + self.count


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="log-machine-"))
        self.files = LossyFiles(str(self.root))
        self.model: list[Written] = []
        self.start = 0
        self.flushed = 0
        self.clock = NOW_MS
        self.epoch = 0
        self.next_sequences: dict[int, int] = {}
        self.log = self.open(clean=False)

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    def open(self, *, clean: bool, recovery_point: int | None = None) -> PartitionLog:
        return PartitionLog.open(
            self.files,
            str(self.root / "topic-0"),
            PARTITION,
            CONFIG,
            now_ms=self.clock,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=self.start,
        )

    @property
    def end(self) -> int:
        return self.log.log_end_offset

    # -- what happens --------------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (0, 0)

    @rule(
        count=st.integers(1, 4),
        size=st.sampled_from([5, 60, 300]),
        producer=st.sampled_from([-1, -1, 1, 2, 3, 4]),
        ms=st.integers(-5, 20),
    )
    def append(self, count: int, size: int, producer: int, ms: int) -> None:
        self.clock += max(ms, 0)
        sequence = self.next_sequences.get(producer, 0)
        data = batch(
            count,
            value_bytes=size,
            timestamp=self.clock + min(ms, 0),
            fill=len(self.model),
            producer_id=producer,
            epoch=0 if producer >= 0 else -1,
            sequence=sequence if producer >= 0 else -1,
            transactional=producer in (3, 4),
        )
        before = self.end
        result = self.log.append_as_leader(data, leader_epoch=self.epoch, now_ms=self.clock)
        assert (result.base_offset, result.last_offset) == (before, before + count - 1)
        stored = RecordBatch(data)
        last_sequence = stored.last_sequence
        if producer >= 0:
            self.next_sequences[producer] = last_sequence + 1
        self.model.append(
            Written(
                before,
                count,
                stored.max_timestamp,
                self.epoch,
                stored.crc,
                producer,
                last_sequence,
                producer in (3, 4),
            )
        )

    @rule(gap=st.integers(0, 30), counts=st.lists(st.integers(1, 4), min_size=1, max_size=12))
    def follow(self, gap: int, counts: list[int]) -> None:
        """What a leader whose log is compacted sends: several batches, with a gap before them."""
        sent = bytearray()
        offset = self.end + gap
        fresh: list[Written] = []
        for count in counts:
            data = batch(
                count, value_bytes=60, base_offset=offset, leader_epoch=self.epoch, timestamp=self.clock
            )
            fresh.append(Written(offset, count, self.clock, self.epoch, RecordBatch(data).crc))
            sent += data
            offset += count
        result = self.log.append_as_follower(memoryview(sent), now_ms=self.clock)
        assert result is not None
        assert self.end == offset
        self.model += fresh

    @rule(data=st.data())
    def read_between(self, data: st.DataObject) -> None:
        first = data.draw(st.integers(self.start, self.end))
        bound = data.draw(st.integers(first, self.end))
        found = self.log.read(first, max_bytes=data.draw(st.integers(1, 2000)), upper_bound=bound)
        inside = [each for each in self.model if each.end > first]
        if not inside or inside[0].end > bound:
            assert found == (None, first)
        else:
            assert found.slice is not None
            head = RecordBatch(memoryview(found.slice.read()))
            assert (head.base_offset, head.crc) == (inside[0].offset, inside[0].crc)
            assert inside[0].end <= found.next_offset <= bound

    @precondition(lambda self: any(batch.producer_id >= 0 for batch in self.model[-3:]))
    @rule(back=st.integers(0, 2))
    def send_again(self, back: int) -> None:
        recent = [each for each in self.model if each.producer_id >= 0 and each.committed is None][-3:]
        if back >= len(recent):
            return
        again = recent[-1 - back]
        entry = self.log.producers.producers.get(again.producer_id)
        if entry is None or again.last_sequence not in [seen.last_sequence for seen in entry.batches]:
            return
        data = batch(
            again.count,
            producer_id=again.producer_id,
            epoch=0,
            sequence=again.last_sequence - again.count + 1,
            transactional=again.transactional,
        )
        result = self.log.append_as_leader(data, leader_epoch=self.epoch, now_ms=self.clock)
        assert (result.duplicate, result.base_offset) == (True, again.offset)

    @rule(producer=st.sampled_from([3, 4]), committed=st.booleans())
    def end_transaction(self, producer: int, committed: bool) -> None:
        data = marker(producer, 0, committed=committed, timestamp=self.clock)
        before = self.end
        self.log.append_as_leader(data, leader_epoch=self.epoch, now_ms=self.clock, origin=Origin.COORDINATOR)
        crc = RecordBatch(data).crc
        self.model.append(Written(before, 1, self.clock, self.epoch, crc, producer, -1, True, committed))

    @rule()
    def roll(self) -> None:
        self.log.roll(self.clock)

    @rule()
    def flush(self) -> None:
        self.log.flush(now_ms=self.clock)
        self.flushed = self.end

    @rule()
    def lead_in_a_new_epoch(self) -> None:
        self.epoch += 1

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        kept = data.draw(st.integers(max(1, len(self.model) - 6), len(self.model)))
        to = self.model[kept - 1].end
        if to < self.start or to < self.log.segments[0].base_offset:
            return
        self.log.truncate_to(to, now_ms=self.clock)
        assert self.end == to
        del self.model[kept:]
        self.flushed = min(self.flushed, to)
        self.log.purge(self.clock)
        self.forget_sequences()

    @precondition(lambda self: self.end > self.start)
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.advance_log_start(self.start)
        self.log.delete_segments_below(self.start, now_ms=self.clock)
        self.log.purge(self.clock)
        self.drop_deleted()

    @rule()
    def stop_and_start(self) -> None:
        self.log.close(now_ms=self.clock)
        self.log = self.open(clean=True)
        assert self.log.recovery is not None
        assert self.log.recovery.scanned_bytes == 0
        self.flushed = self.end

    @rule(seed=st.integers(0, 2**32), knows_recovery_point=st.booleans())
    def crash(self, seed: int, knows_recovery_point: bool) -> None:
        # With the recovery point unknown, damage anywhere but in the last segment is an error by design
        # (loading's L2), so everything is made durable first.
        if not knows_recovery_point:
            self.log.flush(now_ms=self.clock)
            self.flushed = self.end
        recovery_point = self.log.recovery_point if knows_recovery_point else None
        self.files.crash(random.Random(seed))
        self.log = self.open(clean=False, recovery_point=recovery_point)
        assert self.flushed <= self.end, "what was flushed is there"
        assert self.start <= self.end, "the log start is never lost"
        survivors = [each for each in self.model if each.end <= self.end]
        # A batch is there whole or not at all.  (One that straddles the log start may be lost with all
        # behind it; the log then begins anew inside of it.)
        assert not [each for each in self.model if self.start <= each.offset < self.end < each.end]
        self.model = survivors
        self.drop_deleted()
        self.forget_sequences()

    def drop_deleted(self) -> None:
        first = self.log.segments[0].base_offset
        self.model = [each for each in self.model if each.offset >= first]

    def forget_sequences(self) -> None:
        """A producer goes on behind what the log has of it."""
        self.next_sequences = {
            producer: entry.last_sequence + 1 for producer, entry in self.log.producers.producers.items()
        }

    # -- what must hold ------------------------------------------------------------------------

    @invariant()
    def reading_gives_the_list(self) -> None:
        expected = [each for each in self.model if each.end > self.start]
        found = read_batches(self.log, max_bytes=700)
        assert [(each.base_offset, each.record_count, each.crc, each.leader_epoch) for each in found] == [
            (each.offset, each.count, each.crc, each.leader_epoch) for each in expected
        ]

    @invariant()
    def offsets_are_in_order(self) -> None:
        log = self.log
        assert log.log_start_offset == self.start <= log.log_end_offset
        assert log.recovery_point <= log.log_end_offset
        assert log.log_end_offset == (self.model[-1].end if self.model else log.log_end_offset)

    @invariant()
    def producers_agree(self) -> None:
        last: dict[int, Written] = {}
        for each in self.model:
            if each.producer_id >= 0 and each.committed is None:
                last[each.producer_id] = each
        for producer, written in last.items():
            entry = self.log.producers.producers[producer]
            assert (entry.last_sequence, entry.last_offset) == (written.last_sequence, written.end - 1)

    @invariant()
    def transactions_agree(self) -> None:
        ongoing: dict[int, int] = {}
        aborted: list[tuple[int, int]] = []
        for each in self.model:
            if not each.transactional:
                continue
            if each.committed is None:
                ongoing.setdefault(each.producer_id, each.offset)
            elif each.producer_id in ongoing:
                del ongoing[each.producer_id]
                if not each.committed:
                    aborted.append((each.producer_id, each.offset))
        first = self.log.segments[0].base_offset
        found = self.log.aborted_transactions(first, self.end)
        # A transaction that began in a deleted segment may be known to the log and not to the list.
        assert set(aborted) <= {(each.producer_id, each.last_offset) for each in found}
        assert all(self.log.producers.has_ongoing(producer) for producer in ongoing)

    @invariant()
    def times_are_found(self) -> None:
        if not self.model or self.start > self.model[0].offset:
            return
        for target in {self.model[0].timestamp, self.model[-1].timestamp, self.clock + 1}:
            expected = next((each.offset for each in self.model if each.timestamp >= target), None)
            found = self.log.offset_for_timestamp(target)
            assert (None if found is None else found.offset) == expected

    @invariant()
    def epochs_agree(self) -> None:
        for each in self.model[-3:]:
            assert self.log.epoch_at(each.offset) == each.leader_epoch or each.offset < self.start


@pytest.mark.slow
class TestLogMachine(LogMachine.TestCase):  # type: ignore[valid-type, misc]  # made at run time
    settings = settings(max_examples=50, stateful_step_count=40, deadline=None)


@pytest.mark.soak
@pytest.mark.timeout(3600)
class TestLogMachineSoak(LogMachine.TestCase):  # type: ignore[valid-type, misc]  # made at run time
    settings = settings(max_examples=1000, stateful_step_count=80, deadline=None)
