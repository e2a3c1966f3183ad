"""Keys and values become objects when they are looked at."""

import pytest

from barnabas.base.errors import ConfigFault
from barnabas.client.config import CONSUMER, ClientSettings, parse
from barnabas.client.deserializers import TypedRecord, deserializer_of
from barnabas.client.errors import Serialization
from barnabas.records.record import Record

RAW = Record(7, 1000, b"1", b'{"a": 1}', (("h", b"x"),), "t", 2, 1, 4)


def settings(value: object) -> ClientSettings:
    return parse(CONSUMER, bootstrap_servers="localhost:1", value_deserializer=value)


@pytest.mark.parametrize(
    "given",
    [
        "json",
        "org.example.JsonDeserializer",
        lambda data: {"a": 1},
        lambda topic, data: {"a": 1},
    ],
)
def test_names_and_callables_are_taken(given: object) -> None:
    read = deserializer_of(settings(given), "value")
    assert read is not None
    assert read("t", b'{"a": 1}') == {"a": 1}


def test_an_object_with_a_deserialize_method_is_taken() -> None:
    class Upper:
        def deserialize(self, topic: str, data: bytes) -> str:
            return topic + data.decode().upper()

    for given in (Upper(), Upper):
        read = deserializer_of(settings(given), "value")
        assert read is not None
        assert read("t", b"x") == "tX"


def test_nothing_given_is_nothing() -> None:
    assert deserializer_of(settings("str"), "key") is None


@pytest.mark.parametrize(
    ("given", "text"), [("avro", "'avro' is not one of"), (5.5, "float cannot be called")]
)
def test_what_cannot_deserialize_is_refused(given: object, text: str) -> None:
    with pytest.raises(ConfigFault, match=text):
        deserializer_of(settings(given), "value")


def test_each_part_is_read_once_and_only_when_looked_at() -> None:
    calls: list[bytes] = []

    def read(topic: str, data: bytes) -> int:
        calls.append(data)
        return int(data)

    record = TypedRecord(RAW, read, None)
    assert calls == []
    assert (record.key, record.key) == (1, 1)
    assert calls == [b"1"]
    assert record.value == RAW.value


def test_a_null_stays_null() -> None:
    assert TypedRecord(Record(0, 0, None, None), lambda topic, data: 1, lambda topic, data: 1).value is None


def test_what_cannot_be_read_says_where_it_is_and_keeps_its_bytes() -> None:
    record = TypedRecord(RAW, None, lambda topic, data: int(data))
    with pytest.raises(
        Serialization, match="t-2 at offset 7: the value cannot be deserialized: invalid literal"
    ):
        record.value  # noqa: B018  # looking at it is the test
    assert record.raw.value == b'{"a": 1}'


def test_all_other_fields_are_those_of_the_record() -> None:
    record = TypedRecord(RAW, None, None)
    names = ("topic", "partition", "offset", "timestamp", "timestamp_type", "leader_epoch", "headers")
    assert [getattr(record, name) for name in names] == [getattr(RAW, name) for name in names]
    assert record == TypedRecord(RAW, None, None)
    assert hash(record) == hash(RAW)
    assert repr(record) == f"TypedRecord({RAW!r})"
