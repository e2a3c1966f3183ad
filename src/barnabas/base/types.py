"""Names for the numbers that must not be mixed up, and the pair that names a partition.

The NewTypes cost nothing at run time beyond the call that makes one, so hot loops annotate with
them and convert only where a value enters.
"""

import base64
import binascii
from typing import NamedTuple, NewType

__all__ = [
    "ZERO_UUID",
    "Epoch",
    "NodeId",
    "Offset",
    "Position",
    "TopicPartition",
    "Uuid",
    "uuid_from_text",
    "uuid_text",
]

Offset = NewType("Offset", int)  # logical place of a record in its partition
Position = NewType("Position", int)  # byte in a file
Epoch = NewType("Epoch", int)  # leader, controller or producer epoch
NodeId = NewType("NodeId", int)

# 16 raw bytes, as on the wire: uuid.UUID costs a microsecond to make and hashes in Python code.
UUID_BYTES = 16
Uuid = bytes
ZERO_UUID: Uuid = bytes(UUID_BYTES)


class TopicPartition(NamedTuple):
    """One partition of one topic; prints as Kafka names its folder."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def uuid_text(uuid: Uuid) -> str:
    """The id as Kafka prints it: url-safe base64 of the 16 bytes, without padding."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode("ascii")


def uuid_from_text(text: str) -> Uuid:
    """The inverse of `uuid_text`.  Raises ValueError when `text` is not such an id."""
    try:
        raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{text!r} is not a topic id: {error}") from error
    if len(raw) != UUID_BYTES:
        raise ValueError(f"{text!r} is not a topic id: {len(raw)} bytes instead of 16")
    return raw
