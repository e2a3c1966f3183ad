"""A message that is stored or embedded with its version, an int16, before it."""

from struct import Struct as Layout
from typing import ClassVar, Final, Self

from barnabas.base.buffers import join_buffers
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.schema import Message, Readable

__all__ = ["Stored"]

_PREFIX: Final = Layout(">h")


class Stored(Message):
    """A key or value of an internal topic, or a blob that group members exchange."""

    READS_NEWER: ClassVar[bool] = False  # a newer version is read as our newest

    def encode_versioned(self, version: int) -> bytes:
        """The version and the message in one piece.  Raises ProtocolError."""
        return join_buffers(self.encoder(version)(self, _PREFIX.pack(version)))

    @classmethod
    def decode_versioned(cls, buffer: Readable) -> Self:
        """The message after its version; bytes fields are views of `buffer`.  Raises ProtocolError."""
        version = stored_version(buffer)
        if cls.READS_NEWER and version > cls.VERSIONS.high:
            version = cls.VERSIONS.high
        return cls.decode(version, memoryview(buffer)[_PREFIX.size :])


def stored_version(buffer: Readable) -> int:
    """The int16 that a stored message starts with."""
    if len(buffer) < _PREFIX.size:
        raise DecodeError(f"{len(buffer)} bytes hold no version")
    version: int = _PREFIX.unpack_from(buffer)[0]
    return version
