"""barnabas.base.config: a setting is declared once."""

import pytest

from barnabas.base.config import (
    ConfigTable,
    Key,
    Kind,
    Live,
    Synonym,
    at_least,
    between,
    listed,
    not_blank,
    one_of,
    parse_properties,
)
from barnabas.base.errors import ConfigFault

TABLE = ConfigTable(
    Key(
        "segment.bytes",
        2**30,
        at_least(14),
        live=Live.CLUSTER,
        doc="Roll at\n this | size.",
        synonyms=(Synonym("log.segment.bytes"),),
    ),
    Key("retention.ms", 604_800_000, at_least(-1), kind=Kind.LONG),
    Key("min.cleanable.dirty.ratio", 0.5, between(0, 1)),
    Key("cleanup.policy", ("delete",), listed("delete", "compact", empty=False)),
    Key("compression.type", "producer", one_of("producer", "gzip")),
    Key("preallocate", False),
    Key("ssl.key.password", None, kind=Kind.PASSWORD),
    Key("broker.rack", None, not_blank, kind=Kind.STRING),
    Key("log.retention.ms", None, kind=Kind.LONG),
)


class TestParse:
    def test_text_becomes_the_declared_type_and_the_rest_is_default(self) -> None:
        settings = TABLE.parse(
            {
                "segment.bytes": " 1024 ",
                "min.cleanable.dirty.ratio": "0.25",
                "cleanup.policy": "compact, delete",
                "preallocate": "TRUE",
                "broker.rack": "r1",
            }
        )
        assert settings.integer("segment.bytes") == 1024
        assert settings.number("min.cleanable.dirty.ratio") == 0.25
        assert settings.items("cleanup.policy") == ("compact", "delete")
        assert settings.boolean("preallocate") is True
        assert settings.string("compression.type") == "producer"
        assert settings.optional_string("broker.rack") == "r1"
        assert settings.optional_string("ssl.key.password") is None
        assert settings.optional_integer("log.retention.ms") is None
        assert settings["retention.ms"] == 604_800_000
        assert settings.given == {
            "segment.bytes",
            "min.cleanable.dirty.ratio",
            "cleanup.policy",
            "preallocate",
            "broker.rack",
        }

    @pytest.mark.parametrize(
        ("name", "text", "said"),
        [
            ("segment.bytes", "10", "segment.bytes: '10' must be at least 14"),
            ("segment.bytes", "1_000", "segment.bytes: '1_000' is not a whole number"),
            ("segment.bytes", "1.5", "segment.bytes: '1.5' is not a whole number"),
            (
                "segment.bytes",
                "2147483648",
                "segment.bytes: '2147483648' must be between -2147483648 and 2147483647",
            ),
            ("segment.bytes", None, "segment.bytes: a value is needed"),
            ("min.cleanable.dirty.ratio", "nan", "min.cleanable.dirty.ratio: 'nan' is not a number"),
            ("min.cleanable.dirty.ratio", "2", "min.cleanable.dirty.ratio: '2' must be between 0 and 1"),
            ("cleanup.policy", "keep", "cleanup.policy: 'keep' may hold only delete, compact"),
            ("cleanup.policy", "", "cleanup.policy: '' must name at least one of delete, compact"),
            ("cleanup.policy", "delete,delete", "cleanup.policy: 'delete,delete' names something twice"),
            ("compression.type", "rar", "compression.type: 'rar' must be one of producer, gzip"),
            ("preallocate", "yes", "preallocate: 'yes' is not true or false"),
            ("broker.rack", " ", "broker.rack: ' ' must not be empty"),
        ],
    )
    def test_a_wrong_value_is_named_with_what_is_wrong(self, name: str, text: str | None, said: str) -> None:
        with pytest.raises(ConfigFault) as caught:
            TABLE.parse({name: text})
        assert str(caught.value) == said

    def test_an_unknown_name_gets_the_nearest_one(self) -> None:
        with pytest.raises(ConfigFault) as caught:
            TABLE.parse({"segment.byte": "1"})
        assert str(caught.value) == "segment.byte: there is no such setting; did you mean segment.bytes?"
        with pytest.raises(ConfigFault) as caught:
            TABLE.parse({"zzz": "1"})
        assert str(caught.value) == "zzz: there is no such setting"

    def test_all_faults_come_in_one_go(self) -> None:
        assert TABLE.faults({"preallocate": "x", "segment.bytes": "2048", "zzz": ""}) == [
            "preallocate: 'x' is not true or false",
            "zzz: there is no such setting",
        ]

    def test_a_secret_is_never_repeated(self) -> None:
        table = ConfigTable(Key("password", None, lambda _: "is too short", kind=Kind.PASSWORD))
        with pytest.raises(ConfigFault) as caught:
            table.parse({"password": "hunter2"})
        assert str(caught.value) == "password: the given value is too short"


class TestSettings:
    def test_text_is_the_inverse_of_parse(self) -> None:
        given = {
            "segment.bytes": "1024",
            "min.cleanable.dirty.ratio": "0.25",
            "cleanup.policy": "compact,delete",
            "preallocate": "true",
        }
        settings = TABLE.parse(given)
        assert {name: settings.text(name) for name in given} == given
        assert settings.text("ssl.key.password") is None

    def test_replaced_sets_some_and_gives_others_back_to_the_default(self) -> None:
        before = TABLE.parse({"segment.bytes": "1024", "preallocate": "true"})
        after = before.replaced({"segment.bytes": None, "compression.type": "gzip"})
        assert after.integer("segment.bytes") == 2**30
        assert after.boolean("preallocate") is True
        assert after.given == {"preallocate", "compression.type"}
        assert before.integer("segment.bytes") == 1024
        with pytest.raises(ConfigFault, match=r"^preallocat: there is no such setting"):
            before.replaced({"preallocat": "true"})


class TestDeclaration:
    def test_a_kind_follows_from_the_default(self) -> None:
        assert Key("a", 1).kind is Kind.INT
        assert Key("a", 2**31).kind is Kind.LONG
        assert Key("a", 1.0).kind is Kind.DOUBLE
        assert Key("a", True).kind is Kind.BOOLEAN
        assert Key("a", ()).kind is Kind.LIST
        assert Key("a", "").kind is Kind.STRING

    def test_no_default_needs_a_kind(self) -> None:
        with pytest.raises(AssertionError, match="its kind must be given"):
            Key("a", None)

    def test_a_default_obeys_its_own_check(self) -> None:
        with pytest.raises(AssertionError, match="must be at least 5"):
            Key("a", 1, at_least(5))

    def test_a_name_is_declared_once(self) -> None:
        with pytest.raises(AssertionError, match="declared once"):
            ConfigTable(Key("a", 1), Key("a", 2))

    def test_tables_add_up(self) -> None:
        both = TABLE + ConfigTable(Key("x", 1))
        assert len(both) == len(TABLE) + 1
        assert "x" in both
        assert both["x"].default == 1

    def test_the_docs_table_has_a_row_for_each(self) -> None:
        lines = TABLE.markdown().splitlines()
        assert len(lines) == len(TABLE) + 2
        assert lines[2] == (
            "| `segment.bytes` | int | `1073741824` | at least 14 | cluster-wide | Roll at this \\| size. |"
        )


class TestProperties:
    def test_comments_blanks_colons_and_joined_lines(self) -> None:
        lines = ["# c", "! c", "", "a=1", "b : x=y ", "c=one,\\", "  two", "d="]
        assert parse_properties(lines) == {"a": "1", "b": "x=y", "c": "one,two", "d": ""}

    @pytest.mark.parametrize(
        ("lines", "said"),
        [
            (["a=1", "nonsense"], "line 2: 'nonsense' is not of the form key=value"),
            (["=1"], "line 1: '=1' is not of the form key=value"),
            (["a=\\"], "the last line ends with a backslash"),
        ],
    )
    def test_what_is_not_a_setting_is_named_with_its_line(self, lines: list[str], said: str) -> None:
        with pytest.raises(ConfigFault) as caught:
            parse_properties(lines)
        assert str(caught.value) == said
