"""barnabas.cli.printing: how consume prints."""

import struct
from pathlib import Path

import click
import pytest

from barnabas.cli.printing import Printing
from barnabas.records.record import Record

RECORD = Record(0, 0, struct.pack(">q", 7), b"v", [])


def test_a_value_and_a_line_end_unless_said_otherwise() -> None:
    assert Printing().renderer()([RECORD]) == b"v\n"
    assert Printing(template="%s;").renderer()([RECORD]) == b"v;"
    assert Printing(as_json=True).renderer()([RECORD]).startswith(b"{")


def test_deserializers_by_flag_win_over_properties_and_those_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "f.properties"
    file.write_text("print.key=true\nkey.deserializer=string\nkey.separator=;\n")
    printing = Printing(formatter_file=file, properties=("key.separator=|",), key_deserializer="long")
    assert printing.renderer()([RECORD]) == b"7|v\n"


@pytest.mark.parametrize(
    "printing",
    [
        Printing(template="%s", as_json=True),
        Printing(as_json=True, formatter="default"),
        Printing(template="%s", properties=("print.key=true",)),
    ],
)
def test_it_is_said_once(printing: Printing) -> None:
    with pytest.raises(click.UsageError, match="Say once how to print"):
        printing.renderer()
