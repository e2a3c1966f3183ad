"""barnabas.cli.line_reader: lines to records."""

import contextlib
import io

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.line_reader import BadLine, Input, LineFormat, json_parser, line_parser, lines_of


class Trickle(io.BytesIO):
    """A stream that gives a few bytes at a time, as a slow pipe does."""

    def __init__(self, data: bytes, step: int) -> None:
        super().__init__(data)
        self._step = step

    def read1(self, size: int | None = -1) -> bytes:
        return super().read1(self._step)


@given(st.lists(st.binary(max_size=9).filter(lambda b: b"\n" not in b and b"\r" not in b)), st.integers(1, 7))
def test_how_the_bytes_come_does_not_matter(lines: list[bytes], step: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    assert [line for some in lines_of(Trickle(data, step)) for line in some] == lines


def test_the_last_line_need_not_end() -> None:
    assert list(lines_of(io.BytesIO(b"a\nb"))) == [[b"a"], [b"b"]]
    assert list(lines_of(io.BytesIO(b""))) == []


def test_empty_lines_are_lines_and_returns_belong_to_the_end() -> None:
    assert list(lines_of(io.BytesIO(b"a\r\n\nb\r\n"))) == [[b"a", b"", b"b"]]


@pytest.mark.parametrize("step", [1, 2, 3, 50])
def test_another_delimiter(step: int) -> None:
    found = [line for some in lines_of(Trickle(b"a\n--b--c", step), b"--") for line in some]
    assert found == [b"a\n", b"b", b"c"]
    assert list(lines_of(io.BytesIO(b"a\0b\0"), b"\0")) == [[b"a", b"b"]]


def parse(form: LineFormat, *lines: bytes) -> list[Input]:
    return list(line_parser(form)(lines))


class TestALine:
    def test_has_headers_key_and_value_in_this_order(self) -> None:
        form = LineFormat(key_separator=b"=", headers_delimiter=b"\t")
        assert parse(form, b"a:1,b:x:y\tk=v=w") == [Input(b"v=w", b"k", [("a", b"1"), ("b", b"x:y")])]
        assert parse(form, b"\tk=v") == [Input(b"v", b"k")]

    def test_may_say_null(self) -> None:
        form = LineFormat(
            key_separator=b":", headers_delimiter=b"\t", headers_key_separator=b"=", null_marker=b"N"
        )
        assert parse(form, b"N\tN:N", b"a=N\tk:v") == [Input(None), Input(b"v", b"k", [("a", None)])]

    def test_without_its_separator_is_an_error_with_its_number(self) -> None:
        with pytest.raises(BadLine, match="line 2: there is no key separator ':' in 'b'"):
            parse(LineFormat(key_separator=b":"), b"a:1", b"b")
        with pytest.raises(BadLine, match="line 1: there is no ':' in the header 'x'"):
            parse(LineFormat(headers_delimiter=b"\t"), b"x\tv")
        with pytest.raises(BadLine, match="is not UTF-8"):
            parse(LineFormat(headers_delimiter=b"\t"), b"\xff:1\tv")

    def test_may_be_wrong_where_errors_are_ignored(self) -> None:
        form = LineFormat(key_separator=b":", headers_delimiter=b"\t", ignores_errors=True)
        assert parse(form, b"x", b"x\tv") == [Input(b"x"), Input(b"v", None, [("x", None)])]

    def test_counts_on_from_one_call_to_the_next(self) -> None:
        parser = line_parser(LineFormat(key_separator=b":"))
        list(parser([b"a:1", b"b:2"]))
        with pytest.raises(BadLine, match="line 3"):
            list(parser([b"c"]))


class TestKafkasProperties:
    def test_become_a_form(self) -> None:
        form = LineFormat.of_properties({"parse.key": "true", "key.separator": "|", "null.marker": "NULL"})
        assert form == LineFormat(key_separator=b"|", null_marker=b"NULL")
        assert LineFormat.of_properties({"key.separator": "|"}) == LineFormat()
        assert LineFormat.of_properties({"parse.headers": "TRUE"}).headers_delimiter == b"\t"

    def test_that_do_not_exist_are_refused(self) -> None:
        with pytest.raises(click.UsageError, match=r"parse\.keys is no property of the input"):
            LineFormat.of_properties({"parse.keys": "true"})

    @pytest.mark.parametrize(
        "properties",
        [
            {"parse.key": "true", "key.separator": ""},
            {"parse.key": "true", "key.separator": "x", "null.marker": "x"},
            {"parse.headers": "true", "headers.delimiter": ","},
            {"parse.headers": "true", "headers.key.separator": ","},
        ],
    )
    def test_that_cannot_be_told_apart_are_refused(self, properties: dict[str, str]) -> None:
        with pytest.raises(click.UsageError, match="may not be"):
            LineFormat.of_properties(properties)


class TestJsonLines:
    def test_have_text_bytes_null_and_whatever_json_has(self) -> None:
        lines = [
            b'{"key": "k", "value": "\xc3\xbc", "headers": [["h", "1"], ["n", null]], "timestamp": 5}',
            b'{"value": {"base64": "/w=="}, "headers": {"h": "1"}}',
            b'{"value": {"id": 1, "n": "\xc3\xbc"}, "key": 7}',
            b'{"key": "gone", "value": null}',
            b"  ",
        ]
        assert list(json_parser()(lines)) == [
            Input("ü".encode(), b"k", [("h", b"1"), ("n", None)], None, 5),
            Input(b"\xff", None, [("h", b"1")]),
            Input('{"id":1,"n":"ü"}'.encode(), b"7"),
            Input(None, b"gone"),
        ]

    def test_say_the_partition_only_if_it_is_kept(self) -> None:
        line = b'{"value": "v", "partition": 3}'
        assert next(json_parser()([line])).partition is None
        assert next(json_parser(keeps_partitions=True)([line])).partition == 3

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            (b"{", "is not JSON"),
            (b"[]", "a record is an object"),
            (b'{"x": 1}', "with key, value or both"),
            (b'{"value": "v", "headers": [["a"]]}', "headers are"),
            (b'{"value": "v", "headers": 3}', "headers are"),
            (b'{"value": "v", "timestamp": "now"}', "timestamp is a whole number"),
            (b'{"value": "v", "partition": true}', "partition is a whole number"),
            (b'{"value": {"base64": "?"}}', "is not base64"),
        ],
    )
    def test_that_are_wrong_are_named(self, line: bytes, why: str) -> None:
        with pytest.raises(BadLine, match=f"line 2.*{why}"):
            list(json_parser()([b'{"value": 1}', line]))

    @given(st.binary(max_size=30))
    def test_rubbish_is_a_bad_line_and_nothing_else(self, line: bytes) -> None:
        with contextlib.suppress(BadLine):
            list(json_parser()([line]))
