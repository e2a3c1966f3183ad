"""Source under construction."""

from barnabas.protocol.source import Source


def test_lines_follow_the_blocks_they_are_in() -> None:
    source = Source()
    with source.block("def double(n):"):
        with source.block("if n:"):
            source.line("return 2 * n")
        source.line("return None")
    assert source.text() == "def double(n):\n    if n:\n        return 2 * n\n    return None\n"
    assert source.compile("double", "test")(21) == 42


def test_an_object_is_bound_once() -> None:
    source, thing = Source(), object()
    assert source.bind("thing", thing) == source.bind("thing", thing)
    assert source.bind("other", object()) != source.bind("thing", thing)


def test_defaults_are_literals_where_that_is_exact() -> None:
    source = Source()
    assert [source.constant(value) for value in (None, -1, True, "x", b"")] == [
        "None",
        "-1",
        "True",
        "'x'",
        "b''",
    ]
    name = source.constant(bytes(16))
    with source.block("def found():"):
        source.line(f"return {name}")
    assert source.compile("found", "test")() == bytes(16)


def test_locals_do_not_clash() -> None:
    source = Source()
    assert source.fresh("n") != source.fresh("n")
