"""The command's entry: which subcommands there are, and how an error becomes an exit code.

Subcommands are imported when they run, so that `barnabas version` does not pay for the broker.
Exit codes: 0 done, 1 failed (the sentence on stderr says why), 2 wrong usage, 130 stopped by Ctrl-C.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from barnabas.base.errors import BarnabasError

__all__ = ["COMMANDS", "cli", "run"]

COMMANDS = {
    "start": "Start a broker that every Kafka client can use.",
    "demo": "Show it all at work: orders, a Spark pipeline on them, results.",
    "topics": "Make, list, describe, change and delete topics.",
    "produce": "Send lines of stdin or files as records.",
    "consume": "Print records of topics.",
    "groups": "List, describe, move and delete consumer groups.",
    "transactions": "List and describe transactions, find and end those that hang.",
    "configs": "Show and change settings of topics and brokers.",
    "offsets": "Show first, last and other offsets of topics.",
    "delete-records": "Delete the oldest records of partitions.",
    "cluster": "Show the brokers and what they hold.",
    "features": "Show and switch the features of the cluster.",
    "perf": "Measure how fast producing and consuming is.",
    "doctor": "Say what keeps a client from using a broker, and how to mend it.",
    "pipeline": "Run declared Spark pipelines: to files, through SQL, from cluster to cluster.",
    "log": "Look into the files of a log: dump, verify.",
    "version": "Say which version this is and which record kernel runs.",
}
"""Subcommand -> its one line in the help.  The module is barnabas.cli.commands.<name>."""


class LazyGroup(click.Group):
    """A group that imports a subcommand's module when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"barnabas.cli.commands.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; an end that the user or the reader of our output chose is no fault to report."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            if sys.stderr.isatty():
                click.echo(err=True)  # behind the ^C that the terminal shows
            raise click.exceptions.Exit(130) from None
        except BrokenPipeError:
            # The reader of our output went away (`| head`), and nothing is left to tell it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(0) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


EPILOG = """
\b
Every command that talks to a broker takes -b HOST:PORT; without it $BARNABAS_BOOTSTRAP, else localhost:9092.
Completion: eval "$(_BARNABAS_COMPLETE=bash_source barnabas)" in bash; zsh_source, fish_source elsewhere.
"""


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Barnabas: a broker that speaks the Kafka wire protocol, and the tools around it."""


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and gives its exit code; errors become one sentence on stderr."""
    try:
        code = cli.main(list(arguments), prog_name="barnabas", standalone_mode=False)
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BarnabasError as error:
        click.echo(f"barnabas: {error}", err=True)
        return 1
    return code if isinstance(code, int) else 0
