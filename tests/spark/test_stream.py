"""What both kinds of stream reader do: where they start, restarts, losses, new partitions."""

import json
import pickle
from collections.abc import Iterable

import pytest

from barnabas.base.types import TopicPartition
from barnabas.spark.errors import DataLoss
from barnabas.spark.planning import OffsetRange
from tests.spark._stream_kit import A, B, LimitedRun, PlainRun, Run


@pytest.fixture(params=[LimitedRun, PlainRun])
def query(request: pytest.FixtureRequest) -> type[Run]:
    kind: type[Run] = request.param
    return kind


class TestStarting:
    def test_at_the_beginning_then_what_is_new(self, query: type[Run]) -> None:
        run = query({A: (2, 5)}, startingOffsets="earliest")
        assert run.batch() == [(0, 2, 5)]
        assert run.batch() is None
        run.cluster.logs[A] = (2, 9)
        assert run.batch() == [(0, 5, 9)]

    def test_at_the_end_an_empty_batch_keeps_the_place(self, query: type[Run]) -> None:
        run = query({A: (0, 5)})
        assert run.batch() == []
        run.restart()
        run.cluster.logs[A] = (0, 7)
        assert run.batch() == [(0, 5, 7)]

    def test_a_crash_in_the_first_batch_repeats_it_exactly(self, query: type[Run]) -> None:
        run = query({A: (0, 5)})
        run.reader.initialOffset()
        run.cluster.logs[A] = (0, 9)
        assert run.plan()
        before = run.ranges()
        run.cluster.logs[A] = (3, 20)
        run.restart()
        assert run.ranges() == before == [OffsetRange("t", 0, 5, 9)]
        assert run.batch() == [(0, 5, 9)]
        assert run.batch() == [(0, 9, 20)]

    def test_offsets_outside_the_log(self, query: type[Run]) -> None:
        with pytest.raises(DataLoss, match="offsets 1 to 4 of t-0 are lost: the log begins at 5"):
            query({A: (5, 9)}, startingOffsets='{"t":{"0":1}}').batch()
        run = query({A: (5, 9)}, startingOffsets='{"t":{"0":1}}', failOnDataLoss="false")
        assert run.batch() == [(0, 5, 9)]
        run = query({A: (5, 9)}, startingOffsets='{"t":{"0":100}}', failOnDataLoss="false")
        assert run.batch() == []

    def test_records_that_age_out_while_the_start_is_looked_up_are_no_loss(
        self, query: type[Run], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = query({A: (2, 9)}, startingOffsets='{"t":{"0":-2}}')
        earliest = run.cluster.earliest

        def aging(partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
            found = earliest(partitions)
            run.cluster.logs[A] = (run.cluster.logs[A][0] + 1, 9)
            return found

        monkeypatch.setattr(run.cluster, "earliest", aging)
        assert run.reader.initialOffset()["t"] == {"0": 3}


class TestPartitionsThatComeAndGo:
    def test_new_ones_begin_at_their_first_offset(self, query: type[Run]) -> None:
        run = query({A: (0, 5)})
        run.batch()
        run.cluster.logs[B] = (0, 3)
        assert run.plan()
        assert "#base" in json.loads(run.wal[-1])
        run.cluster.logs[B] = (1, 4)
        run.restart()
        assert run.batch() == [(1, 0, 3)]
        assert run.batch() == [(1, 3, 4)]

    def test_new_ones_without_their_first_records(self, query: type[Run]) -> None:
        run = query({A: (0, 5)})
        run.batch()
        run.cluster.logs[B] = (2, 3)
        with pytest.raises(DataLoss, match="offsets 0 to 1 of t-1 are lost"):
            run.batch()

    def test_records_that_age_out(self, query: type[Run]) -> None:
        for fail in ("true", "false"):
            run = query({A: (0, 5)}, startingOffsets="earliest", failOnDataLoss=fail)
            run.batch()
            run.cluster.logs[A] = (8, 9)
            if fail == "true":
                with pytest.raises(DataLoss, match="offsets 5 to 7 of t-0 are lost: the log begins at 8"):
                    run.batch()
            else:
                assert run.batch() == [(0, 8, 9)]

    def test_a_topic_made_anew(self, query: type[Run]) -> None:
        run = query({A: (0, 5)}, startingOffsets="earliest", failOnDataLoss="false")
        run.batch()
        run.cluster.logs[A] = (0, 2)
        assert run.batch() == [(0, 0, 2)]
        assert run.batch() is None

    def test_an_end_that_a_broker_has_not_heard_of_yet_is_asked_for_again(
        self, query: type[Run], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = query({A: (0, 5)}, startingOffsets="earliest")
        run.batch()
        run.cluster.logs[A] = (0, 8)
        stale, latest = [3, 4], run.cluster.latest
        monkeypatch.setattr(run.cluster, "latest", lambda asked: {A: stale.pop()} if stale else latest(asked))
        assert run.batch() == [(0, 5, 8)]

    def test_a_topic_that_is_deleted(self, query: type[Run]) -> None:
        run = query({A: (0, 5), B: (0, 0)}, startingOffsets="earliest", failOnDataLoss="false")
        run.batch()
        del run.cluster.logs[A]
        assert run.batch() == []
        assert run.batch() is None
        run.cluster.logs[A] = (0, 1)
        assert run.batch() == [(0, 0, 1)]

    def test_a_topic_that_is_deleted_fails_by_default(self, query: type[Run]) -> None:
        run = query({A: (0, 5)}, startingOffsets="earliest")
        run.batch()
        del run.cluster.logs[A]
        with pytest.raises(DataLoss, match="offsets from 5 on of t-0 are lost: the partition is not there"):
            run.batch()


class TestTravel:
    def test_executors_get_options_only(self, query: type[Run]) -> None:
        run = query({A: (0, 5)}, startingOffsets="earliest")
        run.reader.initialOffset()
        copy = pickle.loads(pickle.dumps(run.reader))
        assert type(copy) is type(run.reader)
        assert not copy._latest

    def test_stop_and_commit_do_no_harm(self, query: type[Run]) -> None:
        reader = query({A: (0, 5)}).reader
        reader.commit({"t": {"0": 5}})
        reader.stop()
        reader.stop()
