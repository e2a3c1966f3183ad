"""What real clients asked Apache Kafka, asked again: our answers agree, but for what is listed here."""

import re

import pytest

from barnabas.broker.handlers import HANDLERS
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.testing import Broker
from tests.broker._replay import Replay, api_name, differences, response_of
from tests.broker._wire import WireClient
from tests.protocol.recorded import BROKERS, Exchange, exchanges

SERVED = {handler.key: range(handler.lowest, handler.highest + 1) for handler in HANDLERS}

BETWEEN_BROKERS = {
    (ApiKey.ADD_PARTITIONS_TO_TXN, 4),
    (ApiKey.ADD_PARTITIONS_TO_TXN, 5),
    (ApiKey.WRITE_TXN_MARKERS, 1),
    (ApiKey.WRITE_TXN_MARKERS, 2),
}
# Its batches carry sequences of which some were not recorded, so there is nothing to end either.
SKIPPING_PRODUCER = {
    ("kafka-producer-txn", ApiKey.PRODUCE),
    ("kafka-producer-txn", ApiKey.END_TXN),
}

# Answers that a client asks again after.
TRANSIENT = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}

# Fields that may differ, and why.  Everything else must agree.
ACCEPTED = [
    (r".*\.(host|port|cluster_id)", "another broker"),
    (r".*\.(topic_id|member_id|leader|client_id|session_id|producer_id)", "made up by each broker"),
    (r".*\.(base_offset|offset|high_watermark|last_stable_offset|log_start_offset)", "a sample was produced"),
    (r".*\.(committed_offset|low_watermark|timestamp|records|aborted_transactions.*)", "the same"),
    (r"FETCH\.responses\[\].*", "sessions of which only some requests were recorded"),
    (r"API_VERSIONS\.(api_keys|supported_features|finalized_features).*", "we offer other versions"),
    (r"METADATA\.topics\[-__consumer_offsets\]", "the recorded broker was in use before"),
    (r".*\[-remote\.log\.(copy|delete\.on)\.disable\]", "there is no tiered storage"),
    (r".*\[-message\.(downconversion\.enable|format\.version)\]", "gone in Apache Kafka 4"),
    (r".*\[min\.insync\.replicas\]\.config_source", "newer KRaft brokers set it for the whole cluster"),
    (r".*\[-message\.timestamp\.difference\.max\.ms\]", "gone in Apache Kafka 4"),
    (r".*\[(log\.)?message\.timestamp\.after\.max\.ms\]\.value", "an hour since Apache Kafka 4"),
    (r".*\.configs\[\+barnabas\..*\]", "settings of our own"),
    (r"FIND_COORDINATOR\.error_message", "the word NONE for no error"),
    (r"SYNC_GROUP\.assignment", "of a rebalance that was not recorded"),
    (r"LIST_TRANSACTIONS\.transaction_states\[.*\]\.transaction_state", "an end that was not recorded"),
    (r"LIST_GROUPS\.groups\[-jna\]", "of the next generation of groups (KIP-848)"),
]


def is_accepted(path: str) -> bool:
    return any(re.fullmatch(pattern, path) for pattern, _ in ACCEPTED)


def conversation(kafka: str) -> list[Exchange]:
    """What is recorded of one broker's life and can be asked of ours."""
    # Members of the next generation of groups (KIP-848) commit in epochs that classic groups do not have.
    modern = {e.client for e in exchanges(kafka) if e.api_key == ApiKey.CONSUMER_GROUP_HEARTBEAT}
    return [
        exchange
        for exchange in exchanges(kafka)
        if exchange.response
        and (exchange.api_key, exchange.api_version) not in BETWEEN_BROKERS
        and exchange.api_version in SERVED.get(ApiKey(exchange.api_key), ())
        and exchange.client not in modern
        and (exchange.client, exchange.api_key) not in SKIPPING_PRODUCER
        and getattr(response_of(exchange), "error_code", 0) not in TRANSIENT
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kafka", BROKERS)
def test_our_answers_agree(kafka: str) -> None:
    wrong: list[str] = []
    with Broker() as broker, WireClient(broker.bootstrap_servers) as wire:
        replay = Replay(wire)
        for exchange in conversation(kafka):
            recorded, ours = response_of(exchange), replay.ask(exchange)
            replay.learn_generation(exchange, ours)
            replay.learn(recorded, ours)
            wrong += [
                f"{exchange.client} v{exchange.api_version} {path}: {old!r}, ours {new!r}"
                for path, old, new in differences(recorded, ours, api_name(exchange))
                if not is_accepted(path)
            ]
    assert wrong == [], "\n".join(wrong)
