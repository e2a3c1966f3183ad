"""Random lives of groups: members come, go, fall silent, the log stalls and fails, the broker restarts.

After every step the invariants of the modules hold, and:
  every call is answered exactly once, a generation never falls, a member gets one assignment in a generation,
  the visible offsets are those the log tells, before and after a restart
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.base.types import TopicPartition
from barnabas.coordinator.calls import JoinResult, LeavingMember, OffsetsResult, SyncResult
from barnabas.coordinator.group import Group, GroupState
from barnabas.coordinator.group_records import GroupKey, OffsetKey, decode_key, decode_offset
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._fakes import Answer, FakeLog, World

GROUPS = ("g", "h")
PROTOCOLS = ((("range", b"1"), ("sticky", b"2")), (("sticky", b"2"),), (("range", b"3"),))
CLIENTS_MAX = 6
FORGET_ID = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_MAX_SIZE_REACHED}
RETRIABLE = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR)


@dataclass
class Client:
    group_id: str
    instance_id: str | None
    member_id: str = ""
    generation_id: int = -1
    joins: list[Answer[JoinResult]] = field(default_factory=list)
    syncs: list[tuple[int, str, Answer[SyncResult]]] = field(default_factory=list)

    def hear(self) -> None:
        """Takes in the answers that came."""
        for join in [join for join in self.joins if not join.waits]:
            self.joins.remove(join)
            result = join.result
            if result.error in FORGET_ID:
                self.member_id, self.generation_id = "", -1
            elif result.error in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self.member_id, self.generation_id = result.member_id, result.generation_id


def visible(log: FakeLog) -> dict[tuple[str, TopicPartition], int]:
    """Offsets that count, told from the log alone."""
    placed: dict[tuple[str, TopicPartition], tuple[int, int]] = {}
    for entries in log.partitions.values():
        held: dict[int, dict[tuple[str, TopicPartition], tuple[int, int]]] = {}
        for place, entry in enumerate(entries):
            if entry.marker is not None and entry.producer is not None:
                for where, what in held.pop(entry.producer.producer_id, {}).items():
                    if entry.marker and placed.get(where, (-1, 0)) < what:
                        placed[where] = what
            for key, value in entry.records:
                decoded = decode_key(key)
                if not isinstance(decoded, OffsetKey):
                    continue
                where = (decoded.group_id, decoded.partition)
                if value is None:
                    placed.pop(where, None)
                    for pending in held.values():
                        pending.pop(where, None)
                elif entry.producer is None:
                    placed[where] = (place, decode_offset(value, 0).offset)
                else:
                    pending = held.setdefault(entry.producer.producer_id, {})
                    pending[where] = (place, decode_offset(value, 0).offset)
    return {where: offset for where, (_, offset) in placed.items()}


def portrait(group: Group) -> object:
    """What a restart must not change in a group that is Stable or Empty."""
    members = [(m.member_id, m.instance_id, m.assignment, m.session_timeout_ms) for m in group.roster]
    return (group.state, group.generation_id, group.protocol_name, group.roster.leader_id, sorted(members))


class GroupLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.clients: list[Client] = []
        self.answers: list[Answer[JoinResult] | Answer[SyncResult] | Answer[OffsetsResult]] = []
        self.generations: dict[int, tuple[Group, int]] = {}
        self.assignments: dict[tuple[str, int, str], bytes] = {}
        self.lost: set[str] = set()  # groups whose last record did not reach the log
        self.offset = 0

    @initialize(
        delay_ms=st.sampled_from([0, 3_000]),
        size_max=st.sampled_from([100, 2]),
        instance_ids=st.lists(st.sampled_from([None, "box", "can"]), max_size=4),
    )
    def begin(self, delay_ms: int, size_max: int, instance_ids: list[str | None]) -> None:
        self.world = World(group_initial_rebalance_delay_ms=delay_ms, group_max_size=size_max).own_all()
        for instance_id in instance_ids:
            self.newcomer_joins("g", instance_id, PROTOCOLS[0], False, 30_000)
        if instance_ids:
            self.everybody_does_what_clients_do()

    # Members

    @precondition(lambda self: len(self.clients) < CLIENTS_MAX)
    @rule(
        group_id=st.sampled_from(GROUPS),
        instance_id=st.sampled_from([None, None, "box", "can"]),
        protocols=st.sampled_from(PROTOCOLS),
        member_id_required=st.booleans(),
        timeout_ms=st.sampled_from([6_000, 30_000]),
    )
    def newcomer_joins(
        self,
        group_id: str,
        instance_id: str | None,
        protocols: tuple[tuple[str, bytes], ...],
        member_id_required: bool,
        timeout_ms: int,
    ) -> None:
        client = Client(group_id, instance_id)
        self.clients.append(client)
        client.joins.append(
            self.world.join(
                group_id=group_id,
                instance_id=instance_id,
                protocols=protocols,
                member_id_required=member_id_required,
                session_timeout_ms=timeout_ms,
                rebalance_timeout_ms=2 * timeout_ms,
            )
        )
        self.answers.extend(client.joins)

    @precondition(lambda self: self.clients)
    @rule(which=st.integers(0, 9), protocols=st.sampled_from(PROTOCOLS))
    def member_joins(self, which: int, protocols: tuple[tuple[str, bytes], ...]) -> None:
        client = self.client(which)
        answer = self.world.join(
            client.member_id,
            group_id=client.group_id,
            instance_id=client.instance_id,
            protocols=protocols,
            member_id_required=True,
        )
        client.joins.append(answer)
        self.answers.append(answer)

    @precondition(lambda self: self.clients)
    @rule()
    def everybody_does_what_clients_do(self) -> None:
        for _ in range(4):
            for which, client in enumerate(self.clients):
                client.hear()
                error = self.world.beat(client.member_id, client.generation_id, group_id=client.group_id)
                if error and not client.joins:
                    self.member_joins(which, PROTOCOLS[0])
                client.hear()
            self.world.timers.advance(3_000)
        for which, client in enumerate(self.clients):
            client.hear()
            if client.generation_id > 0 and not client.joins:
                self.member_syncs(which)

    @precondition(lambda self: self.clients)
    @rule(which=st.integers(0, 9))
    def member_syncs(self, which: int) -> None:
        client = self.client(which)
        group = self.world.coordinator.table.find(client.group_id)
        members = [] if group is None else [member.member_id for member in group.roster]
        assignments = [(who, f"{client.generation_id} {who} {len(self.answers)}".encode()) for who in members]
        answer = self.world.sync(
            client.member_id,
            client.generation_id,
            assignments,
            group_id=client.group_id,
            instance_id=client.instance_id,
        )
        client.syncs.append((client.generation_id, client.member_id, answer))
        self.answers.append(answer)

    @precondition(lambda self: self.clients)
    @rule(which=st.integers(0, 9))
    def member_beats(self, which: int) -> None:
        client = self.client(which)
        self.world.beat(
            client.member_id, client.generation_id, group_id=client.group_id, instance_id=client.instance_id
        )

    @precondition(lambda self: self.clients)
    @rule(which=st.integers(0, 9))
    def member_leaves(self, which: int) -> None:
        client = self.client(which)
        self.world.coordinator.leave(client.group_id, [LeavingMember(client.member_id, client.instance_id)])

    # Offsets

    @precondition(lambda self: self.clients)
    @rule(which=st.integers(0, 9), partition=st.integers(0, 1))
    def member_commits(self, which: int, partition: int) -> None:
        client = self.client(which)
        self.offset += 1
        answer = self.world.commit(
            self.offset,
            partition=partition,
            group_id=client.group_id,
            member_id=client.member_id,
            generation_id=client.generation_id,
            instance_id=client.instance_id,
        )
        self.answers.append(answer)

    @rule(group_id=st.sampled_from(GROUPS), partition=st.integers(0, 1))
    def anybody_commits(self, group_id: str, partition: int) -> None:
        self.offset += 1
        self.answers.append(self.world.commit(self.offset, partition=partition, group_id=group_id))

    @rule(group_id=st.sampled_from(GROUPS), partition=st.integers(0, 1), producer_id=st.sampled_from([7, 8]))
    def producer_commits(self, group_id: str, partition: int, producer_id: int) -> None:
        self.offset += 1
        answer = self.world.commit_in_transaction(
            producer_id, self.offset, group_id=group_id, partition=partition
        )
        self.answers.append(answer)

    @precondition(lambda self: not self.world.log.held)
    @rule(group_id=st.sampled_from(GROUPS), producer_id=st.sampled_from([7, 8]), committed=st.booleans())
    def transaction_ends(self, group_id: str, producer_id: int, committed: bool) -> None:
        partition = self.world.coordinator.partition_for(group_id)
        self.world.log.marker(partition, producer_id, committed)
        self.world.coordinator.offsets.end_transaction(partition, producer_id, committed=committed)

    @rule(group_id=st.sampled_from(GROUPS))
    def group_is_deleted(self, group_id: str) -> None:
        self.world.coordinator.delete_group(group_id, Answer[ErrorCode]())

    @rule()
    def topic_is_deleted(self) -> None:
        self.world.coordinator.offsets.topics_deleted({"t"})

    # The world

    @rule(ms=st.sampled_from([0, 1, 1_000, 3_000, 5_999, 12_000, 700_000]))
    def time_passes(self, ms: int) -> None:
        self.world.timers.advance(ms)

    @rule(holds=st.booleans())
    def log_stalls_or_goes_on(self, holds: bool) -> None:
        self.world.log.holds = holds
        if not holds:
            self.world.log.release()

    @precondition(lambda self: self.world.log.held)
    @rule(error=st.sampled_from(RETRIABLE))
    def log_refuses_a_write(self, error: ErrorCode) -> None:
        for key, value in self.world.log.held[0][1].records:
            decoded = decode_key(key)
            if isinstance(decoded, GroupKey) and value is not None:
                self.lost.add(decoded.group_id)
        self.world.log.release(error, 1)

    @rule()
    def broker_restarts(self) -> None:
        old = self.world
        old.log.holds = False
        old.log.release()
        before = {group.group_id: portrait(group) for group in old.coordinator.table}
        self.world = old.restarted()
        for group_id, what in before.items():
            self.compare(group_id, what)
        old.coordinator.stop()
        self.lost.clear()
        self.generations.clear()

    def compare(self, group_id: str, before: object) -> None:
        assert isinstance(before, tuple)
        group = self.world.coordinator.table.find(group_id)
        if group_id in self.lost:
            return
        if before[0] is GroupState.STABLE or (before[0] is GroupState.EMPTY and before[1] > 0):
            assert group is not None, f"{group_id} is lost"
            assert portrait(group) == before
        elif group is not None:
            assert group.generation_id <= before[1]

    # What must hold

    @invariant()
    def groups_are_sound(self) -> None:
        for group in self.world.coordinator.table:
            group.check()
            _, last = self.generations.get(id(group), (group, 0))
            assert group.generation_id >= last or group.state is GroupState.EMPTY
            self.generations[id(group)] = (group, group.generation_id)

    @invariant()
    def each_member_has_one_assignment_in_a_generation(self) -> None:
        for client in self.clients:
            client.hear()
            for generation_id, member_id, sync in client.syncs:
                if not sync.waits and sync.result.error is ErrorCode.NONE:
                    key = (client.group_id, generation_id, member_id)
                    assert self.assignments.setdefault(key, sync.result.assignment) == sync.result.assignment
            client.syncs = [entry for entry in client.syncs if entry[2].waits]

    @invariant()
    def offsets_are_those_of_the_log(self) -> None:
        if not self.world.log.held:
            seen = {
                (group.group_id, partition): committed.offset
                for group in self.world.coordinator.table
                for partition, committed in group.offsets.committed.items()
            }
            assert seen == visible(self.world.log)

    def client(self, which: int) -> Client:
        return self.clients[which % len(self.clients)]

    def teardown(self) -> None:
        self.world.log.holds = False
        self.world.log.release()
        self.world.coordinator.stop()
        assert [answer for answer in self.answers if answer.waits] == []
        assert self.world.timers.armed == 0


TestGroupLife = pytest.mark.slow(GroupLife.TestCase)
# Ten times the usual: one life is short, and most of what can go wrong needs several steps to meet.
TestGroupLife.settings = settings(max_examples=10 * settings().max_examples, stateful_step_count=50)
