"""barnabas.broker.fetch_sessions: KIP-227 by its rules (F1, F2, F3), then over the wire (WIRE 2.8)."""

import itertools
from collections.abc import Iterator

import pytest

from barnabas.base.types import ZERO_UUID
from barnabas.broker.fetch_sessions import FetchPlan, FetchSessions, Wanted, wanted_partitions
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from barnabas.testing import Broker
from tests.broker._calls import batch, offsets, produce, topic_id_of
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeTopic

EVICTION_MS = 1_000
EPOCH_MAX = 2**31 - 1


def request(
    *partitions: tuple[str, int, int],
    session_id: int = 0,
    epoch: int = 0,
    forgotten: tuple[tuple[str, int], ...] = (),
) -> FetchRequest:
    """A fetch of (topic, partition, offset); a topic of 16 letters doubles as an id."""
    return FetchRequest(
        min_bytes=0,
        max_wait_ms=0,
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(
                topic=topic,
                topic_id=topic.encode() if len(topic) == 16 else ZERO_UUID,
                partitions=[
                    FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
                ],
            )
            for topic, index, offset in partitions
        ],
        forgotten_topics_data=[ForgottenTopic(topic=topic, partitions=[index]) for topic, index in forgotten],
    )


def make_sessions(slots: int = 2) -> FetchSessions:
    numbers = itertools.count(100)
    return FetchSessions(slots=slots, eviction_ms=EVICTION_MS, new_id=lambda: next(numbers))


def plan(sessions: FetchSessions, wanted: FetchRequest, *, now_ms: int = 0, by_id: bool = False) -> FetchPlan:
    return sessions.plan(wanted, by_id=by_id, now_ms=now_ms)


def keys(made: FetchPlan) -> list[object]:
    return list(made.wanted)


class TestFullRequests:
    def test_epoch_0_makes_a_session(self) -> None:
        sessions = make_sessions()
        made = plan(sessions, request(("a", 0, 5), ("a", 1, 6)))
        assert (made.session_id, made.incremental, made.error) == (100, False, 0)
        assert keys(made) == [("a", 0), ("a", 1)]
        assert len(sessions) == 1

    def test_epoch_minus_1_makes_none_and_ends_the_named_one(self) -> None:
        sessions = make_sessions()
        plan(sessions, request(("a", 0, 0)))
        made = plan(sessions, request(("a", 0, 0), session_id=100, epoch=-1))
        assert (made.session, made.session_id) == (None, 0)
        assert len(sessions) == 0

    def test_epoch_0_ends_the_named_one_before_it_makes_another(self) -> None:
        sessions = make_sessions(slots=1)
        plan(sessions, request(("a", 0, 0)))
        assert plan(sessions, request(("a", 0, 0), session_id=100)).session_id == 101
        assert len(sessions) == 1

    def test_nothing_to_fetch_makes_no_session(self) -> None:
        sessions = make_sessions()
        assert plan(sessions, request()).session_id == 0

    def test_without_slots_everybody_sends_full_requests(self) -> None:
        assert plan(make_sessions(slots=0), request(("a", 0, 0))).session_id == 0

    def test_an_id_in_use_or_zero_is_not_given_out(self) -> None:
        numbers = iter([5, 5, 0, 6])
        sessions = FetchSessions(slots=9, new_id=lambda: next(numbers))
        ids = [sessions.plan(request(("a", 0, 0)), by_id=False, now_ms=0).session_id for _ in range(2)]
        assert ids == [5, 6]


class TestIncrementalRequests:
    def test_they_add_change_and_forget(self) -> None:
        sessions = make_sessions()
        plan(sessions, request(("a", 0, 0), ("b", 0, 0)))
        made = plan(
            sessions,
            request(("a", 0, 7), ("c", 2, 1), session_id=100, epoch=1, forgotten=(("b", 0), ("x", 9))),
        )
        assert made.incremental
        assert {key: wanted.fetch_offset for key, wanted in made.wanted.items()} == {("a", 0): 7, ("c", 2): 1}

    def test_what_is_not_named_stays(self) -> None:
        sessions = make_sessions()
        plan(sessions, request(("a", 0, 3)))
        assert keys(plan(sessions, request(session_id=100, epoch=1))) == [("a", 0)]

    def test_the_epoch_rises_by_one_with_each(self) -> None:
        sessions = make_sessions()
        plan(sessions, request(("a", 0, 0)))
        for epoch in (1, 2, 3):
            assert plan(sessions, request(session_id=100, epoch=epoch)).error == 0
        for epoch in (3, 5):
            made = plan(sessions, request(session_id=100, epoch=epoch))
            assert made.error is ErrorCode.INVALID_FETCH_SESSION_EPOCH
            assert (made.wanted, made.session_id) == ({}, 0)

    def test_after_the_largest_epoch_comes_1(self) -> None:
        sessions = make_sessions()
        session = plan(sessions, request(("a", 0, 0))).session
        assert session is not None
        session.epoch = EPOCH_MAX
        assert plan(sessions, request(session_id=100, epoch=EPOCH_MAX)).error == 0
        assert plan(sessions, request(session_id=100, epoch=1)).error == 0

    def test_an_unknown_id_is_told(self) -> None:
        made = plan(make_sessions(), request(session_id=77, epoch=1))
        assert made.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    def test_names_and_ids_do_not_mix_in_one_session(self) -> None:
        sessions = make_sessions()
        plan(sessions, request(("a", 0, 0)))
        made = plan(sessions, request(session_id=100, epoch=1), by_id=True)
        assert made.error is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR

    def test_a_session_without_partitions_ends(self) -> None:
        sessions = make_sessions()
        plan(sessions, request(("a", 0, 0)))
        made = plan(sessions, request(session_id=100, epoch=1, forgotten=(("a", 0),)))
        assert (made.wanted, made.session_id, made.error) == ({}, 0, 0)
        assert len(sessions) == 0

    def test_who_got_data_goes_last_so_that_none_starves(self) -> None:
        sessions = make_sessions()
        session = plan(sessions, request(("a", 0, 0), ("b", 0, 0), ("c", 0, 0))).session
        assert session is not None
        session.served(("a", 0))
        session.served(("gone", 1))
        assert keys(plan(sessions, request(session_id=100, epoch=1))) == [("b", 0), ("c", 0), ("a", 0)]


class TestRoom:
    def test_the_one_unused_for_longest_goes_when_it_was_idle(self) -> None:
        sessions = make_sessions(slots=2)
        plan(sessions, request(("a", 0, 0)), now_ms=0)
        plan(sessions, request(("a", 0, 0)), now_ms=0)
        plan(sessions, request(session_id=100, epoch=1), now_ms=500)
        assert plan(sessions, request(("a", 0, 0)), now_ms=EVICTION_MS).session_id == 102
        assert plan(sessions, request(session_id=101, epoch=1)).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert plan(sessions, request(session_id=100, epoch=2)).error == 0

    def test_sessions_in_use_are_not_driven_out(self) -> None:
        sessions = make_sessions(slots=1)
        plan(sessions, request(("a", 0, 0)), now_ms=0)
        made = plan(sessions, request(("a", 0, 0)), now_ms=EVICTION_MS - 1)
        assert (made.session_id, made.error) == (0, 0)
        assert keys(made) == [("a", 0)]


class TestNews:
    def wanted(self) -> Wanted:
        return wanted_partitions(request(("a", 0, 0)), by_id=False)["a", 0]

    def data(self, **fields: object) -> PartitionData:
        made = PartitionData(
            partition_index=0, error_code=0, high_watermark=5, log_start_offset=1, records=b""
        )
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    def test_the_first_answer_is_always_news_and_the_same_again_is_not(self) -> None:
        wanted = self.wanted()
        assert wanted.has_news(self.data())
        assert not wanted.has_news(self.data())

    @pytest.mark.parametrize(
        "change",
        [
            {"records": b"x"},
            {"high_watermark": 6},
            {"log_start_offset": 2},
            {"error_code": 3},
            {"preferred_read_replica": 2},
            {"diverging_epoch": EpochEndOffset(epoch=0, end_offset=1)},
        ],
    )
    def test_what_counts_as_news(self, change: dict[str, object]) -> None:
        wanted = self.wanted()
        wanted.has_news(self.data())
        assert wanted.has_news(self.data(**change))

    def test_the_first_success_after_an_error_is_news(self) -> None:
        wanted = self.wanted()
        wanted.has_news(self.data())
        wanted.has_news(self.data(error_code=6))
        assert wanted.has_news(self.data())


def test_a_partition_listed_twice_counts_the_last_time() -> None:
    listed = wanted_partitions(request(("a", 0, 1), ("a", 0, 2)), by_id=False)
    assert [wanted.fetch_offset for wanted in listed.values()] == [2]


def test_partitions_are_told_apart_by_id_when_ids_are_used() -> None:
    listed = wanted_partitions(request(("0123456789abcdef", 0, 1)), by_id=True)
    (wanted,) = listed.values()
    assert (wanted.topic, wanted.topic_id) == ("", b"0123456789abcdef")


def got(response: FetchResponse) -> dict[tuple[str, int], list[int]]:
    return {
        (topic.topic, part.partition_index): offsets(part)
        for topic in response.responses
        for part in topic.partitions
    }


class TestOverTheWire:
    @pytest.mark.parametrize("version", range(7, 13))
    def test_only_news_comes_after_the_first_answer(
        self, client: WireClient, make_topic: MakeTopic, version: int
    ) -> None:
        topic = make_topic(3)
        produce(client, topic, batch(b"old"))
        first = client.call(request((topic, 0, 0), (topic, 1, 0), (topic, 2, 0)), version, FetchResponse)
        assert first.session_id > 0
        assert got(first) == {(topic, 0): [0], (topic, 1): [], (topic, 2): []}
        session = first.session_id
        produce(client, topic, batch(b"new"), partition=1)
        second = client.call(request((topic, 0, 1), session_id=session, epoch=1), version, FetchResponse)
        assert got(second) == {(topic, 1): [0]}
        third = client.call(request((topic, 1, 1), session_id=session, epoch=2), version, FetchResponse)
        assert (third.session_id, got(third)) == (session, {})

    def test_a_waiting_incremental_fetch_is_woken_by_any_of_its_partitions(
        self, broker: Broker, client: WireClient, make_topic: MakeTopic
    ) -> None:
        topic = make_topic(2)
        first = client.call(request((topic, 0, 0), (topic, 1, 0)), 12, FetchResponse)
        waiting = request(session_id=first.session_id, epoch=1)
        waiting.max_wait_ms, waiting.min_bytes = 60_000, 1
        client.send(waiting, 12)
        with WireClient(broker.bootstrap_servers) as writer:
            produce(writer, topic, batch(b"x"), partition=1)
        assert got(client.receive(FetchResponse)) == {(topic, 1): [0]}

    def test_ids_serve_as_well(self, broker: Broker, client: WireClient, topic: str) -> None:
        asked = request((topic, 0, 0))
        asked.topics[0].topic_id = topic_id_of(broker, topic)
        first = client.call(asked, 17, FetchResponse)
        produce(client, topic, batch(b"x"))
        second = client.call(request(session_id=first.session_id, epoch=1), 17, FetchResponse)
        assert [t.topic_id for t in second.responses] == [topic_id_of(broker, topic)]

    @pytest.mark.parametrize("version", range(7, 13))
    def test_errors_are_at_the_top_with_no_session_and_nothing_else(
        self, client: WireClient, topic: str, version: int
    ) -> None:
        session = client.call(request((topic, 0, 0)), version, FetchResponse).session_id
        for asked, expected in (
            (request(session_id=session ^ 1, epoch=1), ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
            (request(session_id=session, epoch=9), ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ):
            response = client.call(asked, version, FetchResponse)
            assert (response.error_code, response.session_id, response.responses) == (expected, 0, [])

    def test_switching_from_names_to_ids_is_told(self, client: WireClient, topic: str) -> None:
        session = client.call(request((topic, 0, 0)), 12, FetchResponse).session_id
        response = client.call(request(session_id=session, epoch=1), 13, FetchResponse)
        assert (response.error_code, response.session_id) == (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 0)

    def test_a_sessionless_request_gets_none(self, client: WireClient, topic: str) -> None:
        assert client.call(request((topic, 0, 0), epoch=-1), 12, FetchResponse).session_id == 0

    def test_an_error_is_news_each_time(self, client: WireClient, topic: str) -> None:
        first = client.call(request((topic, 0, 0), (topic, 5, 0)), 12, FetchResponse)
        for epoch in (1, 2):
            answer = client.call(request(session_id=first.session_id, epoch=epoch), 12, FetchResponse)
            (found,) = answer.responses
            assert [(p.partition_index, p.error_code) for p in found.partitions] == [(5, 3)]


@pytest.fixture(scope="module")
def crowded() -> Iterator[Broker]:
    with Broker({"max.incremental.fetch.session.cache.slots": "1"}) as running:
        running.create_topic("t")
        yield running


def test_who_finds_no_slot_gets_full_answers_without_a_session(crowded: Broker) -> None:
    with WireClient(crowded.bootstrap_servers) as client:
        sessions = [client.call(request(("t", 0, 0)), 12, FetchResponse).session_id for _ in range(2)]
        assert sessions[0] > 0
        assert sessions[1] == 0
