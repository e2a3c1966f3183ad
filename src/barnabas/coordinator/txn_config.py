"""Settings of the transaction coordinator, with Kafka's names and defaults."""

from dataclasses import dataclass

from barnabas.base.config import ConfigTable, Key, Kind, Live, Settings, at_least, between

__all__ = ["TRANSACTIONS", "TransactionSettings"]

TRANSACTIONS = ConfigTable(
    Key(
        "transaction.max.timeout.ms",
        900_000,
        at_least(1),
        doc="Longest transaction timeout a producer may ask for.",
    ),
    Key(
        "transactional.id.expiration.ms",
        604_800_000,
        at_least(1),
        doc="A transactional id that was not used for this long, and has no transaction open, is forgotten.",
    ),
    Key(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        at_least(1),
        doc="How often transactions that ran out of their time are looked for, to abort them.",
    ),
    Key(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3_600_000,
        at_least(1),
        doc="How often expired transactional ids are looked for.",
    ),
    Key(
        "transaction.partition.verification.enable",
        True,
        live=Live.CLUSTER,
        doc="Whether a partition asks the coordinator before it takes the first batch of a transaction, "
        "so that no late batch is left hanging behind the transaction's end.",
    ),
    Key(
        "transaction.state.log.num.partitions",
        50,
        at_least(1),
        doc="Partitions of __transaction_state; must not change once the topic exists.",
    ),
    Key(
        "transaction.state.log.replication.factor",
        3,
        at_least(1),
        kind=Kind.SHORT,
        doc="Replicas of __transaction_state; a smaller cluster makes it with as many as it has brokers.",
    ),
    Key(
        "transaction.state.log.min.isr",
        2,
        at_least(1),
        doc="In-sync replicas that a write to __transaction_state needs; no more than the topic has.",
    ),
    Key(
        "transaction.state.log.segment.bytes",
        104_857_600,
        at_least(1),
        doc="Segment size of __transaction_state; small ones are compacted and loaded sooner.",
    ),
    Key(
        "transaction.state.log.load.buffer.size",
        5_242_880,
        at_least(1),
        doc="Bytes read from __transaction_state at a time when transactions are loaded.",
    ),
    Key(
        "barnabas.transaction.version",
        2,
        between(0, 2),
        doc="Level of the feature transaction.version that a new cluster begins with; 2 is KIP-890.",
    ),
)


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """What the coordinator itself reads; the topic and its log read the rest of TRANSACTIONS."""

    timeout_ms_max: int
    id_expiration_ms: int
    timeout_check_interval_ms: int
    expiration_check_interval_ms: int
    verifies_partitions: bool

    @classmethod
    def of(cls, settings: Settings) -> "TransactionSettings":
        """Those of `settings`, which must hold every key of TRANSACTIONS."""
        return cls(
            timeout_ms_max=settings.integer("transaction.max.timeout.ms"),
            id_expiration_ms=settings.integer("transactional.id.expiration.ms"),
            timeout_check_interval_ms=settings.integer(
                "transaction.abort.timed.out.transaction.cleanup.interval.ms"
            ),
            expiration_check_interval_ms=settings.integer(
                "transaction.remove.expired.transaction.cleanup.interval.ms"
            ),
            verifies_partitions=settings.boolean("transaction.partition.verification.enable"),
        )
