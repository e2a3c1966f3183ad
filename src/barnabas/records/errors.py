"""What can be wrong with bytes that claim to be records.

    RecordError
    ├── CorruptBatch      the bytes are damaged: a size, a magic, a checksum or a stream does not hold
    ├── InvalidRecord     the bytes are sound, what they say is refused
    ├── UnsupportedCodec  a compression that does not exist, or not in that format
    └── TooLarge          the data would grow past a limit of ours

Each is the sender's fault.  Code that reads its own disk turns them into its own storage fault.
"""

from barnabas.base.errors import PeerFault

__all__ = ["CorruptBatch", "InvalidRecord", "RecordError", "TooLarge", "UnsupportedCodec"]


class RecordError(PeerFault):
    """Root of the faults that records can have; raise one of its subclasses."""


class CorruptBatch(RecordError):
    """The bytes were damaged or cut, or never were a batch."""


class InvalidRecord(RecordError):
    """A well-formed batch or record says something that no correct sender says."""


class UnsupportedCodec(RecordError):
    """The compression id is unknown, or its codec does not exist in the wanted format."""


class TooLarge(RecordError):
    """Decompressed data, or a record to be built in, passes the given limit."""
