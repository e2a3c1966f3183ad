"""The queue between fetcher and poll: order, positions, sessions, transactions, and bytes that are wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.types import TopicPartition
from barnabas.client.fetched import Fetched, FetchQueue, spans_of
from barnabas.client.subscription import PartitionState
from barnabas.records.batch import seal_batch
from barnabas.records.builder import end_txn_marker
from barnabas.records.codecs import Codec
from barnabas.records.errors import CorruptBatch
from barnabas.records.legacy import write_message_set
from barnabas.records.record import Record
from tests.client._records import batch, values_of


class Kit:
    """A queue and the partitions in it; `add` does what the fetcher does with an answer."""

    def __init__(self) -> None:
        self.room = 0
        self.errors: list[Fetched] = []
        self.unreadable: list[PartitionState] = []
        self.queue = FetchQueue(
            check_crc=True,
            on_room=self.on_room,
            on_error=self.errors.append,
            on_unreadable=self.unreadable.append,
        )

    def on_room(self) -> None:
        self.room += 1

    def state(self, partition: int = 0, offset: int = 0) -> PartitionState:
        state = PartitionState(TopicPartition("t", partition))
        state.seek(offset)
        return state

    def add(
        self, state: PartitionState, data: bytes, *, aborted: list[tuple[int, int]] | None = None
    ) -> None:
        for span in spans_of(memoryview(data)):
            self.queue.add(
                Fetched(
                    state,
                    session=state.session,
                    fetch_offset=state.fetch_offset,
                    next_offset=span.next_offset,
                    records=span.records,
                    leader_epoch=span.leader_epoch,
                    aborted=aborted,
                )
            )
            state.fetch_offset = span.next_offset


class TestSpans:
    def test_the_last_batch_says_where_to_fetch_next(self) -> None:
        data = batch([b"a", b"b"], base_offset=5, leader_epoch=1) + batch(
            [b"c"], base_offset=7, leader_epoch=2
        )
        (span,) = spans_of(memoryview(data))
        assert (span.next_offset, span.leader_epoch, len(span.records)) == (8, 2, len(data))

    @given(st.integers(1, 200))
    def test_a_cut_batch_at_the_end_is_left_out(self, cut: int) -> None:
        first, second = batch([b"a"], base_offset=5), batch([b"b" * 150], base_offset=6)
        (span,) = spans_of(memoryview(first + second[:cut]))
        assert span.next_offset == 6
        assert bytes(span.records) == first

    def test_old_and_new_formats_are_kept_apart(self) -> None:
        old = bytes(write_message_set([Record(0, 1, None, b"old")], magic=1, codec=Codec.NONE))
        spans = spans_of(memoryview(old + batch([b"new"], base_offset=1)))
        assert [span.next_offset for span in spans] == [1, 2]

    def test_framing_that_makes_no_sense_is_refused(self) -> None:
        data = bytearray(batch([b"a"]))
        data[8:12] = (3).to_bytes(4, "big")
        with pytest.raises(CorruptBatch, match="15 bytes of magic 2"):
            spans_of(memoryview(bytes(data)))

    def test_nothing_at_all_is_no_span(self) -> None:
        assert spans_of(memoryview(b"")) == []


class TestTaking:
    def test_records_come_in_order_with_their_place(self) -> None:
        kit = Kit()
        state = kit.state(3)
        kit.add(state, batch([b"a", b"b"], leader_epoch=4) + batch([b"c"], base_offset=2))
        records = kit.queue.take(10)
        assert [(r.topic, r.partition, r.offset, r.value) for r in records] == [
            ("t", 3, 0, b"a"),
            ("t", 3, 1, b"b"),
            ("t", 3, 2, b"c"),
        ]
        assert records[0].leader_epoch == 4
        assert state.position == 3

    @given(st.lists(st.integers(1, 7), min_size=1, max_size=8), st.integers(1, 9))
    def test_how_many_are_taken_at_a_time_changes_nothing(self, sizes: list[int], limit: int) -> None:
        kit = Kit()
        state, offset = kit.state(), 0
        for size in sizes:
            kit.add(state, batch([b"%d" % n for n in range(offset, offset + size)], base_offset=offset))
            offset += size
        seen: list[bytes | None] = []
        while records := kit.queue.take(limit):
            assert len(records) <= limit
            assert state.position == records[-1].offset + 1
            seen += values_of(records)
        assert seen == [b"%d" % n for n in range(offset)]
        assert kit.queue.queued_bytes == 0

    def test_records_below_the_position_are_not_handed_out(self) -> None:
        kit = Kit()
        kit.add(kit.state(offset=2), batch([b"a", b"b", b"c"]))
        assert values_of(kit.queue.take(10)) == [b"c"]

    @pytest.mark.parametrize("codec", Codec)
    def test_every_codec_is_read(self, codec: Codec) -> None:
        kit = Kit()
        kit.add(kit.state(), batch([b"x" * 100] * 50, codec=codec))
        assert len(kit.queue.take(100)) == 50

    def test_a_batch_that_compaction_emptied_is_passed(self) -> None:
        kit = Kit()
        state = kit.state()
        data = bytearray(batch([b"a"])[:61])
        data[8:12] = (49).to_bytes(4, "big")
        data[23:27] = (4).to_bytes(4, "big")  # last offset delta
        data[57:61] = (0).to_bytes(4, "big")  # no record left
        seal_batch(data, 0, 61)
        kit.add(state, bytes(data))
        assert kit.queue.take(10) == []
        assert state.position == 5

    def test_old_formats_are_read(self) -> None:
        kit = Kit()
        state = kit.state(offset=1)
        old = write_message_set(
            [Record(0, 1, None, b"a"), Record(1, 1, b"k", b"b")], magic=1, codec=Codec.NONE
        )
        kit.add(state, bytes(old))
        (record,) = kit.queue.take(10)
        assert (record.topic, record.partition, record.offset, record.value) == ("t", 0, 1, b"b")


def end_marker(offset: int, *, committed: bool) -> bytes:
    return bytes(
        end_txn_marker(
            committed=committed,
            coordinator_epoch=0,
            timestamp=0,
            producer_id=9,
            producer_epoch=0,
            base_offset=offset,
        )
    )


class TestTransactions:
    def test_control_batches_are_never_handed_out(self) -> None:
        kit = Kit()
        state = kit.state()
        marker = end_marker(1, committed=True)
        kit.add(state, batch([b"a"], producer_id=9, producer_epoch=0, base_sequence=0) + marker)
        assert values_of(kit.queue.take(10)) == [b"a"]
        assert kit.queue.take(10) == []
        assert state.position == 2

    def test_aborted_records_are_left_out_from_their_first_offset_to_the_marker(self) -> None:
        kit = Kit()

        def txn(value: bytes, offset: int) -> bytes:
            return batch(
                [value],
                base_offset=offset,
                producer_id=9,
                producer_epoch=0,
                base_sequence=offset,
                transactional=True,
            )

        marker = end_marker(2, committed=False)
        data = txn(b"dead", 0) + batch([b"plain"], base_offset=1) + marker + txn(b"alive", 3)
        kit.add(kit.state(), data, aborted=[(9, 0)])
        assert values_of(kit.queue.take(10)) == [b"plain", b"alive"]


class TestSessions:
    def test_a_seek_drops_what_was_fetched_before(self) -> None:
        kit = Kit()
        state = kit.state()
        kit.add(state, batch([b"a", b"b"]))
        state.seek(1)
        kit.add(state, batch([b"B"], base_offset=1))
        assert values_of(kit.queue.take(10)) == [b"B"]
        assert kit.queue.queued_bytes == 0

    def test_a_seek_in_the_middle_of_a_batch_counts_at_once(self) -> None:
        kit = Kit()
        state = kit.state()
        kit.add(state, batch([b"a", b"b", b"c"]))
        assert values_of(kit.queue.take(1)) == [b"a"]
        state.seek(0)
        assert kit.queue.take(10) == []

    def test_a_paused_partition_is_kept_for_later(self) -> None:
        kit = Kit()
        paused, other = kit.state(0), kit.state(1)
        kit.add(paused, batch([b"a", b"b"]))
        kit.add(other, batch([b"x"]))
        assert values_of(kit.queue.take(1)) == [b"a"]
        paused.pause(True)
        assert values_of(kit.queue.take(10)) == [b"x"]
        kit.add(paused, batch([b"c"], base_offset=2))
        assert kit.queue.take(10) == []
        paused.pause(False)
        kit.queue.has_changed = True
        assert values_of(kit.queue.take(10)) == [b"b", b"c"]

    def test_what_was_kept_of_a_partition_that_went_gives_its_room_back(self) -> None:
        kit = Kit()
        state = kit.state()
        kit.add(state, batch([b"a"]))
        state.pause(True)
        assert kit.queue.take(10) == []
        state.take_away()
        kit.queue.has_changed = True
        assert kit.queue.take(10) == []
        assert kit.queue.queued_bytes == 0

    def test_room_is_told_when_it_was_asked_for(self) -> None:
        kit = Kit()
        kit.add(kit.state(), batch([b"a"]))
        kit.queue.wants_room = True
        kit.queue.take(10)
        assert kit.room == 1


class TestFaults:
    def test_an_error_waits_for_the_bytes_before_it(self) -> None:
        kit = Kit()
        state = kit.state()
        kit.add(state, batch([b"a", b"b"]))
        failed = Fetched(
            state, session=state.session, fetch_offset=2, next_offset=2, records=memoryview(b""), error_code=1
        )
        kit.queue.add(failed)
        assert values_of(kit.queue.take(1)) == [b"a"]
        assert kit.errors == []
        assert values_of(kit.queue.take(9)) == [b"b"]
        kit.queue.take(9)
        assert kit.errors == [failed]

    def test_a_batch_with_a_wrong_checksum_is_an_error_in_front_of_it(self) -> None:
        kit = Kit()
        state = kit.state()
        bad = bytearray(batch([b"bad"], base_offset=1))
        bad[-1] ^= 1
        kit.add(state, batch([b"a"]) + bytes(bad) + batch([b"c"], base_offset=2))
        assert values_of(kit.queue.take(10)) == [b"a"]
        with pytest.raises(CorruptBatch, match="batch at offset 1: the stored CRC"):
            kit.queue.take(10)
        assert state.position == 1
        assert kit.unreadable == [state]
        assert kit.queue.take(10) == [], "nothing behind it is handed out"

    def test_without_the_check_a_wrong_checksum_passes(self) -> None:
        queue = FetchQueue(check_crc=False, on_room=lambda: None, on_error=print, on_unreadable=print)
        kit = Kit()
        kit.queue = queue
        bad = bytearray(batch([b"a"]))
        bad[17] ^= 1
        kit.add(kit.state(), bytes(bad))
        assert values_of(queue.take(1)) == [b"a"]


def test_whole_fetches_can_be_taken_for_columns() -> None:
    kit = Kit()
    state = kit.state()
    kit.add(state, batch([b"a", b"b"]))
    kit.add(state, batch([b"c"], base_offset=2))
    assert values_of(kit.queue.take(1)) == [b"a"]
    fetched = kit.queue.take_fetched()
    assert fetched is not None
    assert (fetched.fetch_offset, fetched.next_offset) == (0, 2)
    assert kit.queue.take_fetched() is not None
    assert kit.queue.take_fetched() is None
    assert kit.queue.queued_bytes == 0
