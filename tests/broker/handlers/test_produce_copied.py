"""Produce into topics that keep offsets: what a mirror may do, and what nobody else may."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.records.batch import RecordBatch
from barnabas.records.copied import run_header
from barnabas.testing import Broker
from tests.broker._calls import batch, fetch, list_offset, partition_of, produce, record_bytes
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeTopic

LATEST = -1


def at(offset: int, *values: bytes) -> bytes:
    data = bytearray(batch(*values))
    data[:8] = offset.to_bytes(8, "big")
    return bytes(data)


@pytest.fixture
def kept(make_topic: MakeTopic) -> str:
    return make_topic(barnabas_offsets_kept="true")


def base_offsets(client: WireClient, topic: str) -> list[int]:
    data, found = memoryview(record_bytes(fetch(client, topic, 0))), []
    while data:
        one = RecordBatch(data)
        found.append(one.base_offset)
        data = data[one.size_bytes :]
    return found


class TestRuns:
    @pytest.mark.parametrize("version", [3, 9, 12])
    def test_batches_keep_their_offsets(self, client: WireClient, kept: str, version: int) -> None:
        answer = produce(client, kept, run_header(0) + at(7, b"a", b"b") + at(30, b"c"), version=version)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 7)
        assert base_offsets(client, kept) == [7, 30]
        assert list_offset(client, kept, LATEST).offset == 31

    def test_a_large_run_is_taken_too(self, client: WireClient, kept: str) -> None:
        batches = [at(n, bytes(100_000)) for n in range(0, 60, 3)]
        assert produce(client, kept, run_header(0) + b"".join(batches)).error_code == ErrorCode.NONE
        assert list_offset(client, kept, LATEST).offset == 58

    def test_again_is_a_success_and_changes_nothing(self, client: WireClient, kept: str) -> None:
        for _ in range(2):
            answer = produce(client, kept, run_header(0) + at(7, b"a", b"b"))
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 7)
        assert list_offset(client, kept, LATEST).offset == 9

    def test_behind_a_lost_one_is_out_of_order(self, client: WireClient, kept: str) -> None:
        answer = produce(client, kept, run_header(9) + at(9, b"a"))
        assert answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert answer.error_message is not None
        assert "the run follows offset 9, the log ends at 0" in answer.error_message

    def test_an_ordinary_topic_takes_none(self, client: WireClient, topic: str) -> None:
        assert produce(client, topic, run_header(0) + at(0, b"a")).error_code == ErrorCode.INVALID_RECORD


class TestOthers:
    def test_a_producer_is_told_why(self, client: WireClient, kept: str) -> None:
        answer = produce(client, kept, batch(b"mine"))
        assert answer.error_code == ErrorCode.POLICY_VIOLATION
        assert answer.error_message is not None
        assert "set barnabas.offsets.kept=false" in answer.error_message
        assert produce(client, kept, b"").error_code == ErrorCode.POLICY_VIOLATION
        assert produce(client, kept, None).error_code == ErrorCode.INVALID_RECORD

    def test_after_promotion_offsets_go_on_behind_the_copy(
        self, broker: Broker, client: WireClient, kept: str
    ) -> None:
        produce(client, kept, run_header(0) + at(7, b"a", b"b"))
        log = partition_of(broker, kept).log
        log.config = type(log.config)()
        assert produce(client, kept, batch(b"mine")).base_offset == 9
