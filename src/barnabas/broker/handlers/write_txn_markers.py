"""WriteTxnMarkers (key 27), v0-2: ends a producer's transaction in the partitions named.

Coordinators on other brokers send it, and administrators to abort a transaction that hangs.  v2 adds the
transaction version, which matters only where epochs rise with every end.
"""

from collections.abc import Mapping

from barnabas.base.types import TopicPartition
from barnabas.broker.context import Context
from barnabas.broker.gather import Gather
from barnabas.coordinator.txn_ports import Marker
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

Errors = Mapping[TopicPartition, ErrorCode]


def handle(request: WriteTxnMarkersRequest, ctx: Context) -> None:
    def finished(results: dict[int, Errors]) -> None:
        markers = [_result(marker, results[at]) for at, marker in enumerate(request.markers)]
        ctx.reply(WriteTxnMarkersResponse(markers=markers))

    gather: Gather[int, Errors] = Gather(range(len(request.markers)), finished)
    for at, marker in enumerate(request.markers):
        _write(at, marker, ctx, gather)


def _write(at: int, marker: WritableTxnMarker, ctx: Context, gather: Gather[int, Errors]) -> None:
    def done(errors: Errors) -> None:
        gather.done(at, errors)

    ctx.services.markers.write(
        Marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
        ),
        {TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes},
        done,
    )


def _result(marker: WritableTxnMarker, errors: Errors) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=errors[TopicPartition(topic.name, index)]
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )
