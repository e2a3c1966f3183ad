"""barnabas.cli.line_writer: records to bytes."""

import json

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.deserializers import NotDeserialized
from barnabas.cli.line_reader import json_parser
from barnabas.cli.line_writer import json_renderer, kafka_renderer, template_renderer, tolerant, unescaped
from barnabas.records.record import Record


def record(
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: tuple[tuple[str, bytes | None], ...] = (),
    *,
    timestamp: int = 1000,
    timestamp_type: int = 0,
) -> Record:
    return Record(
        7,
        timestamp,
        key,
        value,
        headers,
        topic="t",
        partition=3,
        timestamp_type=timestamp_type,
        leader_epoch=2,
    )


def test_a_template_has_the_fields_of_kcat() -> None:
    render = template_renderer("%t %p %o %T %k %K %s %S %h %e %D%%\\n")
    shown = render([record(headers=(("a", b"1"), ("b", None)))])
    assert shown == b"t 3 7 1000 k 1 v 1 a:1,b: 2 1970-01-01T00:00:01.000Z%\n"


def test_nulls_are_empty_in_a_template_and_their_length_is_below_zero() -> None:
    assert template_renderer("[%k|%K|%s|%S]")([record(None, None)]) == b"[|-1||-1]"


@pytest.mark.parametrize("template", ["%", "%z", "a%"])
def test_a_field_that_does_not_exist_is_refused(template: str) -> None:
    with pytest.raises(click.UsageError, match="is no field"):
        template_renderer(template)


@pytest.mark.parametrize("template", ["%%", "%%%s", "100%% of %s%%%%", "{%s}", "'\"\\\\"])
def test_percent_signs_and_quotes_are_only_text(template: str) -> None:
    expected = template.replace("%%", "\0").replace("%s", "v").replace("\0", "%").replace("\\\\", "\\")
    assert template_renderer(template)([record()]).decode() == expected


def test_escapes_are_those_of_c() -> None:
    assert unescaped(r"a\n\t\r\\\x41\0\q") == "a\n\t\r\\A\0\\q"
    assert unescaped("end\\") == "end\\"
    with pytest.raises(click.UsageError, match="two hexadecimal digits"):
        unescaped("\\xz")


class TestKafkasProperties:
    def test_print_the_value_alone_by_default(self) -> None:
        assert kafka_renderer({})([record(), record(value=None), record(value=b"")]) == b"v\nnull\n\n"

    def test_print_in_kafkas_order_whatever_their_own(self) -> None:
        names = (
            "print.key",
            "print.headers",
            "print.offset",
            "print.partition",
            "print.timestamp",
            "print.epoch",
        )
        render = kafka_renderer(dict.fromkeys(names, "true"))
        assert render([record(headers=(("h", b"1"), ("i", None)))]) == (
            b"CreateTime:1000\tPartition:3\tOffset:7\tEpoch:2\th:1,i:null\tk\tv\n"
        )
        assert render([record(None, timestamp=-1)]) == (
            b"NO_TIMESTAMP\tPartition:3\tOffset:7\tEpoch:2\tNO_HEADERS\tnull\tv\n"
        )
        assert b"LogAppendTime:1000" in render([record(timestamp_type=1)])

    def test_choose_the_separators(self) -> None:
        render = kafka_renderer(
            {"print.key": "true", "key.separator": "%", "line.separator": ";", "null.literal": "-"}
        )
        assert render([record(), record(None, None)]) == b"k%v;-%-;"
        assert kafka_renderer({"print.value": "false", "print.key": "true"})([record()]) == b"k\n"
        assert kafka_renderer({"print.value": "false"})([record()]) == b""

    def test_that_do_not_exist_are_refused(self) -> None:
        with pytest.raises(click.UsageError, match=r"print\.keys is no property of the output"):
            kafka_renderer({"print.keys": "true"})


parts = st.none() | st.binary(max_size=20) | st.text(max_size=10).map(str.encode)
header_names = st.text(max_size=5)


@given(parts, parts, st.lists(st.tuples(header_names, parts), max_size=3))
def test_json_lines_can_be_produced_again(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    line = json_renderer()([record(key, value, tuple(headers))])
    found = next(json_parser(keeps_partitions=True)([line]))
    if not _looks_encoded(key) and not _looks_encoded(value):
        assert (found.key, found.value, found.headers or []) == (key, value, headers)
        assert (found.partition, found.timestamp_ms) == (3, 1000)


def _looks_encoded(data: bytes | None) -> bool:
    return data is not None and b"base64" in data


def test_a_json_line_has_the_fields_of_a_record() -> None:
    line = json_renderer()([record(b"\xff", None, (("h", b"1"),))])
    assert line.endswith(b"\n")
    assert json.loads(line) == {
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "timestamp": 1000,
        "key": {"base64": "/w=="},
        "value": None,
        "headers": [["h", "1"]],
    }


class TestDeserializers:
    def record(self, key: bytes | None, value: bytes | None) -> Record:
        return Record(3, 0, key, value, [("h", b"\x00\x05"), ("n", None)])

    def test_keys_values_and_headers_are_opened(self) -> None:
        render = kafka_renderer(
            {
                "print.key": "true",
                "print.headers": "true",
                "key.deserializer": "org.apache.kafka.common.serialization.IntegerDeserializer",
                "value.deserializer": "double",
                "headers.deserializer": "short",
            }
        )
        records = [self.record(b"\0\0\0\x09", b"\x3f\xf8" + bytes(6)), self.record(None, None)]
        assert render(records) == b"h:5,n:null\t9\t1.5\nh:5,n:null\tnull\tnull\n"

    def test_values_alone_are_opened_too(self) -> None:
        assert kafka_renderer({"value.deserializer": "short"})([self.record(None, b"\0\x02")]) == b"2\n"

    def test_what_cannot_be_opened_is_named(self) -> None:
        render = kafka_renderer({"value.deserializer": "short"})
        with pytest.raises(
            NotDeserialized, match=r"the value of .* at offset 3: 1 bytes are no short, which has 2"
        ):
            render([self.record(None, b"x")])

    def test_a_tolerant_renderer_leaves_it_out(self, capsys: pytest.CaptureFixture[str]) -> None:
        render = tolerant(kafka_renderer({"value.deserializer": "short"}))
        good, bad = self.record(None, b"\0\1"), self.record(None, b"x")
        assert render([good, bad, good]) == b"1\n1\n"
        assert render([good]) == b"1\n"
        assert "1 bytes are no short" in capsys.readouterr().err
