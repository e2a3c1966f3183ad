"""Members of a group, ours and others', against a real coordinator."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.cluster import CoordinatorKind
from barnabas.client.consumer import Consumer
from barnabas.client.errors import CommitFailed, FencedInstance, KafkaError
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from tests.client._consumers import LIMIT_S, Told, consumer_of, poll_until, read
from tests.client._kit import Client
from tests.client._records import produce

pytestmark = pytest.mark.slow

STUCK_S = 6.0
ASSIGNORS = ["range", "roundrobin", "sticky", "cooperative-sticky"]


@pytest.fixture
def wide(bootstrap: str, admin: Admin, topic: str) -> str:
    """A topic of six partitions with a record in each."""
    admin.create_topic(topic, 6)
    for partition in range(6):
        produce(bootstrap, topic, [b"%d" % partition], partition=partition)
    return topic


def numbers(consumer: Consumer) -> list[int]:
    return sorted(tp.partition for tp in consumer.assignment())


def evict(bootstrap: str, group: str, member_id: str) -> None:
    """Puts a member out of its group, as an administrator may."""

    async def main() -> None:
        async with Client(bootstrap) as cluster:
            node = await cluster.coordinator(CoordinatorKind.GROUP, group)
            answer = await cluster.request(
                node, LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member_id)])
            )
            assert isinstance(answer, LeaveGroupResponse)
            assert answer.members[0].error_code == 0

    asyncio.run(main())


@pytest.mark.parametrize("assignor", ASSIGNORS)
class TestEveryAssignor:
    def test_members_share_and_take_over(self, bootstrap: str, wide: str, group: str, assignor: str) -> None:
        settings = {"group_id": group, "partition_assignment_strategy": assignor}
        with contextlib.ExitStack() as stack:
            first = stack.enter_context(consumer_of(bootstrap, **settings))
            first.subscribe(wide)
            poll_until([first], lambda: len(first.assignment()) == 6)
            second = stack.enter_context(consumer_of(bootstrap, **settings))
            second.subscribe(wide)
            poll_until([first, second], lambda: len(second.assignment()) == 3)
            poll_until([first, second], lambda: len(first.assignment()) == 3)
            assert sorted(numbers(first) + numbers(second)) == list(range(6))
            second.close()
            poll_until([first], lambda: len(first.assignment()) == 6)


class TestCooperative:
    def test_only_what_moves_is_revoked(self, bootstrap: str, wide: str, group: str) -> None:
        settings = {"group_id": group, "partition_assignment_strategy": "cooperative-sticky"}
        told, also = Told(), Told()
        with consumer_of(bootstrap, **settings) as first, consumer_of(bootstrap, **settings) as second:
            first.subscribe(wide, listener=told)
            poll_until([first], lambda: len(first.assignment()) == 6)
            second.subscribe(wide, listener=also)
            poll_until([first, second], lambda: len(second.assignment()) == 3)
            kept = numbers(first)
            assert told.events[0] == ("assigned", list(range(6)))
            revoked = [event for event in told.events if event[0] == "revoked"]
            assert revoked == [("revoked", [n for n in range(6) if n not in kept])]
            assert ("assigned", numbers(second)) in also.events

    def test_reading_goes_on_while_the_group_rebalances(self, bootstrap: str, wide: str, group: str) -> None:
        settings = {"group_id": group, "partition_assignment_strategy": "cooperative-sticky"}
        with consumer_of(bootstrap, **settings) as first, consumer_of(bootstrap, **settings) as second:
            first.subscribe(wide)
            read(first, 6)
            second.subscribe(wide)
            poll_until([first, second], lambda: len(second.assignment()) == 3)
            for partition in range(6):
                produce(bootstrap, wide, [b"more"], partition=partition)
            records = [record for consumer in (first, second) for record in read(consumer, 3)]
            records += first.poll(0.1) + second.poll(0.1)
            assert sorted(record.partition for record in records) == list(range(6)), "and nothing twice"


class TestCommitsAndRebalances:
    def test_offsets_are_committed_before_partitions_go(self, bootstrap: str, wide: str, group: str) -> None:
        with (
            consumer_of(bootstrap, group_id=group) as first,
            consumer_of(bootstrap, group_id=group) as second,
        ):
            first.subscribe(wide)
            read(first, 6)
            second.subscribe(wide)
            again = poll_until([first, second], lambda: len(second.assignment()) == 3)
            again += poll_until([first, second], lambda: len(first.assignment()) == 3)
            again += first.poll(0.2) + second.poll(0.2)
            assert again == []

    def test_a_listener_may_commit_when_partitions_go(self, bootstrap: str, wide: str, group: str) -> None:
        settings = {"group_id": group, "enable_auto_commit": False}
        with consumer_of(bootstrap, **settings) as first, consumer_of(bootstrap, **settings) as second:

            class Committing(Told):
                def on_revoked(self, partitions: list[TopicPartition]) -> None:
                    first.commit()
                    super().on_revoked(partitions)

            told = Committing()
            first.subscribe(wide, listener=told)
            read(first, 6)
            second.subscribe(wide)
            again = poll_until([first, second], lambda: len(second.assignment()) == 3)
            again += second.poll(0.2)
            assert again == []
            assert ("revoked", list(range(6))) in told.events

    def test_a_member_that_was_put_out_cannot_commit(self, bootstrap: str, wide: str, group: str) -> None:
        with consumer_of(bootstrap, group_id=group, enable_auto_commit=False) as consumer:
            told = Told()
            consumer.subscribe(wide, listener=told)
            read(consumer, 6)
            member = consumer._core.member
            assert member is not None
            evict(bootstrap, group, member.member_id)
            with pytest.raises(CommitFailed, match=r"rebalanced without this member|no member of group"):
                consumer.commit()
            poll_until(
                [consumer], lambda: told.events[-1] == ("assigned", list(range(6))) and len(told.events) > 1
            )
            assert told.events[1] == ("lost", list(range(6)))


class TestSlowness:
    def test_slow_processing_keeps_the_seat(self, bootstrap: str, wide: str, group: str) -> None:
        told = Told()
        with consumer_of(bootstrap, group_id=group, session_timeout_ms=6000) as consumer:
            consumer.subscribe(wide, listener=told)
            read(consumer, 6)
            before = consumer.metrics()["heartbeat-total"]
            deadline = time.monotonic() + LIMIT_S
            while consumer.metrics()["heartbeat-total"] < before + 3:  # nobody polls, heartbeats go on
                assert time.monotonic() < deadline
                threading.Event().wait(0.01)
            consumer.commit()
        assert told.events == [("assigned", list(range(6))), ("revoked", list(range(6)))]

    def test_without_polls_the_member_leaves_and_comes_back(
        self, bootstrap: str, wide: str, group: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        told = Told()
        with consumer_of(bootstrap, group_id=group, max_poll_interval_ms=200) as consumer:
            consumer.subscribe(wide, listener=told)
            read(consumer, 6)
            member = consumer._core.member
            assert member is not None
            deadline = time.monotonic() + LIMIT_S
            with caplog.at_level(logging.WARNING):
                while member.generation >= 0:
                    assert time.monotonic() < deadline
                    threading.Event().wait(0.01)
            assert "no poll for more than max.poll.interval.ms (200 ms)" in caplog.text
            poll_until([consumer], lambda: len(told.events) == 3)
        assert told.events[:3] == [
            ("assigned", list(range(6))),
            ("lost", list(range(6))),
            ("assigned", list(range(6))),
        ]


class TestStaticMembers:
    def test_a_restart_causes_no_rebalance(self, bootstrap: str, wide: str, group: str) -> None:
        told = Told()
        with consumer_of(bootstrap, group_id=group, group_instance_id="a") as stays:
            stays.subscribe(wide, listener=told)
            poll_until([stays], lambda: len(stays.assignment()) == 6)
            with consumer_of(bootstrap, group_id=group, group_instance_id="b") as leaves:
                leaves.subscribe(wide)
                poll_until([stays, leaves], lambda: len(leaves.assignment()) == 3 == len(stays.assignment()))
                had = leaves.assignment()
            events = len(told.events)
            with consumer_of(bootstrap, group_id=group, group_instance_id="b") as back:
                back.subscribe(wide)
                poll_until([stays, back], lambda: len(back.assignment()) == 3)
                assert back.assignment() == had
            assert len(told.events) == events

    def test_the_second_of_one_name_fences_the_first(self, bootstrap: str, wide: str, group: str) -> None:
        with (
            consumer_of(bootstrap, group_id=group, group_instance_id="a") as first,
            consumer_of(bootstrap, group_id=group, group_instance_id="a") as second,
        ):
            first.subscribe(wide)
            poll_until([first], first.assignment)
            second.subscribe(wide)
            with pytest.raises(FencedInstance):
                poll_until([second, first], lambda: False)
            poll_until([second], lambda: len(second.assignment()) == 6)
            assert first.poll(0.2) == [], "and stays out"


class TestErrors:
    def test_no_assignor_in_common_is_an_error_of_poll(self, bootstrap: str, wide: str, group: str) -> None:
        with (
            consumer_of(bootstrap, group_id=group, partition_assignment_strategy="range") as first,
            consumer_of(bootstrap, group_id=group, partition_assignment_strategy="sticky") as second,
        ):
            first.subscribe(wide)
            poll_until([first], first.assignment)
            second.subscribe(wide)
            with pytest.raises(KafkaError, match="INCONSISTENT_GROUP_PROTOCOL"):
                poll_until([second], lambda: False)

    def test_a_session_timeout_that_the_broker_does_not_allow_is_an_error_of_poll(
        self, bootstrap: str, wide: str, group: str
    ) -> None:
        with consumer_of(bootstrap, group_id=group, session_timeout_ms=2**31 - 1) as consumer:
            consumer.subscribe(wide)
            with pytest.raises(KafkaError, match="INVALID_SESSION_TIMEOUT"):
                poll_until([consumer], lambda: False)


# --- members of other clients


class Other:
    """A member that some other client runs, on a thread of its own: such clients are for one thread."""

    def __init__(self, poll: Callable[[], object], partitions: Callable[[], list[int]]) -> None:
        self._poll = poll
        self._look = partitions
        self._found: list[int] = []
        self._polled_at = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._poll()
            self._found = self._look()
            self._polled_at = time.monotonic()

    def partitions(self) -> list[int]:
        """What it has; now and then kafka-python 3.0.12 never returns from a poll."""
        if time.monotonic() - self._polled_at > STUCK_S:
            pytest.xfail("the other client is stuck in a short poll")
        return self._found

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(1.0)


@contextlib.contextmanager
def librdkafka(bootstrap: str, group: str, topic: str, assignor: str) -> Iterator[Other]:
    from confluent_kafka import Consumer as Confluent

    consumer = Confluent(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "partition.assignment.strategy": assignor,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 50,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    other = Other(lambda: consumer.poll(0.05), lambda: sorted(tp.partition for tp in consumer.assignment()))
    try:
        yield other
    finally:
        other.stop()
        consumer.close()


@contextlib.contextmanager
def kafka_python(bootstrap: str, group: str, topic: str, assignor: str) -> Iterator[Other]:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    known = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        partition_assignment_strategy=[known[assignor]],
        session_timeout_ms=6000,
        heartbeat_interval_ms=50,
        auto_offset_reset="earliest",
    )
    # kafka-python loses the answer to a join that its poll did not wait for; as it looks for topics every
    # 100 ms and joins then, its polls must not end at such times.
    other = Other(
        lambda: consumer.poll(timeout_ms=270), lambda: sorted(tp.partition for tp in consumer.assignment())
    )
    try:
        yield other
    finally:
        other.stop()
        consumer.close(timeout_ms=3000)


# librdkafka has no eager sticky assignor.
PAIRS = [(librdkafka, name) for name in ASSIGNORS if name != "sticky"]
PAIRS += [(kafka_python, name) for name in ASSIGNORS]


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")  # in kafka-python itself
@pytest.mark.parametrize(("client", "assignor"), PAIRS, ids=[f"{c.__name__}-{name}" for c, name in PAIRS])
class TestBesideOtherClients:
    def test_ours_leads(
        self,
        bootstrap: str,
        wide: str,
        group: str,
        assignor: str,
        client: Callable[..., contextlib.AbstractContextManager[Other]],
    ) -> None:
        with consumer_of(bootstrap, group_id=group, partition_assignment_strategy=assignor) as ours:
            ours.subscribe(wide)
            poll_until([ours], lambda: len(ours.assignment()) == 6)
            with client(bootstrap, group, wide, assignor) as other:
                poll_until([ours], lambda: len(other.partitions()) == 3 == len(ours.assignment()))
                assert sorted(numbers(ours) + other.partitions()) == list(range(6))
            poll_until([ours], lambda: len(ours.assignment()) == 6)

    def test_the_other_leads(
        self,
        bootstrap: str,
        wide: str,
        group: str,
        assignor: str,
        client: Callable[..., contextlib.AbstractContextManager[Other]],
    ) -> None:
        with client(bootstrap, group, wide, assignor) as other:
            deadline = time.monotonic() + LIMIT_S
            while len(other.partitions()) < 6:
                assert time.monotonic() < deadline, "the other client did not get its partitions"
                threading.Event().wait(0.02)
            with consumer_of(bootstrap, group_id=group, partition_assignment_strategy=assignor) as ours:
                ours.subscribe(wide)
                poll_until([ours], lambda: len(ours.assignment()) == 3 == len(other.partitions()))
                assert sorted(numbers(ours) + other.partitions()) == list(range(6))


def test_partitions_of_a_member_that_went_are_parted_anew(bootstrap: str, wide: str, group: str) -> None:
    with contextlib.ExitStack() as stack:
        members = [stack.enter_context(consumer_of(bootstrap, group_id=group)) for _ in range(3)]
        for member in members:
            member.subscribe(wide)
        poll_until(members, lambda: [len(member.assignment()) for member in members] == [2, 2, 2])
        members.pop().close()
        poll_until(members, lambda: [len(member.assignment()) for member in members] == [3, 3])
