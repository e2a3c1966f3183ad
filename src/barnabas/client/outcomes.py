"""Refusals as errors, and the failed records that nobody looked at.

F1  a record whose future was asked, or that had a callback, is not reported again
F2  `take` reports each other failed record once; what was reported is forgotten
"""

from collections import Counter
from typing import Final

from barnabas.client import delivery
from barnabas.client.errors import DeliveryFailed, KafkaError, error_for
from barnabas.client.hot import BatchBase
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.produce import PartitionProduceResponse

__all__ = ["Failures", "delivery_error"]

_KEPT_MAX: Final = 1_000  # batches; of older ones only the numbers are kept
_SHOWN_MAX: Final = 3


def delivery_error(batch: BatchBase, answer: PartitionProduceResponse) -> KafkaError:
    """What a broker said about a batch, as the error that its records get."""
    text = answer.error_message
    if answer.record_errors:
        first = answer.record_errors[0]
        detail = f"record {first.batch_index}: {first.batch_index_error_message or 'refused'}"
        text = f"{text}; {detail}" if text else detail
    error = error_for(answer.error_code, text, subject=f"{batch.topic}-{batch.partition}")
    if type(error) is not KafkaError:
        return error
    return DeliveryFailed(str(error), code=error.code, number=error.number)


class Failures:
    """Failed batches until `take` reports them."""

    def __init__(self) -> None:
        self._batches: list[BatchBase] = []
        self._older: Counter[str] = Counter()
        self._older_code: ErrorCode | None = None

    def add(self, batch: BatchBase) -> None:
        assert batch.error is not None, "only failed batches come here"
        self._batches.append(batch)
        if len(self._batches) > _KEPT_MAX:
            oldest = self._batches.pop(0)
            assert isinstance(oldest.error, KafkaError)
            self._older_code = self._older_code or oldest.error.code
            self._older[str(oldest.error)] += delivery.unseen(oldest)

    def take(self) -> DeliveryFailed | None:
        """One error for all records that failed unseen since the last call, None if there are none."""
        batches, self._batches = self._batches, []
        causes, self._older = self._older, Counter()
        code, self._older_code = self._older_code, None
        for batch in batches:
            if (count := delivery.unseen(batch)) > 0:
                assert isinstance(batch.error, KafkaError)
                causes[str(batch.error)] += count
                code = code or batch.error.code
        lost = causes.total()
        if lost == 0:
            return None
        lines = [f"\n  {count}: {text}" for text, count in causes.most_common(_SHOWN_MAX)]
        more = len(causes) - len(lines)
        if more > 0:
            lines.append(f"\n  and {more} more causes")
        records = "record was" if lost == 1 else "records were"
        return DeliveryFailed(f"{lost} {records} not delivered:{''.join(lines)}", code=code, retriable=False)
