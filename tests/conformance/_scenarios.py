"""What every Kafka client must find, whatever its language.

One class per area; the module of a client derives its test classes from these and names the client.  Every
expectation holds for Apache Kafka too, and is checked against it (BARNABAS_CONFORMANCE=kafka).
"""

import time
from collections.abc import Callable

import pytest

from tests.conformance._client import Client, ClientError, Member, Message, eventually
from tests.conformance._servers import Server

CODECS = [
    pytest.param(codec, marks=pytest.mark.needs(codec)) for codec in ("none", "gzip", "snappy", "lz4", "zstd")
]

UNKNOWN_TOPIC_OR_PARTITION = 3
MESSAGE_TOO_LARGE = 10
INVALID_TOPIC = 17
INVALID_TIMESTAMP = 32
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_CONFIG = 40
NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69
GROUP_SUBSCRIBED_TO_TOPIC = 86
INVALID_RECORD = 87


def now_ms() -> int:
    return int(time.time() * 1000)


def samples(client: Client) -> list[Message]:
    """One message of each shape: null, empty, binary, long, with headers; time stands still and falls."""
    start = now_ms() - 60_000
    headers: tuple[tuple[str, bytes | None], ...] = (("trace", b"\x00\xff"), ("empty", b""), ("ключ", b"v"))
    if "header_order" not in client.cannot:
        headers += (("trace", b"again"),)
    if "null_header" not in client.cannot:
        headers += (("null", None),)
    return [
        Message(b"value", b"key", timestamp=start),
        Message(b"value without key", timestamp=start + 1),
        Message(None, b"tombstone", timestamp=start + 1),
        Message(b"", b"", timestamp=start + 5),
        Message(bytes(range(256)), bytes(reversed(range(256))), timestamp=start + 3),
        Message(b"headers", b"h", headers, timestamp=start + 7),
        Message(b"long and easy to pack " * 2000, b"long", timestamp=start + 10_000),
    ]


def numbered(count: int, *, first: int = 0, partition: int | None = None) -> list[Message]:
    return [Message(b"%06d" % number, partition=partition) for number in range(first, first + count)]


def on_partition(messages: list[Message], partition: int) -> list[Message]:
    return [
        Message(each.value, each.key, each.headers, each.timestamp, partition=partition) for each in messages
    ]


def values(messages: list[Message]) -> list[bytes | None]:
    return [each.value for each in messages]


def refused(call: Callable[[], object]) -> int | None:
    """The error code that a call is refused with; fails when it is not refused."""
    with pytest.raises(ClientError) as caught:
        call()
    return caught.value.code


class RecordScenarios:
    @pytest.mark.parametrize("codec", CODECS)
    def test_what_is_produced_is_consumed_byte_for_byte(self, client: Client, topic: str, codec: str) -> None:
        client.create_topic(topic, partitions=2)
        sent = samples(client)
        expected = [(0, offset) for offset in range(len(sent))]
        assert client.produce(topic, on_partition(sent, 0), codec=codec, acks="all") == expected
        expected = [(1, offset) for offset in range(len(sent))]
        assert client.produce(topic, on_partition(sent, 1), codec=codec, acks="1") == expected
        # Nobody repeats what is lost with acks=0, so only a partition that is known to take writes gets it.
        client.produce(topic, on_partition(sent, 1), codec=codec, acks="0")
        for partition, wanted in ((0, sent), (1, sent + sent)):
            got = client.read(topic, len(wanted), partition=partition)
            assert [each.content() for each in got] == wanted
            assert [each.offset for each in got] == list(range(len(wanted)))

    def test_reading_starts_at_the_asked_offset(self, client: Client, topic: str) -> None:
        client.create_topic(topic)
        client.produce(topic, numbered(100), codec="gzip")
        got = client.read(topic, 3, start=97)
        assert [(each.offset, each.value) for each in got] == [
            (97, b"000097"),
            (98, b"000098"),
            (99, b"000099"),
        ]

    def test_a_message_just_below_the_topics_limit_is_taken_and_one_above_is_refused(
        self, client: Client, topic: str
    ) -> None:
        client.create_topic(topic, configs={"max.message.bytes": "200000"})
        client.produce(topic, [Message(b"x" * 199_800, partition=0)], message_bytes_max=500_000)
        too_large = [Message(b"y" * 200_001, partition=0)]
        code = refused(lambda: client.produce(topic, too_large, message_bytes_max=500_000))
        assert code == MESSAGE_TOO_LARGE
        assert client.bounds(topic) == (0, 1)

    def test_a_message_larger_than_the_fetch_size_is_still_read(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"max.message.bytes": "4000000"})
        large = bytes(range(256)) * 12_000
        client.produce(topic, [Message(large), Message(b"after")], message_bytes_max=3_500_000)
        got = client.read(topic, 2, fetch_bytes_max=65_536)
        assert values(got) == [large, b"after"]

    @pytest.mark.needs("idempotent")
    def test_an_idempotent_producer_leaves_each_message_once_and_in_order(
        self, client: Client, topic: str
    ) -> None:
        client.create_topic(topic, partitions=2)
        messages = numbered(600, partition=0) + numbered(600, partition=1)
        client.produce(topic, messages, idempotent=True)
        for partition in range(2):
            got = client.read(topic, 600, partition=partition)
            assert values(got) == values(numbered(600))
            assert client.bounds(topic, partition) == (0, 600)

    def test_a_topic_appears_when_it_is_first_written(self, client: Client, topic: str) -> None:
        client.produce(topic, [Message(b"first")])
        assert sorted(client.describe_topic(topic)) == [0, 1]
        found = [each.value for partition in range(2) for each in self._all(client, topic, partition)]
        assert found == [b"first"]

    def _all(self, client: Client, topic: str, partition: int) -> list[Message]:
        first, end = client.bounds(topic, partition)
        return client.read(topic, end - first, partition=partition) if end > first else []

    def test_a_compacted_topic_refuses_a_message_without_key(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"cleanup.policy": "compact"})
        # Clients older than the code call it "unknown".
        wanted = -1 if "code_87" in client.cannot else INVALID_RECORD
        assert refused(lambda: client.produce(topic, [Message(b"no key")])) == wanted
        client.produce(topic, [Message(b"v", b"k")])
        assert [(each.key, each.value) for each in client.read(topic, 1)] == [(b"k", b"v")]

    def test_a_compacted_topic_keeps_the_last_message_of_each_key(self, client: Client, topic: str) -> None:
        configs = {
            "cleanup.policy": "compact",
            "segment.ms": "1000",
            "min.cleanable.dirty.ratio": "0.01",
            "max.compaction.lag.ms": "1",
        }
        client.create_topic(topic, configs=configs)
        start = now_ms() - 60_000
        for turn in range(3):
            versions = [
                Message(b"%d" % turn, b"key-%d" % key, timestamp=start + turn * 5000) for key in range(4)
            ]
            client.produce(topic, versions, codec="gzip")
        client.produce(topic, [Message(None, b"key-0", timestamp=start + 20_000)])
        # The active segment is never compacted; this message opens one.
        client.produce(topic, [Message(b"end", b"end", timestamp=start + 40_000)])

        def kept() -> list[tuple[int | None, bytes | None, bytes | None]]:
            found = client.read(topic, 1, start=0)
            while found[-1].value != b"end":
                found += client.read(topic, 1, start=(found[-1].offset or 0) + 1)
            return [(each.offset, each.key, each.value) for each in found]

        wanted = [(8 + key, b"key-%d" % key, b"2") for key in range(1, 4)]
        eventually(lambda: kept()[: len(wanted)] == wanted, what="the log compacted")
        assert kept() == [*wanted, (12, b"key-0", None), (13, b"end", b"end")]

    def test_a_topic_may_stamp_the_time_of_arrival(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
        before = now_ms()
        client.produce(topic, [Message(b"v", timestamp=before - 50_000)])
        [got] = client.read(topic, 1)
        assert got.timestamp is not None
        assert before <= got.timestamp <= now_ms()

    def test_a_time_too_far_ahead_is_refused(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"message.timestamp.after.max.ms": "60000"})
        ahead = [Message(b"v", timestamp=now_ms() + 600_000)]
        assert refused(lambda: client.produce(topic, ahead)) == INVALID_TIMESTAMP
        assert client.bounds(topic) == (0, 0)

    def test_old_messages_are_deleted_by_retention(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"segment.ms": "1000", "retention.ms": "30000"})
        old = now_ms() - 60_000
        client.produce(topic, [Message(b"%d" % number, timestamp=old) for number in range(5)])
        client.produce(topic, [Message(b"kept", timestamp=now_ms())])
        eventually(lambda: client.bounds(topic) == (5, 6), what="the old segment being gone")
        # A reader at a deleted offset goes on with the first that is left.
        assert [(each.offset, each.value) for each in client.read(topic, 1)] == [(5, b"kept")]

    def test_offsets_are_found_by_time(self, client: Client, topic: str) -> None:
        client.create_topic(topic)
        start = now_ms() - 100_000
        # Several batches, so that the answer lies inside the log and not only at its first batch.
        for first in range(0, 30, 10):
            client.produce(
                topic,
                [Message(b"%d" % n, timestamp=start + n * 1000) for n in range(first, first + 10)],
                codec="gzip",
            )
        assert client.offset_at(topic, start) == 0
        assert client.offset_at(topic, start - 5000) == 0
        assert client.offset_at(topic, start + 14_001) == 15
        assert client.offset_at(topic, start + 29_000) == 29
        assert client.offset_at(topic, start + 29_001) is None
        assert values(client.read(topic, 15, start=15)) == [b"%d" % n for n in range(15, 30)]

    @pytest.mark.needs("delete_records")
    def test_deleted_records_are_gone_and_reading_goes_on_after_them(
        self, client: Client, topic: str
    ) -> None:
        client.create_topic(topic)
        client.produce(topic, numbered(10))
        assert client.delete_records(topic, before=4) in {4, -1}
        assert client.bounds(topic) == (4, 10)
        # The reader asks for offset 0, is told that it is out of range, and resets to the earliest.
        got = client.read(topic, 6)
        assert [each.offset for each in got] == [4, 5, 6, 7, 8, 9]
        assert client.delete_records(topic, before=-1) in {10, -1}
        assert client.bounds(topic) == (10, 10)


class GroupScenarios:
    def test_members_share_the_partitions_as_they_come_and_go(
        self, client: Client, topic: str, group: str
    ) -> None:
        client.create_topic(topic, partitions=4)
        everything = {(topic, partition) for partition in range(4)}

        def shared(*members: Member) -> bool:
            parts = [each.assignment for each in members]
            return (
                all(parts)
                and set().union(*parts) == everything
                and sum(len(part) for part in parts) == len(everything)
            )

        first = client.member(group, topic)
        eventually(lambda: shared(first), what="all partitions at one member")
        second = client.member(group, topic)
        eventually(lambda: shared(first, second), what="two members that share")
        third = client.member(group, topic)
        eventually(lambda: shared(first, second, third), what="three members that share")
        first.close()
        eventually(lambda: shared(second, third), what="the two that stayed share")
        second.close()
        eventually(lambda: shared(third), what="all partitions at the last member")
        client.produce(topic, [each for p in range(4) for each in numbered(5, first=10 * p, partition=p)])
        got = third.await_received(20)
        expected = sorted((b"%06d" % (10 * p + n), p) for p in range(4) for n in range(5))
        assert sorted((each.value, each.partition) for each in got) == expected

    def test_a_member_that_dies_loses_its_partitions(
        self, client: Client, second_client: Client, topic: str, group: str
    ) -> None:
        client.create_topic(topic, partitions=2)
        stays = client.member(group, topic, session_timeout_ms=2000)
        dies = second_client.member(group, topic, session_timeout_ms=2000)
        eventually(lambda: len(stays.assignment) == 1 == len(dies.assignment), what="a partition each")
        second_client.kill()
        stays.await_assignment((topic, 0), (topic, 1))
        client.produce(topic, numbered(1, partition=0) + numbered(1, first=1, partition=1))
        assert sorted(stays.await_received(2), key=lambda each: each.value or b"")[1].partition == 1

    @pytest.mark.needs("cooperative")
    def test_a_cooperative_group_shares_without_giving_up_what_it_keeps(
        self, client: Client, topic: str, group: str
    ) -> None:
        client.create_topic(topic, partitions=4)
        first = client.member(group, topic, cooperative=True)
        first.await_assignment(*((topic, number) for number in range(4)))
        second = client.member(group, topic, cooperative=True)
        eventually(lambda: len(first.assignment) == 2 == len(second.assignment), what="two each")
        assert not first.assignment & second.assignment
        second.close()
        first.await_assignment(*((topic, number) for number in range(4)))

    def test_a_group_resumes_after_its_commit(self, client: Client, topic: str, group: str) -> None:
        client.create_topic(topic)
        client.produce(topic, numbered(10))
        member = client.member(group, topic)
        assert values(member.await_received(10)) == values(numbered(10))
        member.commit()
        member.close()
        assert client.committed(group, topic) == 10
        client.produce(topic, numbered(5, first=10))
        again = client.member(group, topic)
        assert values(again.await_received(5)) == values(numbered(5, first=10))

    def test_a_new_group_may_start_at_the_end(self, client: Client, topic: str, group: str) -> None:
        client.create_topic(topic)
        client.produce(topic, numbered(5))
        member = client.member(group, topic, reset="latest")
        member.await_assignment((topic, 0))

        # An assigned member may still be looking up where the end is: write until one comes.
        written = iter(range(5, 1000))
        eventually(
            lambda: client.produce(topic, numbered(1, first=next(written))) and member.received,
            what="a message written after the member came",
        )
        got = member.received
        assert got[0].offset is not None
        assert got[0].offset >= 5
        assert [each.offset for each in got] == list(range(got[0].offset, got[0].offset + len(got)))

    def test_without_a_commit_a_group_starts_over(self, client: Client, topic: str, group: str) -> None:
        client.create_topic(topic)
        client.produce(topic, numbered(3))
        member = client.member(group, topic)
        member.await_received(3)
        member.close()
        assert client.committed(group, topic) is None
        assert values(client.member(group, topic).await_received(3)) == values(numbered(3))

    @pytest.mark.needs("static")
    def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(
        self, client: Client, topic: str, group: str
    ) -> None:
        client.create_topic(topic, partitions=2)
        one = client.member(group, topic, instance_id="one", session_timeout_ms=30_000)
        two = client.member(group, topic, instance_id="two", session_timeout_ms=30_000)
        eventually(
            lambda: len(one.assignment) == 1 == len(two.assignment) and one.assignment != two.assignment,
            what="a partition each",
        )
        kept, mine = one.assignment, two.assignment
        rebalances = one.rebalances
        two.close()
        back = client.member(group, topic, instance_id="two", session_timeout_ms=30_000)
        back.await_assignment(*mine)
        assert one.assignment == kept
        assert one.rebalances == rebalances

    def test_a_group_is_listed_described_and_deleted(self, client: Client, topic: str, group: str) -> None:
        client.create_topic(topic, partitions=2)
        member = client.member(group, topic)
        member.await_assignment((topic, 0), (topic, 1))
        assert group in client.groups()
        described = client.describe_group(group)
        assert described["state"].lower() == "stable"
        assert len(described["members"]) == 1
        assert described["members"][0]["client_id"]
        if "describe_assignment" not in client.cannot:
            assert sorted(described["members"][0]["assignment"]) == [[topic, 0], [topic, 1]]
        if "delete_group" not in client.cannot:
            assert refused(lambda: client.delete_group(group)) == NON_EMPTY_GROUP
        member.close()
        eventually(lambda: client.describe_group(group)["state"].lower() == "empty", what="an empty group")
        if "delete_group" not in client.cannot:
            client.delete_group(group)
            assert group not in client.groups()
            assert refused(lambda: client.delete_group(group)) == GROUP_ID_NOT_FOUND

    @pytest.mark.needs("delete_offsets")
    def test_deleted_offsets_are_forgotten(self, client: Client, topic: str, group: str) -> None:
        client.create_topic(topic)
        client.produce(topic, numbered(3))
        member = client.member(group, topic)
        member.await_received(3)
        member.commit()
        assert client.committed(group, topic) == 3
        assert refused(lambda: client.delete_offsets(group, topic)) == GROUP_SUBSCRIBED_TO_TOPIC
        member.close()
        client.delete_offsets(group, topic)
        assert client.committed(group, topic) is None
        assert values(client.member(group, topic).await_received(3)) == values(numbered(3))


class AdminScenarios:
    def test_a_topic_is_created_described_listed_and_deleted(self, client: Client, topic: str) -> None:
        client.create_topic(topic, partitions=3)
        assert topic in client.topics()
        described = client.describe_topic(topic)
        assert sorted(described) == [0, 1, 2]
        for partition in described.values():
            assert partition["replicas"] == [partition["leader"]]
            assert partition["isr"] == [partition["leader"]]
        client.delete_topic(topic)
        eventually(lambda: topic not in client.topics(), what="the topic being gone")

    def test_a_topic_made_again_under_its_name_is_empty(self, client: Client, topic: str) -> None:
        client.create_topic(topic)
        client.produce(topic, numbered(5))
        client.delete_topic(topic)
        eventually(lambda: topic not in client.topics(), what="the topic being gone")
        client.create_topic(topic)
        assert client.produce(topic, numbered(1, first=77)) == [(0, 0)]
        assert client.bounds(topic) == (0, 1)
        assert values(client.read(topic, 1)) == [b"000077"]

    def test_what_cannot_be_created_is_refused_with_its_reason(self, client: Client, topic: str) -> None:
        client.create_topic(topic)
        assert refused(lambda: client.create_topic(topic)) == TOPIC_ALREADY_EXISTS
        assert refused(lambda: client.create_topic("not/a/name")) == INVALID_TOPIC
        assert refused(lambda: client.create_topic(topic + "-r", replicas=3)) == INVALID_REPLICATION_FACTOR
        wrong = {"no.such.setting": "1"}
        assert refused(lambda: client.create_topic(topic + "-c", configs=wrong)) == INVALID_CONFIG
        wrong = {"retention.ms": "soon"}
        assert refused(lambda: client.create_topic(topic + "-d", configs=wrong)) == INVALID_CONFIG

    def test_an_unknown_topic_is_named_as_unknown(self, client: Client, topic: str) -> None:
        assert refused(lambda: client.delete_topic(topic)) == UNKNOWN_TOPIC_OR_PARTITION
        assert refused(lambda: client.create_partitions(topic, 5)) == UNKNOWN_TOPIC_OR_PARTITION
        if "config_errors" not in client.cannot:
            assert refused(lambda: client.topic_configs(topic)) == UNKNOWN_TOPIC_OR_PARTITION

    def test_partitions_are_added_and_never_taken_away(self, client: Client, topic: str) -> None:
        client.create_topic(topic)
        client.create_partitions(topic, 3)
        eventually(lambda: sorted(client.describe_topic(topic)) == [0, 1, 2], what="three partitions")
        assert client.produce(topic, [Message(b"new", partition=2)]) == [(2, 0)]
        assert values(client.read(topic, 1, partition=2)) == [b"new"]
        assert refused(lambda: client.create_partitions(topic, 2)) == INVALID_PARTITIONS

    @pytest.mark.needs("replace_configs")
    def test_settings_of_a_topic_are_shown_and_replaced(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"retention.ms": "3600000"})
        shown = client.topic_configs(topic)
        assert shown["retention.ms"] == "3600000"
        assert shown["cleanup.policy"] == "delete"
        assert shown["max.message.bytes"] == "1048588"
        client.alter_configs(topic, {"cleanup.policy": "compact"})
        eventually(lambda: client.topic_configs(topic)["cleanup.policy"] == "compact", what="the new policy")
        assert client.topic_configs(topic)["retention.ms"] == "604800000"

    @pytest.mark.needs("incremental_alter")
    def test_settings_of_a_topic_are_changed_one_by_one(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"retention.ms": "3600000"})
        client.incremental_alter(topic, {"max.message.bytes": "5000"})
        eventually(lambda: client.topic_configs(topic)["max.message.bytes"] == "5000", what="the setting")
        assert client.topic_configs(topic)["retention.ms"] == "3600000"
        assert refused(lambda: client.produce(topic, [Message(b"x" * 6000)])) == MESSAGE_TOO_LARGE
        client.incremental_alter(topic, {}, delete=["max.message.bytes"])
        eventually(lambda: client.topic_configs(topic)["max.message.bytes"] == "1048588", what="the default")
        client.produce(topic, [Message(b"x" * 6000)])
        assert refused(lambda: client.incremental_alter(topic, {"retention.ms": "x"})) == INVALID_CONFIG
        assert client.topic_configs(topic)["retention.ms"] == "3600000"

    def test_settings_of_the_broker_are_shown(self, client: Client, topic: str) -> None:
        client.create_topic(topic)
        broker_id = client.describe_topic(topic)[0]["leader"]
        shown = client.broker_configs(broker_id)
        assert shown["num.partitions"] == "2"
        assert shown["group.initial.rebalance.delay.ms"] == "0"
        assert shown["log.retention.hours"] == "168"


class RestartScenarios:
    def test_a_client_goes_on_when_the_broker_comes_back_with_a_new_leader_epoch(
        self, own_server: Server, own_client: Client, topic: str, group: str
    ) -> None:
        client = own_client
        client.create_topic(topic, configs={"retention.ms": "7200000"})
        client.produce(topic, numbered(10))
        member = client.member(group, topic)
        member.await_received(10)
        member.commit()

        own_server.stop()
        own_server.start()

        # The same consumer reads on in the new epoch, and a new one reads across both.
        eventually(lambda: self._sees(client, topic), what="the topic after the restart")
        assert client.produce(topic, numbered(10, first=10))[0] == (0, 10)
        eventually(lambda: set(values(member.received)) >= set(values(numbered(20))), what="both epochs")
        assert values(client.read(topic, 20)) == values(numbered(20))
        assert client.committed(group, topic) == 10
        assert client.topic_configs(topic)["retention.ms"] == "7200000"
        member.close()

    def _sees(self, client: Client, topic: str) -> bool:
        """Whether it finds the topic; the first calls may still run into the closed connection."""
        try:
            return topic in client.topics()
        except ClientError as error:
            if error.code is not None and error.code >= 0:
                raise
            return False
