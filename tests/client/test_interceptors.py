"""Tests of the interceptor chain: order, and that a broken one never stops a record."""

import logging

import pytest

from barnabas.base.errors import ConfigFault
from barnabas.client.config import PRODUCER, parse
from barnabas.client.delivery import RecordMetadata
from barnabas.client.errors import KafkaError
from barnabas.client.interceptors import Interceptors, ProducerRecord

METADATA = RecordMetadata("t", 0, 5, 1, -1, 1)


class Tag:
    def __init__(self, tag: bytes) -> None:
        self.tag = tag
        self.seen: list[tuple[RecordMetadata, KafkaError | None]] = []
        self.closed = False

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        record.value += self.tag
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: KafkaError | None) -> None:
        self.seen.append((metadata, error))

    def close(self) -> None:
        self.closed = True


class Broken:
    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        record.value = b"half done"
        raise ValueError("boom")

    def on_acknowledgement(self, metadata: RecordMetadata, error: KafkaError | None) -> None:
        raise ValueError("boom")

    def close(self) -> None:
        raise ValueError("boom")


class TestBefore:
    def test_each_sees_what_the_one_before_left(self) -> None:
        chain = Interceptors([Tag(b"1"), Tag(b"2")])
        assert chain.on_send(ProducerRecord("t", b"v")).value == b"v12"

    def test_one_that_raises_is_logged_and_leaves_nothing_behind(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        chain = Interceptors([Tag(b"1"), Broken(), Tag(b"2")])
        with caplog.at_level(logging.WARNING):
            assert chain.on_send(ProducerRecord("t", b"v")).value == b"v12"
        assert "failed; the record is sent without it" in caplog.text

    def test_one_that_returns_nothing_may_change_the_record(self) -> None:
        class Quiet:
            def on_send(self, record: ProducerRecord) -> None:
                record.topic = "other"

        assert Interceptors([Quiet()]).on_send(ProducerRecord("t")).topic == "other"

    def test_one_that_returns_something_else_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        class Wrong:
            def on_send(self, record: ProducerRecord) -> int:
                return 5

        with caplog.at_level(logging.WARNING):
            assert Interceptors([Wrong()]).on_send(ProducerRecord("t", b"v")).value == b"v"
        assert "gave int instead of a record" in caplog.text

    def test_the_users_record_is_not_touched(self) -> None:
        record = ProducerRecord("t", b"v")
        Interceptors([Tag(b"1")]).on_send(record)
        assert record.value == b"v"


class TestAfter:
    def test_all_are_told(self) -> None:
        first, second = Tag(b"1"), Tag(b"2")
        error = KafkaError("no")
        Interceptors([first, second]).on_acknowledgement(METADATA, error)
        assert first.seen == second.seen == [(METADATA, error)]

    def test_one_that_raises_does_not_keep_it_from_the_next(self, caplog: pytest.LogCaptureFixture) -> None:
        last = Tag(b"1")
        with caplog.at_level(logging.WARNING):
            Interceptors([Broken(), last]).on_acknowledgement(METADATA, None)
        assert last.seen == [(METADATA, None)]
        assert "on_acknowledgement" in caplog.text


class TestTheChain:
    def test_closing_reaches_all(self, caplog: pytest.LogCaptureFixture) -> None:
        last = Tag(b"1")
        with caplog.at_level(logging.WARNING):
            Interceptors([Broken(), last]).close()
        assert last.closed

    def test_it_says_what_it_has(self) -> None:
        class OnlyAfter:
            def on_acknowledgement(self, metadata: RecordMetadata, error: KafkaError | None) -> None: ...

        chain = Interceptors([OnlyAfter])
        assert chain.watches_outcomes
        assert not chain.changes_records

    def test_settings_take_objects_and_classes(self) -> None:
        chain = Interceptors.of(parse(PRODUCER, bootstrap_servers="a:1", interceptor_classes=[Broken]))
        assert chain.changes_records

    def test_without_settings_it_is_empty(self) -> None:
        chain = Interceptors.of(parse(PRODUCER, bootstrap_servers="a:1"))
        assert not chain.changes_records
        assert not chain.watches_outcomes

    def test_an_object_without_hooks_is_refused(self) -> None:
        with pytest.raises(ConfigFault, match=r"interceptor\.classes: 5 has neither on_send nor"):
            Interceptors([5])
