"""Random lives of a query: records come, batches run, it crashes and restarts; each offset is read once."""

from typing import Generic, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.base.types import TopicPartition
from tests.spark._stream_kit import A, B, Run

Kind = TypeVar("Kind", bound=Run)


class QueryMachine(RuleBasedStateMachine, Generic[Kind]):
    """Whatever happens, each offset from the first start on is read once, in order."""

    def begin_with(self, kind: type[Kind], first: int, latest: bool, options: dict[str, str]) -> None:
        self.run = kind({A: (0, first)}, startingOffsets="latest" if latest else "earliest", **options)
        self.run.reader.initialOffset()
        self.read: dict[TopicPartition, int] = {A: first if latest else 0}
        self.begun = False

    @rule(where=st.sampled_from([A, B]), count=st.integers(0, 30))
    def records_come(self, where: TopicPartition, count: int) -> None:
        if where in self.run.cluster.logs:
            start, end = self.run.cluster.logs[where]
            self.run.cluster.logs[where] = (start, end + count)

    @rule()
    def a_partition_is_added(self) -> None:
        self.run.cluster.logs.setdefault(B, (0, 0))

    @rule()
    def a_batch_runs(self) -> None:
        found = self.run.batch()
        self.begun = self.begun or found is not None
        for partition, start, end in found or []:
            where = TopicPartition("t", partition)
            assert start == self.read.get(where, 0)
            self.read[where] = end

    @precondition(lambda self: self.begun)
    @rule()
    def it_crashes_after_planning(self) -> None:
        if self.run.plan():
            before = self.run.ranges()
            self.run.restart()
            assert self.run.ranges() == before

    @precondition(lambda self: self.begun)
    @rule()
    def it_restarts(self) -> None:
        self.run.restart()

    @invariant()
    def nothing_is_read_that_is_not_there(self) -> None:
        for where, end in self.read.items():
            assert end <= self.run.cluster.logs[where][1]
