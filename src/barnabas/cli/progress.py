"""A bar on stderr for work that takes a while; nothing when nobody looks."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Gives what moves the bar to a number of items done; drawn a few times a second."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn(label),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        # Lines of stdout pass above the bar on a terminal; elsewhere they must stay where they are sent.
        redirect_stdout=sys.stdout.isatty(),
        refresh_per_second=4,
    )
    with bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, completed=done)
