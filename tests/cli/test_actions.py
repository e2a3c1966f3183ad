"""barnabas.cli.actions: Kafka's command lines on click."""

import click
import pytest

from barnabas.cli.actions import ActionGroup, ManyValuesCommand, names_of, one_of_both


def group_of(default: str | None = None) -> ActionGroup:
    group = ActionGroup("things", actions={"--create": "create", "--list": "list"}, default=default)
    for name in ("create", "list"):
        group.add_command(
            click.Command(
                name, callback=lambda thing, name=name: (name, thing), params=[click.Option(["--thing"])]
            )
        )
    return group


def run(group: click.Command, *arguments: str) -> object:
    return group.main(list(arguments), standalone_mode=False)


class TestAnAction:
    def test_is_a_word_or_a_flag_anywhere(self) -> None:
        assert run(group_of(), "create", "--thing", "a") == ("create", "a")
        assert run(group_of(), "--create", "--thing", "a") == ("create", "a")
        assert run(group_of(), "--thing", "a", "--create") == ("create", "a")

    def test_is_one(self) -> None:
        with pytest.raises(click.UsageError, match="One thing at a time: --list or --create"):
            run(group_of(), "--list", "--create")

    def test_may_have_a_default(self) -> None:
        assert run(group_of("list"), "--thing", "a") == ("list", "a")
        with pytest.raises(click.UsageError):
            run(group_of(), "--thing", "a")

    def test_help_is_that_of_the_group(self, capsys: pytest.CaptureFixture[str]) -> None:
        run(group_of("list"), "--help")
        assert "create" in capsys.readouterr().out


class TestAnOptionWithManyValues:
    def command(self) -> ManyValuesCommand:
        return ManyValuesCommand(
            "perf",
            callback=lambda props, other: (props, other),
            params=[click.Option(["--props"], multiple=True), click.Option(["--other"])],
            many_values=["--props"],
        )

    def test_takes_all_that_follow(self) -> None:
        assert run(self.command(), "--props", "a=1", "b=2", "--other", "x") == (("a=1", "b=2"), "x")
        assert run(self.command(), "--props", "a=1", "--props", "b=2") == (("a=1", "b=2"), None)

    def test_takes_assignments_only(self) -> None:
        with pytest.raises(click.UsageError, match="--props takes NAME=VALUE, not 'b'"):
            run(self.command(), "--props", "a=1", "b")


def test_names_come_from_arguments_and_flags_each_once() -> None:
    assert names_of(("a", "b"), ("b", "c"), "topic") == ["a", "b", "c"]
    with pytest.raises(click.UsageError, match="Name the topic"):
        names_of((), (), "topic")


def test_one_name_comes_from_either() -> None:
    assert (
        one_of_both("a", None, "topic") == one_of_both(None, "a", "topic") == one_of_both("a", "a", "topic")
    )
    with pytest.raises(click.UsageError, match="Name one topic: 'a' or 'b'"):
        one_of_both("a", "b", "topic")
    with pytest.raises(click.UsageError, match="Name the topic"):
        one_of_both(None, None, "topic")
