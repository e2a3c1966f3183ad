"""Kafka's command lines on click: actions that are flags, and options that take several values.

    kafka-topics --create --topic t          ->  barnabas topics create --topic t
    --producer-props acks=1 linger.ms=5      ->  --producer-props acks=1 --producer-props linger.ms=5

Both are rewritten before click parses them, so that there is one definition of every command.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

__all__ = ["ActionGroup", "ManyValuesCommand", "names_of", "one_of_both"]


class ActionGroup(click.Group):
    """A group whose subcommands can also be chosen by a flag, as `--create` for `create`.

    Without either, `default` is taken if there is one.
    """

    def __init__(
        self,
        *arguments: Any,
        actions: Mapping[str, str] | None = None,
        default: str | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*arguments, **more)
        self.actions = dict(actions or {})
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._translated(args))

    def _translated(self, args: list[str]) -> list[str]:
        if not args or args[0] in self.commands:
            return args
        chosen = list(dict.fromkeys(arg for arg in args if arg in self.actions))
        if len(chosen) > 1:
            raise click.UsageError(f"One thing at a time: {' or '.join(chosen)}.")
        if chosen:
            return [self.actions[chosen[0]], *(arg for arg in args if arg != chosen[0])]
        if self.default is not None and args[0] not in ("-h", "--help"):
            return [self.default, *args]
        return args


class ManyValuesCommand(click.Command):
    """A command with options that take every following NAME=VALUE, as those of Kafka's perf tests."""

    def __init__(self, *arguments: Any, many_values: Iterable[str] = (), **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.many_values = frozenset(many_values)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._spread(args))

    def _spread(self, args: Sequence[str]) -> list[str]:
        spread: list[str] = []
        option = ""
        for arg in args:
            if arg.startswith("-"):
                option = arg if arg in self.many_values else ""
                if option:
                    continue
            elif option and "=" in arg:
                spread.append(option)
            elif option:
                raise click.UsageError(f"{option} takes NAME=VALUE, not {arg!r}.")
            spread.append(arg)
        return spread


def names_of(given: Sequence[str], by_flag: Sequence[str], what: str) -> list[str]:
    """Names given as arguments or by Kafka's flag, each once.  Raises UsageError when there is none."""
    names = list(dict.fromkeys([*given, *by_flag]))
    if not names:
        raise click.UsageError(f"Name the {what}.")
    return names


def one_of_both(given: str | None, by_flag: str | None, what: str) -> str:
    """The one name given as argument or by Kafka's flag.  Raises UsageError when it is none or two."""
    if given is not None and by_flag is not None and given != by_flag:
        raise click.UsageError(f"Name one {what}: {given!r} or {by_flag!r}.")
    name = given if given is not None else by_flag
    if name is None:
        raise click.UsageError(f"Name the {what}.")
    return name
