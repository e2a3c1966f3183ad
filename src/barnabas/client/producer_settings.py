"""The producer's settings turned into the values its parts take, with Java's rules between them.

Idempotence is on unless a setting that it cannot live with was given: acks other than all, no retries, more
than five requests in flight.  Asking for both is refused.
"""

from typing import Final

from barnabas.base.errors import ConfigFault
from barnabas.client.accumulator import Limits
from barnabas.client.config import ClientSettings
from barnabas.client.producer_batch import Compression
from barnabas.client.sender import SenderSettings
from barnabas.records.codecs import Codec

__all__ = ["limits_of", "sender_settings_of", "uses_idempotence"]

_IN_FLIGHT_MAX: Final = 5  # how many batches per producer and partition a broker remembers
_ACKS: Final = {"all": -1, "-1": -1, "0": 0, "1": 1}


def uses_idempotence(settings: ClientSettings) -> bool:
    """Whether sequences are used.  Raises ConfigFault when it is asked for and cannot be."""
    if not settings.boolean("enable.idempotence"):
        return False
    conflicts = []
    if _ACKS[settings.string("acks")] != -1:
        conflicts.append("acks=all")
    if settings.integer("retries") == 0:
        conflicts.append("retries above 0")
    if settings.integer("max.in.flight.requests.per.connection") > _IN_FLIGHT_MAX:
        conflicts.append(f"max.in.flight.requests.per.connection of at most {_IN_FLIGHT_MAX}")
    if conflicts and "enable.idempotence" in settings.given:
        raise ConfigFault(f"enable.idempotence: needs {' and '.join(conflicts)}")
    return not conflicts


def limits_of(settings: ClientSettings) -> Limits:
    linger_ms = settings.integer("linger.ms")
    needed_ms = linger_ms + settings.integer("request.timeout.ms")
    delivery_timeout_ms = settings.integer("delivery.timeout.ms")
    if delivery_timeout_ms < needed_ms:
        if "delivery.timeout.ms" in settings.given:
            raise ConfigFault(
                "delivery.timeout.ms: must be at least linger.ms + request.timeout.ms, "
                f"which is {needed_ms}; {delivery_timeout_ms} is less"
            )
        delivery_timeout_ms = needed_ms
    return Limits(
        batch_bytes=settings.integer("batch.size"),
        linger_ms=linger_ms,
        delivery_timeout_ms=delivery_timeout_ms,
        request_bytes_max=settings.integer("max.request.size"),
    )


def sender_settings_of(settings: ClientSettings) -> SenderSettings:
    return SenderSettings(
        acks=_ACKS[settings.string("acks")],
        retries=settings.integer("retries"),
        in_flight_max=settings.integer("max.in.flight.requests.per.connection"),
        request_timeout_ms=settings.integer("request.timeout.ms"),
        retry_backoff_ms=settings.integer("retry.backoff.ms"),
        retry_backoff_max_ms=settings.integer("retry.backoff.max.ms"),
        compression=_compression(settings),
    )


def _compression(settings: ClientSettings) -> Compression:
    codec = Codec[settings.string("compression.type").upper()]
    name = f"compression.{codec.name.lower()}.level"
    if name not in settings.given:
        return Compression(codec)
    level = settings.integer(name)
    return Compression(codec, None if codec is Codec.GZIP and level == -1 else level)
