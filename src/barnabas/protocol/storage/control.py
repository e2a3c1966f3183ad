"""Key and value of the control record that ends a transaction in a partition."""

from barnabas.protocol.fields import int16, int32
from barnabas.protocol.schema import data
from barnabas.protocol.storage.stored import Stored


@data(versions="0")
class ControlRecordType(Stored):
    type: int = int16()


@data(versions="0")
class EndTxnMarker(Stored):
    coordinator_epoch: int = int32()
