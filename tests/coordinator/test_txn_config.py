"""barnabas.coordinator.txn_config: Kafka's names and defaults."""

from barnabas.coordinator.txn_config import TRANSACTIONS, TransactionSettings


def test_the_defaults_are_kafka_s() -> None:
    settings = TRANSACTIONS.parse({})
    assert settings.integer("transaction.state.log.num.partitions") == 50
    assert settings.integer("transaction.state.log.replication.factor") == 3
    assert settings.integer("transaction.state.log.min.isr") == 2
    assert settings.integer("transaction.state.log.segment.bytes") == 104_857_600
    assert settings.integer("transaction.state.log.load.buffer.size") == 5_242_880
    assert TransactionSettings.of(settings) == TransactionSettings(
        timeout_ms_max=900_000,
        id_expiration_ms=604_800_000,
        timeout_check_interval_ms=10_000,
        expiration_check_interval_ms=3_600_000,
        verifies_partitions=True,
    )


def test_every_setting_is_explained_and_bounded() -> None:
    faults = TRANSACTIONS.faults(
        {
            "transaction.max.timeout.ms": "0",
            "transaction.state.log.num.partitions": "0",
            "barnabas.transaction.version": "3",
        }
    )
    assert len(faults) == 3
