"""What a single broker writes when it starts: it registers, becomes controller, and leads anew.

S1  The controller epoch rises at every start.
S2  The leader epoch of every partition rises at every start and never goes back, so that a client or a
    follower that still believes in the time before the restart is told.

Reads nothing by itself: the image is what `load_image` of the broker found in the tree.
"""

from collections.abc import Sequence
from dataclasses import replace

from barnabas.controller.changes import Change
from barnabas.metadata.deltas import BrokerUp, ControllerChanged, Delta, PartitionChanged
from barnabas.metadata.image import BrokerImage, ClusterImage, Endpoint
from barnabas.store import paths
from barnabas.store.documents import (
    BrokerRegistration,
    ControllerRegistration,
    PartitionState,
    encode_controller_epoch,
)
from barnabas.store.tree import Create, Operation, SetData

__all__ = ["register", "take_leadership"]


def register(
    image: ClusterImage,
    *,
    node_id: int,
    endpoints: Sequence[Endpoint],
    rack: str | None,
    now_ms: int,
    controller_epoch_exists: bool,
) -> Change:
    """The broker's own node, and the controller's, in one transaction; both are ephemeral."""
    epoch = image.controller_epoch + 1
    document = encode_controller_epoch(epoch)
    registration = BrokerRegistration(tuple(endpoints), now_ms, rack)
    operations: tuple[Operation, ...] = (
        Create(paths.broker(node_id), registration.encode(), ephemeral=True),
        Create(paths.CONTROLLER, ControllerRegistration(node_id, now_ms).encode(), ephemeral=True),
        SetData(paths.CONTROLLER_EPOCH, document)
        if controller_epoch_exists
        else Create(paths.CONTROLLER_EPOCH, document),
    )
    broker = BrokerImage(
        id=node_id, epoch=epoch, endpoints={endpoint.listener: endpoint for endpoint in endpoints}, rack=rack
    )
    return Change(operations, (ControllerChanged(node_id, epoch), BrokerUp(broker)))


def take_leadership(image: ClusterImage, node_id: int) -> Change:
    """Every partition with a replica here is led from here, in its next leader epoch (S2)."""
    operations: list[Operation] = []
    deltas: list[Delta] = []
    for tp, old in image.partitions_of(node_id):
        state = replace(
            old,
            leader=node_id,
            leader_epoch=old.leader_epoch + 1,
            isr=(node_id,),
            partition_epoch=old.partition_epoch + 1,
        )
        document = PartitionState(state.leader, state.leader_epoch, state.isr, image.controller_epoch)
        operations.append(SetData(paths.partition_state(tp), document.encode()))
        deltas.append(PartitionChanged(tp.topic, tp.partition, state))
    return Change(tuple(operations), tuple(deltas))
