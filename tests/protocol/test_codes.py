"""The error table against kio's, which is made from Kafka's source."""

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from barnabas.protocol.codes import ErrorCode, code_name

# InvalidMetadataException in Kafka's client: retried only after new metadata (WIRE §2.16).
REFRESHING = {3, 5, 6, 9, 13, 56, 72, 74, 80, 83, 84, 100, 103}


@pytest.mark.parametrize("theirs", list(KioErrorCode), ids=lambda code: str(code.name))
def test_number_name_and_retriable_are_kafkas(theirs: KioErrorCode) -> None:
    ours = ErrorCode(int(theirs))
    assert ours.name.lower() == theirs.name
    assert ours.retriable == theirs.retriable


def test_there_is_no_code_that_kafka_lacks() -> None:
    assert {int(code) for code in ErrorCode} == {int(code) for code in KioErrorCode}


def test_codes_that_refresh_metadata_are_retriable() -> None:
    assert {int(code) for code in ErrorCode if code.refreshes_metadata} == REFRESHING
    assert all(ErrorCode(number).retriable for number in REFRESHING)


def test_every_code_has_a_sentence_of_its_own() -> None:
    texts = [code.text for code in ErrorCode]
    assert all(text.endswith(".") for text in texts)
    assert len(set(texts)) == len(texts)


def test_a_code_from_a_newer_peer_still_has_a_name() -> None:
    assert code_name(6) == "NOT_LEADER_OR_FOLLOWER"
    assert code_name(9999) == "ERROR_9999"
