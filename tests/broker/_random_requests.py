"""Requests that decode well and ask for anything: known names and unknown ones, edges of every number."""

import random
from collections.abc import Sequence
from typing import Any

from barnabas.broker.config import BROKER
from barnabas.log.config import TOPIC
from barnabas.protocol.schema import Field, Message, Struct
from barnabas.records.codecs import Codec
from tests.broker._calls import batch

TEXTS = ("known", "g", "", "nowhere", "a b", "__consumer_offsets", "__transaction_state", "1", "x" * 300, "é")
EDGES = {
    "int8": (0, 1, 2, 4, -1, -128, 127),
    "int16": (0, 1, 3, -1, -2, 32767, -32768),
    "uint16": (0, 1, 65535),
    "int32": (0, 1, 2, 5, -1, -2, 2**31 - 1, -(2**31)),
    "int64": (0, 1, 5, -1, -2, -3, 1_000, 2**63 - 1, -(2**63)),
}
WAITS = ("max_wait_ms", "timeout_ms", "rebalance_timeout_ms")
LENGTHS = (0, 1, 1, 2, 3)


class Maker:
    """Messages from one seed; `ids` are topic ids that exist."""

    def __init__(self, seed: int, ids: list[bytes]) -> None:
        self._random = random.Random(seed)
        self._ids = [*ids, bytes(16), b"\x11" * 16]
        self._settings = [key.name for key in (*TOPIC, *BROKER)]

    def message(self, cls: type[Message], version: int) -> Message:
        made = self._struct(cls, version)
        assert isinstance(made, Message)
        return made

    def _struct(self, cls: type[Struct], version: int) -> Struct:
        return cls(**{f.name: self._field(f, version) for f in cls.FIELDS if f.versions.has(version)})

    def _field(self, field: Field, version: int) -> Any:
        choose = self._random
        if field.nullable.has(version) and choose.random() < 0.2:
            return None
        if field.is_array:
            return [self._element(field, version) for _ in range(choose.choice(LENGTHS))]
        return self._element(field, version)

    def _element(self, field: Field, version: int) -> Any:
        choose = self._random
        if field.struct is not None:
            return self._struct(field.struct, version)
        assert field.kind is not None
        kind = field.kind.name
        if field.name in WAITS:
            return choose.choice((0, 1, 5, -1))
        if field.name == "session_timeout_ms":
            return choose.choice((6_000, 10_000, 0))
        if kind in EDGES:
            return choose.choice(EDGES[kind])
        if kind == "string":
            if field.name == "value" or (field.name == "name" and choose.random() < 0.3):
                return choose.choice((*self._settings, "1", "-1", "true", "compact", "lz4", "x"))
            return choose.choice(TEXTS)
        if kind == "records":
            return choose.choice((b"", b"rubbish" * 20, self._batch(), self._batch()[:-3]))
        others: dict[str, Sequence[Any]] = {
            "bool": (False, True),
            "float64": (0.0, 1.5, -1e300),
            "uuid": self._ids,
            "bytes": (b"", b"\0\1", choose.randbytes(30)),
        }
        return choose.choice(others[kind])

    def _batch(self) -> bytes:
        choose = self._random
        return batch(
            *[choose.randbytes(40)] * choose.choice((1, 3)),
            key=choose.choice((None, b"k")),
            codec=choose.choice(list(Codec)),
            producer_id=choose.choice((-1, 5)),
            epoch=choose.choice((-1, 0)),
            sequence=choose.choice((-1, 0, 7)),
            transactional=choose.random() < 0.2,
        )
