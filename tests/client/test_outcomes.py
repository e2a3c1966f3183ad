"""Tests of refusals as errors and of the report of what failed unseen."""

from barnabas.client import delivery
from barnabas.client.errors import DeliveryFailed, KafkaError, RecordTooLarge
from barnabas.client.outcomes import Failures, delivery_error
from barnabas.client.producer_batch import ProducerBatch
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.produce import BatchIndexAndErrorMessage, PartitionProduceResponse
from tests.client._batches import make_batch


def failed(text: str = "refused", count: int = 2) -> ProducerBatch:
    batch = make_batch(count=count)
    error = KafkaError(text, code=ErrorCode.INVALID_RECORD)
    delivery.finish(batch, base_offset=-1, append_time_ms=-1, error=error)
    return batch


class TestErrors:
    def test_a_class_of_its_own_where_there_is_one(self) -> None:
        error = delivery_error(make_batch(), PartitionProduceResponse(error_code=10))
        assert isinstance(error, RecordTooLarge)
        assert str(error) == "t-0: A batch is larger than the topic allows. (MESSAGE_TOO_LARGE)"

    def test_delivery_failed_with_the_code_elsewhere(self) -> None:
        error = delivery_error(make_batch(), PartitionProduceResponse(error_code=87))
        assert isinstance(error, DeliveryFailed)
        assert error.code is ErrorCode.INVALID_RECORD
        assert not error.retriable

    def test_the_broker_s_words_are_in_it(self) -> None:
        answer = PartitionProduceResponse(
            error_code=87,
            error_message="bad",
            record_errors=[BatchIndexAndErrorMessage(batch_index=3, batch_index_error_message="no key")],
        )
        assert str(delivery_error(make_batch(), answer)) == "t-0: bad; record 3: no key (INVALID_RECORD)"
        answer.error_message = None
        answer.record_errors[0].batch_index_error_message = None
        assert str(delivery_error(make_batch(), answer)) == "t-0: record 3: refused (INVALID_RECORD)"

    def test_retriable_ones_stay_so(self) -> None:
        error = delivery_error(make_batch(), PartitionProduceResponse(error_code=6))
        assert error.retriable
        assert error.refreshes_metadata


class TestTheReport:
    def test_nothing_failed(self) -> None:
        assert Failures().take() is None

    def test_it_counts_records_by_cause_and_comes_once(self) -> None:
        failures = Failures()
        for text in ("one", "two", "two"):
            failures.add(failed(text))
        error = failures.take()
        assert isinstance(error, DeliveryFailed)
        assert str(error) == "6 records were not delivered:\n  4: two\n  2: one"
        assert error.code is ErrorCode.INVALID_RECORD
        assert not error.retriable
        assert failures.take() is None

    def test_a_single_one(self) -> None:
        failures = Failures()
        failures.add(failed(count=1))
        assert str(failures.take()) == "1 record was not delivered:\n  1: refused"

    def test_many_causes_are_cut_short(self) -> None:
        failures = Failures()
        for number in range(6):
            failures.add(failed(f"cause {number}"))
        assert str(failures.take()).endswith("and 3 more causes")

    def test_records_that_somebody_saw_are_left_out(self) -> None:
        batch = make_batch(count=1)
        future = batch.add(5, None, b"v", (), None)
        assert future is not None
        delivery.finish(batch, base_offset=-1, append_time_ms=-1, error=KafkaError("no"))
        failures = Failures()
        failures.add(batch)
        future.exception()
        assert str(failures.take()).startswith("1 record was")

    def test_all_seen_is_no_error(self) -> None:
        batch = make_batch(count=0)
        batch.add(5, None, b"v", (), lambda metadata, error: None)
        delivery.finish(batch, base_offset=-1, append_time_ms=-1, error=KafkaError("no"))
        failures = Failures()
        failures.add(batch)
        assert failures.take() is None

    def test_very_many_batches_are_counted_and_not_kept(self) -> None:
        failures = Failures()
        for _ in range(1_200):
            failures.add(failed())
        assert len(failures._batches) == 1_000
        assert str(failures.take()).startswith("2400 records were")
