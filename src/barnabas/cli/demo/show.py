"""Where the demo is shown: drawn on a terminal, as lines in a pipe, or nowhere (--json).

A picture of the screen can be kept as SVG: that of the last moment before the end.
"""

import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self

import click

from barnabas.cli.demo.screen import line, screen

if TYPE_CHECKING:
    from rich.console import RenderableType

    from barnabas.cli.demo.facts import Facts

__all__ = ["Drawn", "Lines", "Quiet", "Show", "write_picture"]

_LINE_EVERY_S: Final = 2.0


class Show(Protocol):
    """Takes notes and moments; a context manager."""

    def note(self, text: str) -> None: ...

    def update(self, facts: "Facts") -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Quiet:
    """Shows nothing."""

    def note(self, text: str) -> None:
        pass

    def update(self, facts: "Facts") -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class Lines(Quiet):
    """A line every two seconds, and at once when the state changes."""

    def __init__(self) -> None:
        self._said_at = 0.0
        self._state = ""

    def note(self, text: str) -> None:
        click.echo(text)

    def update(self, facts: "Facts") -> None:
        now = time.monotonic()
        if now - self._said_at >= _LINE_EVERY_S or facts.state != self._state:
            self._said_at, self._state = now, facts.state
            click.echo(line(facts))


class Drawn(Quiet):
    """The screen, drawn anew four times a second; notes stay above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(highlight=False), auto_refresh=False, transient=True)

    def note(self, text: str) -> None:
        self._live.console.print(text, markup=False, soft_wrap=True)

    def update(self, facts: "Facts") -> None:
        self._live.update(screen(facts), refresh=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)


def write_picture(path: Path, title: str, parts: "list[RenderableType]") -> None:
    """The parts as they look on a terminal, as an SVG file."""
    import io

    from rich.console import Console

    console = Console(record=True, width=96, file=io.StringIO(), force_terminal=True, highlight=False)
    for part in parts:
        console.print(part)
    path.write_text(console.export_svg(title=title), encoding="utf-8")
