"""Fetched bytes on their way to the user: queued as they came, decoded where they are taken.

F1  records of a partition are handed out in offset order, each once per session, none below its position
F2  after `take`, the positions are behind exactly what was handed out, and behind what is never handed out
    (control batches, aborted transactions, gaps of compaction) as soon as it was met
F3  an error stands in the queue behind the bytes that came before it

The loop's thread adds, one other thread takes: `deque` makes the hand-over safe without a lock, and nothing
crosses threads per record.  Decoding happens in the taking thread, a batch at a time, so that bytes that a
rebalance or a seek makes void are never decoded.
"""

from collections import deque
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from barnabas.client.subscription import UNKNOWN, PartitionState
from barnabas.records.batch import HEADER_BYTES, LENGTH_COUNTS_FROM, MAGIC, RecordBatch, iter_batches
from barnabas.records.columns import AbortedFilter
from barnabas.records.errors import CorruptBatch, RecordError
from barnabas.records.legacy import magic_of, read_message_set
from barnabas.records.record import Record

__all__ = ["PAYLOAD_BYTES_MAX", "FetchQueue", "Fetched", "Span", "spans_of"]

PAYLOAD_BYTES_MAX: Final = 512 << 20
"""What one batch may grow to when it is decompressed."""

_MAGIC_AT: Final = 16
_MESSAGE_BYTES_MIN: Final = 26
_unpack = Struct(">qiib").unpack_from  # base offset, length, leader epoch or CRC, magic
_last_offset_delta = Struct(">23xi").unpack_from


class Fetched:
    """The bytes of one partition from one fetch, or the error that came in their place."""

    __slots__ = (
        "aborted",
        "error_code",
        "fetch_offset",
        "leader_epoch",
        "next_offset",
        "records",
        "session",
        "size_bytes",
        "state",
    )

    def __init__(
        self,
        state: PartitionState,
        *,
        session: int,
        fetch_offset: int,
        next_offset: int,
        records: memoryview,
        leader_epoch: int = UNKNOWN,
        aborted: list[tuple[int, int]] | None = None,
        error_code: int = 0,
    ) -> None:
        self.state = state
        self.session = session
        self.fetch_offset = fetch_offset
        self.next_offset = next_offset
        self.records = records
        self.size_bytes = len(records)
        self.leader_epoch = leader_epoch  # of the last batch
        self.aborted = aborted
        self.error_code = error_code

    @property
    def is_void(self) -> bool:
        """Whether nobody may see it any more."""
        return self.state.is_taken_away or self.state.session != self.session


class Span(NamedTuple):
    """A run of whole batches, or of whole messages of an older format."""

    records: memoryview
    next_offset: int
    leader_epoch: int


def spans_of(records: memoryview) -> list[Span]:
    """The whole batches of a fetch, apart wherever the format changes; a cut one at the end is left out.

    Looks at one header per batch.  Raises CorruptBatch for framing that makes no sense.
    """
    spans: list[Span] = []
    position, start, end = 0, 0, len(records)
    is_old: bool | None = None
    next_offset, epoch = UNKNOWN, UNKNOWN
    while end - position > _MAGIC_AT:
        base, length, epoch_here, magic = _unpack(records, position)
        whole = length + LENGTH_COUNTS_FROM
        least = HEADER_BYTES if magic >= MAGIC else _MESSAGE_BYTES_MIN
        if whole < least or not 0 <= magic <= MAGIC:
            raise CorruptBatch(f"batch at offset {base}: {whole} bytes of magic {magic}")
        if end - position < whole:
            break
        if is_old is not None and (magic < MAGIC) is not is_old:
            spans.append(Span(records[start:position], next_offset, epoch))
            start = position
        is_old = magic < MAGIC
        if is_old:
            next_offset, epoch = base + 1, UNKNOWN
        else:
            next_offset, epoch = base + _last_offset_delta(records, position)[0] + 1, epoch_here
        position += whole
    if position > start:
        spans.append(Span(records[start:position], next_offset, epoch))
    return spans


class _Reading:
    """Decodes one Fetched, a batch at a time."""

    __slots__ = ("_batches", "_check_crc", "_filter", "fetched")

    def __init__(self, fetched: Fetched, check_crc: bool) -> None:
        self.fetched = fetched
        self._check_crc = check_crc
        self._filter = None if fetched.aborted is None else AbortedFilter(fetched.aborted)
        legacy = (magic_of(fetched.records) or 0) < MAGIC
        self._batches: Iterator[RecordBatch] | None = None if legacy else iter_batches(fetched.records)

    def next_batch(self) -> list[Record] | None:
        """The records of the next batch from the position on, possibly none; None behind the last batch.

        The position of the state is moved behind batches without records.  Raises RecordError.
        """
        state = self.fetched.state
        if self._batches is None:
            return self._legacy()
        batch = next(self._batches, None)
        if batch is None:
            return None
        if self._check_crc:
            batch.check()
        dropped = self._filter is not None and self._filter.drops(batch)
        records: list[Record] = []
        if batch.next_offset > state.position:
            if not (dropped or batch.is_control or batch.record_count == 0):
                topic, partition = state.topic_partition
                records = batch.records(
                    limit=PAYLOAD_BYTES_MAX, start_offset=state.position, topic=topic, partition=partition
                )
            if not records:
                state.position = batch.next_offset
                state.position_epoch = batch.leader_epoch
        return records

    def _legacy(self) -> list[Record] | None:
        if not self.fetched.records:
            return None
        topic, partition = self.fetched.state.topic_partition
        found = read_message_set(self.fetched.records, limit=PAYLOAD_BYTES_MAX).records
        self.fetched.records = memoryview(b"")
        return [
            Record(r.offset, r.timestamp, r.key, r.value, r.headers, topic, partition, r.timestamp_type)
            for r in found
            if r.offset >= self.fetched.state.position
        ]


class FetchQueue:
    """The queue between the fetcher and the one who polls.

    All but `add` is for the side that takes.  From there `on_room` is called when bytes were used up and the
    fetcher had asked to be told (`wants_room`); `on_error` with the Fetched whose turn it is when it holds an
    error code, and `on_unreadable` with the state of a partition of which nothing more can be decoded.
    """

    def __init__(
        self,
        *,
        check_crc: bool,
        on_room: Callable[[], None],
        on_error: Callable[[Fetched], object],
        on_unreadable: Callable[[PartitionState], object],
    ) -> None:
        self._check_crc = check_crc
        self._on_room = on_room
        self._on_error = on_error
        self._on_unreadable = on_unreadable
        self._queue: deque[Fetched] = deque()
        self._held: dict[PartitionState, list[Fetched]] = {}  # of paused partitions, oldest first
        self._reading: _Reading | None = None
        self._rest: list[Record] = []  # decoded and not handed out, of the Fetched being read
        self._rest_at = 0
        self._added_bytes = 0  # written by the loop only
        self._used_bytes = 0  # written by the taking side only
        self.wants_room = False
        self.has_changed = False
        """Set by the loop when partitions may have been opened or closed."""
        self.taken_records = 0
        self.taken_bytes = 0

    def __len__(self) -> int:
        return len(self._queue) + (self._reading is not None)

    @property
    def queued_bytes(self) -> int:
        return self._added_bytes - self._used_bytes

    def add(self, fetched: Fetched) -> None:
        """On the loop."""
        fetched.state.added_bytes += fetched.size_bytes
        self._added_bytes += fetched.size_bytes
        self._queue.append(fetched)

    def take(self, limit: int) -> list[Record]:
        """Up to `limit` records, in the taking thread.

        Raises RecordError for a batch that cannot be read, with the position still in front of it; records
        before it are handed out first.
        """
        taken: list[Record] = []
        if self.has_changed:
            self.has_changed = False
            self._release_held()
        while len(taken) < limit:
            if self._reading is None and not self._next():
                break
            reading = self._reading
            assert reading is not None, "a Fetched is being read"
            state = reading.fetched.state
            if not state.is_open or state.session != reading.fetched.session:
                self._put_back(reading.fetched)
                continue
            if not self._rest:
                try:
                    records = reading.next_batch()
                except RecordError:
                    if taken:
                        self._read_again(reading.fetched)
                        break
                    # Void at once, so that nothing behind it is handed out before the loop fetches anew.
                    state.session += 1
                    self._finish(reading.fetched)
                    self._on_unreadable(state)
                    raise
                if records is None:
                    state.position = max(state.position, reading.fetched.next_offset)
                    self._finish(reading.fetched)
                    continue
                if not records:
                    continue
                self._rest, self._rest_at = records, 0
            taken = self._hand_out(state, taken, limit)
        self.taken_records += len(taken)
        return taken

    def _hand_out(self, state: PartitionState, taken: list[Record], limit: int) -> list[Record]:
        rest, at = self._rest, self._rest_at
        wanted = limit - len(taken)
        if at == 0 and len(rest) <= wanted:
            part, self._rest = rest, []
        else:
            part = rest[at : at + wanted]
            self._rest_at = at + len(part)
            if self._rest_at == len(rest):
                self._rest = []
        last = part[-1]
        state.position = last.offset + 1
        state.position_epoch = last.leader_epoch
        if not taken:
            return part
        taken += part
        return taken

    def _next(self) -> bool:
        """Starts to read the next Fetched that may be handed out."""
        while self._queue:
            fetched = self._queue.popleft()
            if fetched.is_void:
                self._finish(fetched)
            elif not fetched.state.is_open:
                self._held.setdefault(fetched.state, []).append(fetched)
            elif fetched.error_code:
                self._finish(fetched)
                self._on_error(fetched)
            else:
                self._reading = _Reading(fetched, self._check_crc)
                return True
        return False

    def take_fetched(self) -> Fetched | None:
        """The next Fetched as it came, for readers of columns; the caller moves the position."""
        if self.has_changed:
            self.has_changed = False
            self._release_held()
        if self._reading is not None:
            self._read_again(self._reading.fetched)
        if not self._next():
            return None
        assert self._reading is not None, "a Fetched was found"
        fetched = self._reading.fetched
        self._finish(fetched)
        return fetched

    def _release_held(self) -> None:
        """What was held of partitions that are open again, or void, goes on."""
        for state, held in list(self._held.items()):
            if state.is_open or held[-1].is_void:
                del self._held[state]
                self._queue.extendleft(reversed(held))

    def _put_back(self, fetched: Fetched) -> None:
        """The partition was closed while its bytes were being read."""
        if fetched.is_void:
            self._finish(fetched)
        else:
            self._reading, self._rest = None, []
            self._held.setdefault(fetched.state, []).insert(0, fetched)

    def _read_again(self, fetched: Fetched) -> None:
        """Reading starts anew at the position: batches before it are skipped then."""
        self._reading, self._rest = None, []
        self._queue.appendleft(fetched)

    def _finish(self, fetched: Fetched) -> None:
        if self._reading is not None and self._reading.fetched is fetched:
            self._reading, self._rest = None, []
            self.taken_bytes += fetched.size_bytes
        fetched.state.used_bytes += fetched.size_bytes
        self._used_bytes += fetched.size_bytes
        if self.wants_room:
            self._on_room()
