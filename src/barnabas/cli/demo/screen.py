"""The demo on a terminal: a screen that is drawn anew, lines where nobody looks, and a summary at the end."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from barnabas.cli.output import bytes_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from barnabas.cli.demo.facts import Facts

__all__ = ["line", "screen", "sparkline"]

_BARS: Final = "▁▂▃▄▅▆▇█"
_WIDTH: Final = 96


def sparkline(values: Sequence[float]) -> str:
    """A bar of eight heights for each value; the highest is full."""
    top = max(values, default=0)
    return "".join(_BARS[min(int(value / top * 7.99), 7)] if top > 0 else _BARS[0] for value in values)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def age(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f} s"


def line(facts: "Facts") -> str:
    """One line for a log or a pipe."""
    landing = facts.landing
    files = f"{landing.files} files ({bytes_text(landing.size_bytes)})  " if landing else ""
    return (
        f"{clock(facts.seconds)}  in {facts.orders:,} orders ({facts.orders_per_s:,.0f}/s)  "
        f"{facts.engine} {facts.rows_in:,} rows ({facts.rows_in_per_s:,.0f}/s)  "
        f"out {facts.rows_out:,} rows ({facts.rows_out_per_s:,.0f}/s)  {files}"
        f"lag {facts.lag_messages:,} messages, {age(facts.lag_seconds)}"
        + ("" if facts.state == "running" else f"  [{facts.state}]")
    )


def screen(facts: "Facts") -> "RenderableType":
    """The whole screen at one moment."""
    from rich import box
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    parts: list[RenderableType] = [_flows(facts), Text()]
    if facts.results:
        parts += [_results(facts), Text()]
    if facts.latest:
        parts += [_latest(facts), Text()]
    parts.append(_footer(facts))
    return Panel(
        Group(*parts),
        title=f"[bold]Barnabas[/] · broker [cyan]{facts.address}[/] · {facts.engine}",
        title_align="left",
        box=box.ROUNDED,
        border_style="dim",
        padding=(1, 2),
        width=_WIDTH,
    )


def _plain_table(*columns: tuple[str, str]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    for name, side in columns:
        table.add_column(name, justify="right" if side == "right" else "left", no_wrap=True)
    return table


def _flows(facts: "Facts") -> "Table":
    table = _plain_table(("", "left"), ("where", "left"), ("total", "right"), ("now", "right"), ("", "left"))
    rates = sparkline([rate for rate, _ in facts.history])
    lags = sparkline([lag for _, lag in facts.history])
    table.add_row(
        "[green]in[/]",
        "topic orders",
        f"{facts.orders:,} orders",
        f"[bold]{facts.orders_per_s:,.0f}/s[/]",
        rates,
    )
    batch = f"batch {facts.batches:,}, {facts.batch_ms:,.0f} ms" if facts.batches else facts.state
    table.add_row(
        "[green]work[/]",
        facts.engine,
        f"{facts.rows_in:,} rows",
        f"[bold]{facts.rows_in_per_s:,.0f}/s[/]",
        batch,
    )
    table.add_row(
        "[green]out[/]",
        "topic sales",
        f"{facts.rows_out:,} rows",
        f"[bold]{facts.rows_out_per_s:,.0f}/s[/]",
    )
    if facts.landing is not None:
        size = bytes_text(facts.landing.size_bytes)
        table.add_row("[green]out[/]", "Parquet", f"{facts.landing.files:,} files", f"[bold]{size}[/]")
    colour = "green" if (facts.lag_seconds or 0) < 10 else "yellow"
    table.add_row(
        f"[{colour}]lag[/]",
        "",
        f"{facts.lag_messages:,} messages",
        f"[bold]{age(facts.lag_seconds)}[/]",
        lags,
    )
    return table


def _results(facts: "Facts") -> "Table":
    table = _plain_table(("region", "left"), ("orders", "right"), ("revenue", "right"), ("", "left"))
    top = max(row["revenue"] for row in facts.results) or 1
    for row in facts.results:
        bar = "━" * max(round(row["revenue"] / top * 40), 1)
        table.add_row(row["region"], f"{row['orders']:,}", f"€{row['revenue']:,.2f}", f"[cyan]{bar}[/]")
    return table


def _latest(facts: "Facts") -> "Table":
    table = _plain_table(
        ("newest orders", "left"), ("", "left"), ("", "left"), ("", "right"), ("", "left"), ("", "right")
    )
    for order in facts.latest:
        table.add_row(
            f"[dim]{order['order_id']}[/]", order["customer"], order["region"], f"{order['quantity']} x",
            order["product"], f"€{order['unit_price']:,.2f}",
        )  # fmt: skip
    return table


def _footer(facts: "Facts") -> "RenderableType":
    from rich.text import Text

    if facts.left_s is None:
        return Text(f"{facts.state}, {clock(facts.seconds)}  ·  Ctrl-C ends it", style="dim")
    share = 1 - facts.left_s / facts.total_s if facts.total_s else 1.0
    done = round(min(max(share, 0.0), 1.0) * 40)
    text = Text("━" * done, style="green").append("━" * (40 - done), style="dim")
    return text.append(f"  {clock(facts.left_s)} left  ·  Ctrl-C ends it", style="dim")
