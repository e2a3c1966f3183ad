"""Options of the source: Spark's names, defaults and refusals."""

import pickle

import pytest

from barnabas.base.types import TopicPartition
from barnabas.spark.errors import OptionError
from barnabas.spark.options import (
    Assign,
    AtOffsets,
    AtTime,
    AtTimes,
    Edge,
    SourceOptions,
    Subscribe,
    SubscribePattern,
    parse_source,
    plain,
)
from barnabas.spark.topic_patterns import TopicPattern

NEEDED = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}


def batch(**options: str) -> SourceOptions:
    return parse_source({**NEEDED, **options}, stream=False)


def stream(**options: str) -> SourceOptions:
    return parse_source({**NEEDED, **options}, stream=True)


def refusal(without: str = "", **options: str) -> str:
    """What a batch reader says of these options."""
    given = {name: value for name, value in {**NEEDED, **options}.items() if name != without}
    with pytest.raises(OptionError) as caught:
        parse_source(given, stream=False)
    return str(caught.value)


def stream_refusal(**options: str) -> str:
    """What a stream reader says of these options."""
    with pytest.raises(OptionError) as caught:
        parse_source({**NEEDED, **options}, stream=True)
    return str(caught.value)


class TestDefaults:
    def test_of_a_batch_read(self) -> None:
        found = batch()
        assert found.client == {"bootstrap.servers": "localhost:9092"}
        assert found.selection == Subscribe(("orders",))
        assert (found.starting, found.ending) == (Edge.EARLIEST, Edge.LATEST)
        assert found.columns == ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
        assert (found.isolation_level, found.fail_on_data_loss) == ("read_uncommitted", True)
        assert (found.poll_timeout_ms, found.lookup_retries, found.lookup_retry_interval_ms) == (
            120_000,
            3,
            10,
        )

    def test_of_a_stream(self) -> None:
        found = stream()
        assert found.starting is Edge.LATEST
        assert found.max_trigger_delay_ms == 15 * 60_000
        assert (found.max_offsets_per_trigger, found.min_offsets_per_trigger) == (None, None)
        assert found.metadata_ttl_ms == -1

    def test_they_travel_and_do_not_show_settings(self) -> None:
        found = stream(**{"kafka.client.id": "secret"})
        assert pickle.loads(pickle.dumps(found)) == found
        assert "secret" not in repr(found)


class TestSelection:
    def test_topics_by_commas(self) -> None:
        assert batch(subscribe=" a, b,,a ").selection == Subscribe(("a", "b"))

    def test_partitions_by_json(self) -> None:
        found = parse_source(
            {"kafka.bootstrap.servers": "h:1", "assign": '{"a":[1,0],"b":[2]}'}, stream=False
        )
        wanted = (TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 2))
        assert found.selection == Assign(wanted)

    def test_a_pattern(self) -> None:
        found = parse_source({"kafka.bootstrap.servers": "h:1", "subscribePattern": "a.*"}, stream=True)
        assert found.selection == SubscribePattern(TopicPattern("a.*"))

    def test_exactly_one(self) -> None:
        assert refusal(without="subscribe") == (
            "option assign, subscribe, subscribePattern: one of them must be given"
        )
        assert refusal(assign='{"a":[0]}') == "option assign, subscribe: only one of them can be given"

    @pytest.mark.parametrize("text", ["", "nonsense", "[1]", '{"a":1}', '{"a":["x"]}', "{}", '{"a":[-1]}'])
    def test_a_wrong_assign_shows_a_right_one(self, text: str) -> None:
        said = refusal(without="subscribe", assign=text)
        assert said.startswith("option assign: ")
        assert 'expected e.g. {"topicA":[0,1],"topicB":[0,1]}' in said

    def test_names_that_no_topic_can_have(self) -> None:
        wrong = "'ordérs' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        assert refusal(subscribe="orders, ordérs") == f"option subscribe: {wrong}"
        assert refusal(without="subscribe", assign='{"ordérs": [0]}') == f"option assign: {wrong}"

    def test_empty_ones(self) -> None:
        assert refusal(subscribe=" , ") == "option subscribe: no topics are named"
        said = refusal(without="subscribe", subscribePattern=" ")
        assert said == "option subscribePattern: the pattern is empty"


class TestBounds:
    def test_words_in_any_case(self) -> None:
        assert stream(startingOffsets="EARLIEST").starting is Edge.EARLIEST
        assert stream(startingOffsets="Latest").starting is Edge.LATEST

    def test_offsets_by_partition(self) -> None:
        found = stream(startingOffsets='{"b":{"0":-2},"a":{"1":-1,"0":23}}').starting
        assert found == AtOffsets(
            {TopicPartition("a", 0): 23, TopicPartition("a", 1): -1, TopicPartition("b", 0): -2}
        )

    def test_a_time_for_all_wins_over_times_over_offsets(self) -> None:
        by_partition = '{"orders":{"0":5}}'
        times = AtTimes({TopicPartition("orders", 0): 5})
        assert batch(startingOffsetsByTimestamp=by_partition, startingOffsets="earliest").starting == times
        found = batch(startingTimestamp="7", startingOffsetsByTimestamp=by_partition, startingOffsets="x")
        assert found.starting == AtTime(7)
        assert batch(endingTimestamp="9", endingOffsetsByTimestamp=by_partition).ending == AtTime(9)
        assert batch(endingOffsetsByTimestamp=by_partition).ending == times

    def test_a_batch_read_cannot_start_at_its_end_or_end_at_its_start(self) -> None:
        assert "startingOffsets: a batch read cannot start at latest" in refusal(startingOffsets="latest")
        assert "endingOffsets: a batch read cannot end at earliest" in refusal(endingOffsets="earliest")
        said = refusal(startingOffsets='{"orders":{"0":3,"1":-1}}')
        assert said == "option startingOffsets: a batch read of orders-1 cannot start at latest (-1)"
        said = refusal(endingOffsets='{"orders":{"0":-2}}')
        assert said == "option endingOffsets: a batch read of orders-0 cannot end at earliest (-2)"

    def test_both_ends_name_the_same_partitions_in_order(self) -> None:
        said = refusal(startingOffsets='{"o":{"0":3}}', endingOffsets='{"o":{"0":9,"1":9}}')
        assert said == (
            "option endingOffsets: it must name the same partitions as startingOffsets, o-1 among them"
        )
        said = refusal(startingOffsets='{"o":{"0":30}}', endingOffsets='{"o":{"0":9}}')
        assert said == "option endingOffsets: 9 of o-0 is below startingOffsets, 30"
        said = refusal(startingOffsetsByTimestamp='{"o":{"0":30}}', endingOffsetsByTimestamp='{"o":{"0":9}}')
        assert said.startswith("option endingOffsetsByTimestamp: 9 of o-0 is below")

    @pytest.mark.parametrize(
        "text",
        ["ealiest", "{", "[]", '{"o":[1]}', '{"o":{"x":1}}', '{"o":{"0":1.5}}', '{"o":{"0":-3}}', "{}"],
    )
    def test_wrong_offsets_show_right_ones(self, text: str) -> None:
        said = stream_refusal(startingOffsets=text)
        assert said.startswith("option startingOffsets: ")
        assert 'expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}' in said

    @pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
    def test_a_stream_has_no_end(self, name: str) -> None:
        assert stream_refusal(**{name: "1"}).startswith(f"option {name}: a stream has no end")

    def test_times_are_numbers(self) -> None:
        assert refusal(startingTimestamp="now") == "option startingTimestamp: 'now' is not a whole number"

    def test_the_strategy_is_one_of_two(self) -> None:
        assert stream(startingOffsetsByTimestampStrategy="LATEST").starting_after_last == "latest"
        said = refusal(startingOffsetsByTimestampStrategy="skip")
        assert said == "option startingOffsetsByTimestampStrategy: 'skip' is none of error, latest"


class TestLimits:
    def test_all_of_them(self) -> None:
        found = stream(
            maxOffsetsPerTrigger="100",
            minOffsetsPerTrigger="10",
            maxTriggerDelay="2m",
            maxBytesPerTrigger="64m",
            minPartitions="4",
            maxRecordsPerPartition="5",
            minRecordsPerTask="0",
        )
        assert (found.max_offsets_per_trigger, found.min_offsets_per_trigger) == (100, 10)
        assert (found.max_trigger_delay_ms, found.max_bytes_per_trigger) == (120_000, 64 << 20)
        assert (found.min_partitions, found.max_records_per_partition) == (4, 5)
        assert found.min_records_per_task == 0

    def test_the_least_is_not_above_the_most(self) -> None:
        said = stream_refusal(minOffsetsPerTrigger="11", maxOffsetsPerTrigger="10")
        assert said == "option minOffsetsPerTrigger: 11 is higher than maxOffsetsPerTrigger, 10"

    @pytest.mark.parametrize("name", ["minPartitions", "maxRecordsPerPartition", "maxOffsetsPerTrigger"])
    def test_they_are_positive(self, name: str) -> None:
        assert stream_refusal(**{name: "0"}) == f"option {name}: 0 is below 1"
        assert stream_refusal(**{name: "x"}) == f"option {name}: 'x' is not a whole number"

    def test_a_delay_has_a_unit(self) -> None:
        said = stream_refusal(maxTriggerDelay="soon")
        assert said.startswith("option maxTriggerDelay: 'soon' is not a time such as 30s")

    def test_those_of_streams_do_not_hinder_a_batch_read(self) -> None:
        assert batch(maxOffsetsPerTrigger="5").starting is Edge.EARLIEST


class TestColumns:
    def test_headers_on_demand(self) -> None:
        assert batch(includeHeaders="true").columns[-1] == "headers"
        assert batch(includeHeaders="TRUE", columns="value").columns == ("value", "headers")

    def test_some_in_the_order_given(self) -> None:
        assert batch(columns="offset, timestamptype,headers").columns == (
            "offset",
            "timestampType",
            "headers",
        )

    def test_unknown_and_double_ones(self) -> None:
        assert refusal(columns="values").startswith("option columns: no column is called 'values'; there are")
        assert refusal(columns="key,key") == "option columns: key is named twice"
        assert refusal(includeHeaders="yes") == "option includeHeaders: 'yes' is neither true nor false"


class TestClientSettings:
    def test_bootstrap_servers_are_required(self) -> None:
        said = refusal(without="kafka.bootstrap.servers")
        assert said.startswith("option kafka.bootstrap.servers: it must be given")

    @pytest.mark.parametrize(
        "name",
        [
            "auto.offset.reset",
            "key.deserializer",
            "value.deserializer",
            "enable.auto.commit",
            "interceptor.classes",
        ],
    )
    def test_what_spark_refuses_is_refused_with_the_reason(self, name: str) -> None:
        said = refusal(**{f"kafka.{name}": "x"})
        assert said.startswith(f"option kafka.{name}: this setting is not supported; ")

    def test_the_clients_own_table_checks_the_rest(self) -> None:
        assert "fetch.max.bytes" in refusal(**{"kafka.fetch.max.byte": "1"})
        assert refusal(**{"kafka.fetch.max.bytes": "x"}).startswith("option kafka.fetch.max.bytes: ")

    def test_settings_of_javas_client_without_effect_pass(self) -> None:
        for name in (
            "receive.buffer.bytes",
            "group.remote.assignor",
            "socket.connection.setup.timeout.max.ms",
        ):
            assert name not in batch(**{f"kafka.{name}": "1"}).client

    def test_options_and_settings_of_a_writer_pass(self) -> None:
        found = batch(topic="out", delivery="exactly-once", **{"kafka.acks": "all", "kafka.client.id": "x"})
        assert found.client == {"bootstrap.servers": "localhost:9092", "client.id": "x"}

    def test_isolation(self) -> None:
        for value in ("read_committed", " read_committed\n"):
            assert batch(**{"kafka.isolation.level": value}).isolation_level == "read_committed"

    @pytest.mark.parametrize("name", ["sasl.jaas.config", "ssl.truststore.location"])
    def test_what_connections_cannot_do_yet_is_said(self, name: str) -> None:
        said = refusal(**{f"kafka.{name}": "x"})
        assert said == f"option kafka.{name}: connections are plain so far: no login, no encryption"


class TestNames:
    def test_any_case(self) -> None:
        assert stream(STARTINGOFFSETS="earliest", maxoffsetspertrigger="3").max_offsets_per_trigger == 3

    def test_an_unknown_one_is_answered_with_the_nearest(self) -> None:
        said = refusal(startingOffset="earliest")
        assert said == "option startingOffset: there is no such option; did you mean startingOffsets?"
        assert refusal(zzz="1").endswith("there is no such option; docs/spark.md lists all options")

    def test_sparks_own_pass(self) -> None:
        assert batch(checkpointLocation="/x", path="/y", owner="me").selection == Subscribe(("orders",))

    def test_options_of_a_catalog_table_come_with_a_prefix(self) -> None:
        assert plain({"option.subscribe": "a", "subscribe": "a", "owner": "x"}) == {
            "subscribe": "a",
            "owner": "x",
        }

    def test_a_catalog_table_that_lost_its_options_says_what_to_do(self) -> None:
        with pytest.raises(OptionError, match="CREATE TEMPORARY VIEW"):
            parse_source({}, stream=False)


class TestGroup:
    def test_by_query_name_or_exactly(self) -> None:
        assert stream(queryName="orders").group == "spark:orders"
        assert stream(**{"kafka.group.id": "mine", "queryName": "x"}).group == "mine"
        assert stream().group is None

    def test_it_can_be_left_out(self) -> None:
        assert stream().commit_progress is True
        assert stream(commitProgress="false").commit_progress is False
