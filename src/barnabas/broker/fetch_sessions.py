"""Fetch sessions (KIP-227): the broker remembers what a consumer fetches, so that it names only changes.

F1  A session's epoch rises by one with each request, from 1; after 2**31-1 comes 1.
F2  A full answer lists every requested partition; an incremental one only those with news.
F3  At most `slots` sessions are remembered; the one unused for longest goes first, but not before
    it was idle for `eviction_ms` (then the newcomer gets no session and keeps sending full requests).

A session belongs to whoever knows its id.  One caller at a time; times are arguments.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from barnabas.base.types import ZERO_UUID, Uuid
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest, PartitionData

__all__ = ["FetchPlan", "FetchSession", "FetchSessions", "Wanted", "wanted_partitions"]

NO_SESSION = 0
FINAL_EPOCH = -1
INITIAL_EPOCH = 0
EPOCH_MAX = 2**31 - 1


@dataclass(slots=True)
class Wanted:
    """One partition that a fetch asks for, and what the answer before it said (in a session)."""

    topic: str
    topic_id: Uuid
    partition: int
    fetch_offset: int
    max_bytes: int
    leader_epoch: int = -1
    last_fetched_epoch: int = -1
    follower_log_start: int = -1
    sent_high_watermark: int = -1
    sent_log_start: int = -1

    def has_news(self, data: PartitionData) -> bool:
        """Whether an incremental answer must list this partition; remembers what is sent."""
        news = bool(
            data.records
            or data.error_code
            or data.high_watermark != self.sent_high_watermark
            or data.log_start_offset != self.sent_log_start
            or data.preferred_read_replica != -1
            or data.diverging_epoch is not None
        )
        # After an error the consumer does not trust the rest, so the next success counts as news.
        self.sent_high_watermark = -1 if data.error_code else data.high_watermark
        self.sent_log_start = -1 if data.error_code else data.log_start_offset
        return news


Key = tuple[str | Uuid, int]


def wanted_partitions(request: FetchRequest, *, by_id: bool) -> dict[Key, Wanted]:
    """What the request lists, in its order; a partition listed twice counts once, the last time."""
    wanted: dict[Key, Wanted] = {}
    for topic in request.topics:
        for part in topic.partitions:
            key: Key = (topic.topic_id if by_id else topic.topic, part.partition)
            wanted[key] = Wanted(
                topic="" if by_id else topic.topic,
                topic_id=topic.topic_id if by_id else ZERO_UUID,
                partition=part.partition,
                fetch_offset=part.fetch_offset,
                max_bytes=part.partition_max_bytes,
                leader_epoch=part.current_leader_epoch,
                last_fetched_epoch=part.last_fetched_epoch,
                follower_log_start=part.log_start_offset,
            )
    return wanted


class FetchSession:
    """What one consumer fetches."""

    __slots__ = ("by_id", "epoch", "id", "partitions", "used_ms")

    def __init__(
        self, session_id: int, partitions: Iterable[tuple[Key, Wanted]], *, by_id: bool, now_ms: int
    ) -> None:
        self.id = session_id
        self.epoch = 1
        self.by_id = by_id
        self.used_ms = now_ms
        self.partitions: OrderedDict[Key, Wanted] = OrderedDict(partitions)

    def update(self, request: FetchRequest) -> None:
        """Takes over the changes an incremental request names."""
        for key, new in wanted_partitions(request, by_id=self.by_id).items():
            old = self.partitions.get(key)
            if old is not None:
                new.sent_high_watermark, new.sent_log_start = old.sent_high_watermark, old.sent_log_start
            self.partitions[key] = new
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                self.partitions.pop((topic.topic_id if self.by_id else topic.topic, partition), None)

    def served(self, key: Key) -> None:
        """Data went out for this partition: it goes last next time, so that none starves."""
        if key in self.partitions:
            self.partitions.move_to_end(key)


@dataclass(slots=True)
class FetchPlan:
    """What one request fetches and how its answer is written."""

    wanted: dict[Key, Wanted]
    session: FetchSession | None = None
    session_id: int = NO_SESSION
    incremental: bool = False
    error: ErrorCode = ErrorCode.NONE


class FetchSessions:
    """The sessions of one broker.  `new_id` gives a random positive int32."""

    __slots__ = ("_eviction_ms", "_new_id", "_sessions", "_slots")

    def __init__(self, *, slots: int, eviction_ms: int = 120_000, new_id: Callable[[], int]) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._new_id = new_id
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(self, request: FetchRequest, *, by_id: bool, now_ms: int) -> FetchPlan:
        """Finds, makes, changes or closes the session that the request speaks of."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            wanted = wanted_partitions(request, by_id=by_id)
            if request.session_epoch == FINAL_EPOCH:
                return FetchPlan(wanted)
            session = self._create(wanted, by_id=by_id, now_ms=now_ms)
            return FetchPlan(wanted, session, session.id if session else NO_SESSION)
        return self._continue(request, by_id=by_id, now_ms=now_ms)

    def _continue(self, request: FetchRequest, *, by_id: bool, now_ms: int) -> FetchPlan:
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchPlan({}, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if request.session_epoch != session.epoch:
            return FetchPlan({}, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            return FetchPlan({}, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(request)
        session.used_ms = now_ms
        session.epoch = session.epoch + 1 if session.epoch < EPOCH_MAX else 1
        self._sessions.move_to_end(session.id)
        if not session.partitions:
            del self._sessions[session.id]
            return FetchPlan({})
        return FetchPlan(dict(session.partitions), session, session.id, incremental=True)

    def _create(self, wanted: dict[Key, Wanted], *, by_id: bool, now_ms: int) -> FetchSession | None:
        if not wanted or not self._make_room(now_ms):
            return None
        session_id = self._new_id()
        while session_id in self._sessions or session_id == NO_SESSION:
            session_id = self._new_id()
        session = FetchSession(session_id, wanted.items(), by_id=by_id, now_ms=now_ms)
        self._sessions[session_id] = session
        return session

    def _make_room(self, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms < self._eviction_ms:
            return False
        del self._sessions[oldest.id]
        return True
