"""Each task of each batch once; the tests play Spark: attempts that fail, overlap and repeat."""

import contextlib
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from barnabas.base.errors import BarnabasError
from barnabas.client.bulk_produce import BulkProducer
from barnabas.client.errors import KafkaError
from barnabas.protocol.api import ApiKey
from barnabas.spark import writing
from barnabas.spark.errors import OptionError, ReplayRefused, SparkPartError
from barnabas.spark.exactly_once import Marker, Plan, TaskName, decide, write_exactly_once
from barnabas.spark.sink_options import SinkOptions, parse_sink
from tests.client._faulty import FaultyBroker, faulty_broker
from tests.spark._kit import Topics

APIS = (
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.OFFSET_FETCH,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.PRODUCE,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
)
"""What a task asks for."""


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    yield
    writing.close_kept()


def rows_of(batch: int, partition: int, count: int = 20) -> list[pa.RecordBatch]:
    """The rows that a task of a batch is given, in two Arrow batches."""
    names = [f"{batch}.{partition}.{number}" for number in range(count)]
    whole = pa.record_batch({"key": names, "value": names})
    return [whole.slice(0, count // 2), whole.slice(0, 0), whole.slice(count // 2)]


def options_for(bootstrap: str, topic: str, **more: str) -> SinkOptions:
    return parse_sink(
        {
            "kafka.bootstrap.servers": bootstrap,
            "topic": topic,
            "markerTopic": "marks",
            "kafka.retry.backoff.ms": "10",
            "kafka.reconnect.backoff.ms": "10",
            **more,
        }
    )


@pytest.fixture
def options(bootstrap: str, topics: Topics, topic: str) -> SinkOptions:
    """Options of a sink into a new topic of three partitions."""
    topics.create(topic, 3)
    with contextlib.suppress(BarnabasError):
        topics.create("marks")
    return options_for(bootstrap, topic)


@pytest.fixture
def task(name: Callable[[str], str]) -> TaskName:
    return TaskName(name("sink"), "query-1", 0, 0)


def values(topics: Topics, options: SinkOptions) -> list[str]:
    assert options.topic is not None
    return sorted(value.decode() for value in topics.values(options.topic, isolation="read_committed"))


def expected(*tasks: tuple[int, int], count: int = 20) -> list[str]:
    return sorted(f"{batch}.{part}.{number}" for batch, part in tasks for number in range(count))


class TestMarkers:
    def test_a_note_comes_back(self) -> None:
        marker = Marker("q", 7, 100, 2**64 - 1)
        assert Marker.read(marker.note()) == marker
        assert marker.note() == '{"q": "q", "batch": 7, "rows": 100, "sum": "ffffffffffffffff"}'

    @pytest.mark.parametrize("note", ["", "x", "[]", "{}", '{"q": "q", "batch": 1, "rows": 2, "sum": "z"}'])
    def test_a_note_that_is_none_of_ours_is_refused(self, note: str) -> None:
        with pytest.raises(ReplayRefused, match="names a sink that somebody else uses"):
            Marker.read(note)

    @pytest.mark.parametrize(
        ("marker", "plan"),
        [
            (None, Plan.WRITE),
            (Marker("q", 4, 1, 1), Plan.WRITE),
            (Marker("q", 5, 1, 1), Plan.COMPARE),
            (Marker("q", 6, 1, 1), Plan.REFUSE),
            (Marker("other", 6, 1, 1), Plan.WRITE),
        ],
    )
    def test_the_marker_decides(self, marker: Marker | None, plan: Plan) -> None:
        assert decide(marker, TaskName("s", "q", 5, 0)) is plan


class TestRepeats:
    def test_a_task_that_was_written_is_not_written_again(
        self, topics: Topics, options: SinkOptions, task: TaskName
    ) -> None:
        assert write_exactly_once(rows_of(0, 0), options, task) == (20, False)
        assert write_exactly_once(rows_of(0, 0), options, task) == (20, True)
        backwards = pa.array(range(9, -1, -1))
        reordered = [batch.take(backwards) for batch in rows_of(0, 0)[::-2]]
        assert write_exactly_once(reordered, options, task) == (20, True)
        assert write_exactly_once(rows_of(1, 0), options, replace(task, batch=1)) == (20, False)
        other_part = replace(task, partition=1)
        assert write_exactly_once(rows_of(0, 1), options, other_part) == (20, False)
        assert values(topics, options) == expected((0, 0), (1, 0), (0, 1))

    def test_other_rows_on_a_repeat_are_an_error(
        self, topics: Topics, options: SinkOptions, task: TaskName
    ) -> None:
        write_exactly_once(rows_of(0, 0), options, task)
        for other in (rows_of(0, 1), rows_of(0, 0, 10), []):
            with pytest.raises(ReplayRefused, match="task 0 of batch 0 was written before, with 20 rows"):
                write_exactly_once(other, options, task)
        assert values(topics, options) == expected((0, 0))

    def test_a_checkpoint_that_was_set_back_is_an_error_unless_told_otherwise(
        self, topics: Topics, options: SinkOptions, task: TaskName
    ) -> None:
        write_exactly_once(rows_of(3, 0), options, replace(task, batch=3))
        with pytest.raises(ReplayRefused, match="batch 3 of the same query is written already"):
            write_exactly_once(rows_of(2, 0), options, replace(task, batch=2))
        told = replace(options, rewrites_after_rollback=True)
        assert write_exactly_once(rows_of(2, 0), told, replace(task, batch=2)) == (20, False)
        assert values(topics, options) == expected((2, 0), (3, 0))

    def test_the_marker_of_another_query_is_not_taken_for_ours(
        self, options: SinkOptions, task: TaskName
    ) -> None:
        write_exactly_once(rows_of(5, 0), options, replace(task, batch=5))
        anew = replace(task, query="query-2")
        assert write_exactly_once(rows_of(0, 0), options, anew) == (20, False)

    def test_a_task_without_rows_writes_nothing(self, options: SinkOptions, task: TaskName) -> None:
        assert write_exactly_once([], options, task) == (0, False)
        assert write_exactly_once(rows_of(0, 0, 0), options, task) == (0, False)


class TestFailures:
    def test_an_attempt_that_dies_leaves_nothing_and_the_next_one_writes(
        self, topics: Topics, options: SinkOptions, task: TaskName
    ) -> None:
        def dying() -> Iterator[pa.RecordBatch]:
            yield rows_of(0, 0)[0]
            raise RuntimeError("the task is lost")

        small = replace(options, batch_bytes=1024)  # so that something is sent before the end
        with pytest.raises(RuntimeError, match="the task is lost"):
            write_exactly_once(dying(), small, task)
        assert write_exactly_once(rows_of(0, 0), options, task) == (20, False)
        assert values(topics, options) == expected((0, 0))

    def test_a_twin_that_starts_later_fences_the_first(
        self, topics: Topics, options: SinkOptions, task: TaskName
    ) -> None:
        def overtaken() -> Iterator[pa.RecordBatch]:
            first, _, last = rows_of(0, 0)
            yield first
            assert write_exactly_once(rows_of(0, 0), options, task) == (20, False)
            yield last

        with pytest.raises(SparkPartError, match="another attempt took over, or it was open for longer than"):
            write_exactly_once(overtaken(), replace(options, batch_bytes=1024), task)
        assert write_exactly_once(rows_of(0, 0), options, task) == (20, True)
        assert values(topics, options) == expected((0, 0))

    def test_a_transaction_that_takes_too_long_is_explained(
        self, topics: Topics, options: SinkOptions, task: TaskName
    ) -> None:
        """The coordinator aborts it; here an administrator does, with the same effect."""

        def slow() -> Iterator[pa.RecordBatch]:
            first, _, last = rows_of(0, 0)
            yield first
            BulkProducer(options.client, transactional_id=task.key).close()
            yield last

        with pytest.raises(SparkPartError, match=r"raise the option kafka.transaction.timeout.ms"):
            write_exactly_once(slow(), replace(options, batch_bytes=1024), task)
        assert values(topics, options) == []

    def test_a_timeout_above_what_the_brokers_allow_is_named(
        self, bootstrap: str, topics: Topics, topic: str, task: TaskName
    ) -> None:
        topics.create(topic)
        long = options_for(bootstrap, topic, **{"kafka.transaction.timeout.ms": "2000000000"})
        with pytest.raises(OptionError, match=r"kafka.transaction.timeout.ms: 2000000000 is more than"):
            write_exactly_once(rows_of(0, 0), long, task)

    def test_a_row_that_cannot_be_written_leaves_nothing(
        self, topics: Topics, options: SinkOptions, task: TaskName
    ) -> None:
        bad = pa.record_batch({"value": ["x"], "partition": pa.array([9], pa.int32())})
        with pytest.raises(SparkPartError, match="there is no partition 9"):
            write_exactly_once([*rows_of(0, 0), bad], options, task)
        assert write_exactly_once(rows_of(0, 0), options, task) == (20, False)
        assert values(topics, options) == expected((0, 0))


WORKER = """
import signal
import sys
import pyarrow as pa
from barnabas.spark.exactly_once import TaskName, write_exactly_once
from barnabas.spark.sink_options import parse_sink

def rows():
    yield pa.record_batch({"value": ["x" * 2000, "y"]})
    print("written", flush=True)
    sys.stdin.read()  # as from a JVM that has no more rows yet

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # PySpark's daemon does; it may be ignored here
bootstrap, topic, sink = sys.argv[1:]
options = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "kafka.batch.size": "1"}
write_exactly_once(rows(), parse_sink(options), TaskName(sink, sink, 0, 0))
"""


@pytest.mark.slow
def test_a_worker_whose_jvm_is_gone_aborts_before_it_ends(
    bootstrap: str, topics: Topics, options: SinkOptions, task: TaskName
) -> None:
    command = [sys.executable, "-c", WORKER, bootstrap, str(options.topic), task.sink_id]

    def is_open() -> bool:
        found = topics.admin.list_transactions(states=["Ongoing"])
        return task.key in [each.transactional_id for each in found]

    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "written\n"
        while not is_open():
            assert worker.poll() is None
        worker.send_signal(signal.SIGHUP)  # PySpark's daemon does
        assert worker.wait(30) == -signal.SIGHUP
    assert not is_open()
    assert values(topics, options) == []


@pytest.fixture(scope="module", params=[1, 2])
def transaction_version(request: pytest.FixtureRequest) -> int:
    level: int = request.param
    return level


@pytest.fixture(scope="module")
def behind_proxy(transaction_version: int) -> Iterator[FaultyBroker]:
    """A broker with transactions of either kind, whose answers can be lost on the way."""
    with faulty_broker({"barnabas.transaction.version": str(transaction_version)}) as broker:
        broker.broker.create_topic("marks")
        yield broker
        writing.close_kept()


class TestLostAnswers:
    @pytest.fixture
    def lossy(self, behind_proxy: FaultyBroker, topic: str) -> Iterator[SinkOptions]:
        behind_proxy.broker.create_topic(topic, 3)
        yield options_for(behind_proxy.bootstrap_servers, topic, **{"kafka.max.block.ms": "5000"})
        behind_proxy.proxy.heal()

    @pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
    def test_one_of_any_kind_is_asked_for_again(
        self,
        transaction_version: int,
        behind_proxy: FaultyBroker,
        lossy: SinkOptions,
        task: TaskName,
        api: ApiKey,
    ) -> None:
        if transaction_version > 1 and api in (ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN):
            return  # V2 has no such request
        proxy = behind_proxy.proxy
        before = proxy.lost_answers
        proxy.lose_answers(api, times=1)
        assert write_exactly_once(rows_of(0, 0), lossy, task) == (20, False)
        assert proxy.lost_answers == before + 1
        assert write_exactly_once(rows_of(0, 0), lossy, task) == (20, True)
        with Topics(behind_proxy.direct) as topics:
            assert values(topics, lossy) == expected((0, 0))

    def test_a_commit_that_is_never_answered_fails_and_the_next_attempt_finds_the_rows(
        self, behind_proxy: FaultyBroker, lossy: SinkOptions, task: TaskName
    ) -> None:
        impatient = replace(lossy, client={**lossy.client, "max.block.ms": "400"})
        behind_proxy.proxy.lose_answers(ApiKey.END_TXN)
        with pytest.raises(KafkaError) as caught:
            write_exactly_once(rows_of(0, 0), impatient, task)
        assert caught.value.retriable, "the outcome is open"
        assert write_exactly_once(rows_of(0, 0), lossy, task) == (20, True)
        with Topics(behind_proxy.direct) as topics:
            assert values(topics, lossy) == expected((0, 0))

    @pytest.mark.parametrize("api", [ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT], ids=lambda api: api.name)
    def test_rows_or_a_marker_that_are_never_answered_fail_and_the_next_attempt_writes(
        self, behind_proxy: FaultyBroker, lossy: SinkOptions, task: TaskName, api: ApiKey
    ) -> None:
        limits = {"max.block.ms": "400", "delivery.timeout.ms": "400", "request.timeout.ms": "300"}
        behind_proxy.proxy.lose_answers(api)
        with pytest.raises(KafkaError):
            write_exactly_once(rows_of(0, 0), replace(lossy, client={**lossy.client, **limits}), task)
        behind_proxy.proxy.heal()
        assert write_exactly_once(rows_of(0, 0), lossy, task) == (20, False)
        with Topics(behind_proxy.direct) as topics:
            assert values(topics, lossy) == expected((0, 0))


class Lost(Exception):
    """The end of an attempt that the test chose."""


class Spark:
    """Plays a query: batches in order, each repeated until every task of it is done.

    Attempts die before, in the middle of and behind their work, are run twice at once, and meet a network
    that breaks; after all of that the driver begins a batch anew now and then, as a restart does.
    """

    def __init__(self, broker: FaultyBroker, options: SinkOptions, seed: int) -> None:
        self._broker = broker
        self._options = options
        self._random = random.Random(seed)
        self.written = 0
        self.there = 0

    def run(self, batches: int, tasks: int) -> None:
        for batch in range(batches):
            done: set[int] = set()
            while len(done) < tasks:
                if self._random.random() < 0.1:
                    done.clear()  # the driver was killed: it knows of nothing
                self._disturb()
                for partition in range(tasks):
                    if partition not in done and self._attempt(TaskName("s", "q", batch, partition)):
                        done.add(partition)
        self._broker.proxy.heal()

    def _disturb(self) -> None:
        match self._random.randrange(7):
            case 0:
                self._broker.proxy.cut()
            case 1:
                self._broker.proxy.cut_after(self._random.randrange(2_000, 20_000))
            case 2:
                self._broker.restart()
            case 3:
                self._broker.proxy.lose_answers(self._random.choice(APIS), self._random.randrange(1, 8))
            case _:
                self._broker.proxy.heal()

    def _attempt(self, task: TaskName) -> bool:
        twin = None
        if self._random.random() < 0.25:
            twin = threading.Thread(target=self._one, args=(task, self._random.random()))
            twin.start()
        is_done = self._one(task, self._random.random())
        if twin is not None:
            twin.join()
        return is_done

    def _one(self, task: TaskName, chance: float) -> bool:
        def rows() -> Iterator[pa.RecordBatch]:
            for number, batch in enumerate(rows_of(task.batch, task.partition)):
                if chance < 0.2 and number == int(chance * 15):
                    raise Lost
                yield batch

        try:
            _, was_there = write_exactly_once(rows(), self._options, task)
        except (BarnabasError, Lost):
            return False
        self.written += not was_there
        self.there += was_there
        return chance < 0.9  # the rest is written, but the driver never hears of it


def play(seed: int, batches: int, tasks: int) -> None:
    with faulty_broker({"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}) as broker:
        options = replace(
            options_for(
                broker.bootstrap_servers,
                "out",
                **{
                    "kafka.request.timeout.ms": "2000",
                    "kafka.max.block.ms": "4000",
                    "kafka.delivery.timeout.ms": "4000",
                },
            ),
            batch_bytes=1024,
        )
        broker.broker.create_topic("out", 3)
        broker.broker.create_topic("marks")
        spark = Spark(broker, options, seed)
        spark.run(batches, tasks)
        writing.close_kept()
        with Topics(broker.direct) as topics:
            found = values(topics, options)
        assert found == expected(*[(batch, part) for batch in range(batches) for part in range(tasks)]), (
            f"seed {seed}"
        )


@pytest.mark.slow
def test_rows_are_there_once_whatever_happens_to_tasks_and_connections() -> None:
    play(seed=4, batches=6, tasks=2)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(40))
def test_rows_are_there_once_for_many_seeds(seed: int) -> None:
    play(seed=seed, batches=25, tasks=3)


def test_two_queries_may_have_the_same_sink_id_one_after_the_other(
    topics: Topics, options: SinkOptions, task: TaskName
) -> None:
    for query in ("first", "second"):
        for batch in range(2):
            named = replace(task, query=query, batch=batch)
            assert write_exactly_once(rows_of(batch, 0), options, named) == (20, False)
    assert values(topics, options) == sorted(2 * expected((0, 0), (1, 0)))
