"""What commands print: a table for people, plain lines for pipes, JSON for programs.

A table is drawn only on a terminal; in a pipe it becomes columns aligned by spaces with the same words, so
that awk and grep find them where Kafka's tools put them.  Nothing is printed as "-".
"""

import io
import json
import select
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from barnabas.client.results import Results

__all__ = ["bytes_text", "document", "is_terminal", "reader_is_gone", "report", "table"]


def is_terminal() -> bool:
    """Whether a person looks at stdout."""
    return sys.stdout.isatty()


def reader_is_gone() -> bool:
    """Whether stdout is a pipe that nobody reads any more; a write finds out too, but one may not come."""
    try:
        stdout = sys.stdout.fileno()
    except io.UnsupportedOperation:  # not a file: a caller in this process collects what is printed
        return False
    poll = select.poll()
    poll.register(stdout, 0)  # no event but the end, which is always told
    return any(event & select.POLLERR for _, event in poll.poll(0))


def document(value: Any) -> None:
    """One JSON document on one line, or indented on a terminal."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2 if is_terminal() else None))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """Rows under their headings."""
    texts = [[_text(cell) for cell in row] for row in rows]
    if is_terminal():
        _drawn(columns, texts, title)
        return
    widths = [max(map(len, column)) for column in zip(columns, *texts, strict=True)]
    for row in [list(columns), *texts]:
        line = " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())


def _drawn(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(columns):
        cells = {row[number] for row in rows} - {"-"}
        numbers = bool(cells) and all(map(_is_number, cells))
        drawn.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    console = Console(highlight=False)
    if title is not None:
        console.print(Text(title, style="bold"), soft_wrap=True)
    console.print(drawn)


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).removeprefix("-").isdigit()


def _text(cell: object) -> str:
    match cell:
        case None | "":
            return "-"
        case bool():
            return "yes" if cell else "no"
        case float():
            return f"{cell:.1f}"
        case list() | tuple():
            return ",".join(map(str, cell)) or "-"
        case _:
            return str(cell)


def bytes_text(count: int | None) -> str | None:
    """A number of bytes for people."""
    if count is None:
        return None
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"


def report(
    results: "Results[Any, Any]", *, done: str, as_json: bool, extra: Mapping[str, Any] | None = None
) -> int:
    """Says of every item whether it was done; the exit code is 1 when one was not.

    `done` is the sentence for an item that went well, with {} in the place of its name.
    """
    if as_json:
        errors = {str(item): str(error) for item, error in results.errors.items()}
        document({"done": [str(item) for item in results.succeeded], "errors": errors, **(extra or {})})
    else:
        for item in results.succeeded:
            click.echo(done.format(item))
        for error in results.errors.values():
            click.echo(f"barnabas: {error}", err=True)
    return 1 if results.errors else 0
