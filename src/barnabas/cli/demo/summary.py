"""What is said when the demo has ended: the sums, whether they agree, and where to look next."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from barnabas.cli.output import bytes_text, document

if TYPE_CHECKING:
    from barnabas.cli.demo.run import Outcome

__all__ = ["print_summary", "summary"]

_NEXT: Final = (
    ("start", "a broker of your own, data in ./barnabas-data"),
    ("topics list", "what is in it; produce, consume and groups are the next"),
    ("pipeline new transform my.yaml", "a pipeline of your own: docs/pipelines.md"),
    ("demo --keep --for 5m", "this again, and leave data and pipeline file to look at"),
)


def summary(outcome: "Outcome") -> list[str]:
    """The lines with the sums."""
    facts = outcome.facts
    per_s = facts.orders / facts.seconds if facts.seconds else 0.0
    lines = [
        f"in       {facts.orders:,} orders, {bytes_text(facts.orders_bytes)}, in {facts.seconds:.0f} s "
        f"({per_s:,.0f}/s)",
        f"work     {facts.engine}: {facts.rows_in:,} rows in {facts.batches:,} batches, "
        f"{outcome.highlight.lag_seconds or 0.0:.1f} s behind when the last order came",
        f"out      {facts.rows_out:,} rows to the topic sales",
    ]
    if facts.landing is not None and outcome.landed_rows is not None:
        lines.append(
            f"out      {outcome.landed_rows:,} rows in {facts.landing.files:,} Parquet files, "
            f"{bytes_text(facts.landing.size_bytes)}"
        )
    lines.append(f"check    {_verdict(outcome)}")
    return lines


def _verdict(outcome: "Outcome") -> str:
    facts = outcome.facts
    if outcome.is_exact:
        where = "the topic" if outcome.landed_rows is None else "the topic and in the files"
        return f"every order is in {where} exactly once"
    if outcome.was_stopped:
        return f"stopped on the way: {outcome.counted:,} of {facts.orders:,} orders are in the topic"
    return (
        f"{outcome.counted:,} of {facts.orders:,} orders are in the topic, "
        f"{outcome.repeated:,} of them again, {outcome.landed_rows or 0:,} in files"
    )


def print_summary(outcome: "Outcome", kept: Path | None, *, as_json: bool) -> None:
    """Says it to a person, or as one JSON document."""
    if as_json:
        document({**outcome.json(), "folder": None if kept is None else str(kept)})
        return
    click.echo()
    for text in summary(outcome):
        click.echo(text)
    if kept is not None:
        click.echo(f"kept     {kept}")
    click.echo("\nWhere to look next:")
    program = _program()
    for command, what in _NEXT:
        click.echo(f"  {f'{program} {command}':<50} {what}")
    click.echo(f"  {'README.md, docs/README.md':<50} tours for Python, PySpark and tests")


def _program() -> str:
    """How this program is called from here: its name, or the path where it is not on the user's path."""
    here = Path(sys.argv[0])
    if here.name != "barnabas" or shutil.which("barnabas") == str(here.absolute()):
        return "barnabas"
    try:
        return str(here.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(here)
