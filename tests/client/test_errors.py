"""Errors carry the code, say if trying again can help, and survive a trip to another process."""

import pickle

import pytest

from barnabas.base.errors import BarnabasError, Closed
from barnabas.client import errors
from barnabas.client.errors import (
    AddressFailure,
    BadAnswer,
    ClientClosed,
    ConnectionLost,
    KafkaError,
    NoBrokersAvailable,
    ProducerFenced,
    RequestTimedOut,
    TopicAuthorization,
    UnknownTopic,
    error_for,
)
from barnabas.protocol.codes import ErrorCode


class TestErrorFor:
    @pytest.mark.parametrize("code", [code for code in ErrorCode if code is not ErrorCode.NONE])
    def test_every_code_becomes_an_error_with_that_code(self, code: ErrorCode) -> None:
        error = error_for(code)
        assert error.code is code
        assert error.number == code
        assert error.retriable is code.retriable
        assert error.refreshes_metadata is code.refreshes_metadata
        assert str(error) == f"{code.text} ({code.name})"

    @pytest.mark.parametrize(
        ("code", "kind"),
        [
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UnknownTopic),
            (ErrorCode.UNKNOWN_TOPIC_ID, UnknownTopic),
            (ErrorCode.TOPIC_AUTHORIZATION_FAILED, TopicAuthorization),
            (ErrorCode.REQUEST_TIMED_OUT, RequestTimedOut),
            (ErrorCode.INVALID_PRODUCER_EPOCH, ProducerFenced),
            (ErrorCode.NETWORK_EXCEPTION, ConnectionLost),
            (ErrorCode.KAFKA_STORAGE_ERROR, KafkaError),
        ],
    )
    def test_a_code_that_users_catch_has_its_class(self, code: ErrorCode, kind: type[KafkaError]) -> None:
        assert type(error_for(code)) is kind

    def test_the_brokers_own_words_and_the_subject_are_told(self) -> None:
        error = error_for(17, "no slashes", subject="topic 'a/b'")
        assert str(error) == "topic 'a/b': no slashes (INVALID_TOPIC_EXCEPTION)"

    def test_a_code_of_the_future_keeps_its_number(self) -> None:
        error = error_for(4711)
        assert (error.code, error.number, error.retriable) == (ErrorCode.UNKNOWN_SERVER_ERROR, 4711, False)
        assert "ERROR_4711" in str(error)


class TestErrors:
    def test_every_class_is_exported_and_is_one_of_ours(self) -> None:
        for name in errors.__all__:
            found = getattr(errors, name)
            if isinstance(found, type) and issubclass(found, Exception):
                assert issubclass(found, KafkaError)
                assert issubclass(found, BarnabasError)
                assert found.__doc__

    def test_the_repr_says_whether_to_try_again(self) -> None:
        assert repr(ConnectionLost("gone")) == "ConnectionLost('gone', NETWORK_EXCEPTION, retriable)"
        assert repr(BadAnswer("rubbish")) == "BadAnswer('rubbish', NETWORK_EXCEPTION, final)"

    def test_a_closed_client_is_closed_in_the_sense_of_the_base_too(self) -> None:
        assert isinstance(ClientClosed(), Closed)
        assert not ClientClosed().retriable

    def test_they_survive_pickling(self) -> None:
        failure = AddressFailure("h:1", "DNS", "unknown", 3)
        for error in (error_for(4711, subject="x"), ClientClosed(), NoBrokersAvailable.after((failure,))):
            copy = pickle.loads(pickle.dumps(error))
            assert (type(copy), str(copy), copy.__dict__) == (type(error), str(error), error.__dict__)


class TestNoBrokersAvailable:
    def test_each_address_is_named_with_what_failed_there(self) -> None:
        error = NoBrokersAvailable.after(
            (AddressFailure("a:1", "DNS", "not known"), AddressFailure("b:2", "connect", "refused"))
        )
        assert str(error) == "no broker could be reached:\n  a:1: DNS: not known\n  b:2: connect: refused"
        assert error.retriable

    def test_an_advertised_address_is_named_with_its_broker(self) -> None:
        failure = AddressFailure("kafka:9092", "DNS", "not known", 1)
        assert str(NoBrokersAvailable.after((failure,), bootstrap="localhost:9092")) == (
            "localhost:9092 answers, but no address that it names for the brokers can be reached:\n"
            "  kafka:9092 (advertised by broker 1): DNS: not known\n"
            "  advertised.listeners of these brokers must name addresses that this machine can reach"
        )

    def test_a_cluster_without_brokers_is_told_apart(self) -> None:
        assert str(NoBrokersAvailable.after((), bootstrap="h:1")) == (
            "h:1 answers, but names no broker; the cluster may still be starting"
        )
