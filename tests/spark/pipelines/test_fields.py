"""Declared values are read strictly, and every fault names its place."""

import pytest

from barnabas.spark.pipelines.errors import SpecError
from barnabas.spark.pipelines.fields import Fields, parse_duration_ms, parse_size


def fields(**values: object) -> Fields:
    return Fields(values, "f.yaml")


def test_values_come_back_typed() -> None:
    found = fields(a="x", b=3, c=True, d="10s", e="1.5 KB", f="x, y", g=["x", "y"], h={"k": 1, "l": False})
    assert found.text("a") == "x"
    assert found.text("b") == "3"
    assert found.integer("b") == 3
    assert found.boolean("c", False) is True
    assert found.duration_ms("d") == 10_000
    assert found.size("e") == 1536
    assert found.texts("f") == found.texts("g") == ("x", "y")
    assert found.pairs("h") == {"k": "1", "l": "false"}
    found.finish()


def test_what_is_not_there_takes_its_default() -> None:
    found = fields(a=None)
    assert found.text("a", None) is None
    assert found.integer("b", 7) == 7
    assert found.duration_ms("c", None) is None
    assert found.texts("d", ()) == ()
    assert found.pairs("e") == {}
    assert found.section("f") is None
    assert found.sections("g") == []
    assert not found.has("a")


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda found: found.text("missing"), "f.yaml: wants the key 'missing'"),
        (lambda found: found.text("empty"), "f.yaml: empty is empty"),
        (lambda found: found.text("many"), "f.yaml: many must be a text, not a list"),
        (lambda found: found.integer("word"), "f.yaml: word must be a whole number, not 'x'"),
        (lambda found: found.integer("low", least=1), "f.yaml: low must be at least 1, not 0"),
        (lambda found: found.integer("yes"), "f.yaml: yes must be a whole number, not True"),
        (lambda found: found.boolean("word", True), "f.yaml: word must be true or false, not 'x'"),
        (
            lambda found: found.choice("word", ["xy", "z"]),
            "f.yaml: word must be xy or z, not 'x'; did you mean xy?",
        ),
        (lambda found: found.texts("low"), "f.yaml: low must be a name or a list of names, not 0"),
        (lambda found: found.texts("none"), "f.yaml: none is empty"),
        (
            lambda found: found.duration_ms("word"),
            "f.yaml: word must be a duration as 10s, 5m or 1h, not 'x'",
        ),
        (lambda found: found.size("word"), "f.yaml: word must be a size as 128mb or 1gb, not 'x'"),
        (
            lambda found: found.section("word"),
            "f.yaml: word must be a mapping of names to values, not 'x'",
        ),
        (
            lambda found: found.sections("word"),
            "f.yaml: word must be a mapping or a list of mappings, not 'x'",
        ),
        (lambda found: found.section("numbered"), "f.yaml: numbered has the key 1, which is no name"),
    ],
)
def test_a_wrong_value_is_one_sentence(read: object, text: str) -> None:
    found = fields(empty=" ", many=["a"], word="x", low=0, yes=True, none=[], numbered={1: 2})
    with pytest.raises(SpecError) as raised:
        read(found)  # type: ignore[operator]  # one of the lambdas above
    assert str(raised.value) == text


def test_a_key_that_nobody_asked_for_is_answered_with_the_nearest() -> None:
    found = fields(topik="x")
    found.text("topic", None)
    with pytest.raises(SpecError, match=r"^f.yaml: topik is not known; did you mean topic\?$"):
        found.finish()


def test_without_a_near_one_all_known_keys_are_named() -> None:
    found = fields(zzz="x")
    found.text("topic", None)
    found.text("name", None)
    with pytest.raises(SpecError, match=r"^f.yaml: zzz is not known; known are topic, name$"):
        found.finish()


def test_the_line_and_the_path_of_a_fault_are_named() -> None:
    found = Fields({"sinks": [{"topic": 1}, {"topic": []}]}, "f.yaml", (), {("sinks", 1): 7, (): 1})
    with pytest.raises(SpecError, match=r"^f.yaml:7: sinks\[1\].topic must be a text, not a list$"):
        found.sections("sinks")[1].text("topic")


@pytest.mark.parametrize(
    ("text", "ms"),
    [("10s", 10_000), ("500 ms", 500), ("5 minutes", 300_000), ("1.5h", 5_400_000), ("2d", 172_800_000)],
)
def test_durations(text: str, ms: int) -> None:
    assert parse_duration_ms(text) == ms


def test_what_is_no_duration_or_size_is_none() -> None:
    assert parse_duration_ms("10 parsecs") is None
    assert parse_size("big") is None
    assert parse_size("128mb") == 2**27
