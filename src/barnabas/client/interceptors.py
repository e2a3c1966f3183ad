"""Hooks around sending: change or watch each record before, watch its outcome after.

An interceptor has one or both of

    on_send(record: ProducerRecord) -> ProducerRecord | None      in the caller's thread, before serializers
    on_acknowledgement(metadata: RecordMetadata, error: KafkaError | None)     on the client's thread

I1  they run in the order given; each sees the record as the one before left it
I2  one that raises never stops a record: it is logged, and the record goes on as it was before that one
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from barnabas.base.errors import ConfigFault
from barnabas.client.config import ClientSettings
from barnabas.client.delivery import RecordMetadata
from barnabas.client.errors import KafkaError

__all__ = ["Headers", "Interceptors", "ProducerRecord"]

_log: Final = logging.getLogger("barnabas.client.interceptors")

HeaderValue = bytes | bytearray | memoryview | str | None
Headers = Mapping[str, HeaderValue] | Iterable[tuple[str, HeaderValue]]


@dataclass(slots=True)
class ProducerRecord:
    """A record as the user gave it to `send`."""

    topic: str
    value: Any = None
    key: Any = None
    headers: Headers | None = None
    partition: int | None = None
    timestamp_ms: int | None = None


class Interceptors:
    """The chain of one producer.  Raises ConfigFault at construction for what has neither hook."""

    def __init__(self, given: Iterable[object]) -> None:
        self._before: list[Callable[[ProducerRecord], object]] = []
        self._after: list[Callable[[RecordMetadata, KafkaError | None], object]] = []
        self._closing: list[Callable[[], object]] = []
        for item in given:
            interceptor = item() if isinstance(item, type) else item
            before = getattr(interceptor, "on_send", None)
            after = getattr(interceptor, "on_acknowledgement", None)
            if before is None and after is None:
                raise ConfigFault(f"interceptor.classes: {item!r} has neither on_send nor on_acknowledgement")
            if before is not None:
                self._before.append(before)
            if after is not None:
                self._after.append(after)
            if (close := getattr(interceptor, "close", None)) is not None:
                self._closing.append(close)

    @classmethod
    def of(cls, settings: ClientSettings) -> "Interceptors":
        return cls(settings.instances("interceptor.classes"))

    @property
    def changes_records(self) -> bool:
        return bool(self._before)

    @property
    def watches_outcomes(self) -> bool:
        return bool(self._after)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        for hook in self._before:
            copy = replace(record)  # so that a hook that fails half-way leaves nothing behind (I2)
            try:
                changed = hook(copy)
            except Exception:
                _log.warning("on_send of %r failed; the record is sent without it", hook, exc_info=True)
                continue
            if changed is None:
                record = copy
            elif isinstance(changed, ProducerRecord):
                record = changed
            else:
                _log.warning("on_send of %r gave %s instead of a record", hook, type(changed).__name__)
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: KafkaError | None) -> None:
        for hook in self._after:
            try:
                hook(metadata, error)
            except Exception:
                _log.warning("on_acknowledgement of %r failed", hook, exc_info=True)

    def close(self) -> None:
        for close in self._closing:
            try:
                close()
            except Exception:
                _log.warning("close of an interceptor failed", exc_info=True)
