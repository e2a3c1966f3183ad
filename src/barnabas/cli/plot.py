"""A picture of a measurement: how long things took, and how many there were over time.

SVG is written by hand and needs nothing; PNG is drawn by matplotlib, if it is installed.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.base.errors import ConfigFault

if TYPE_CHECKING:
    from barnabas.cli.perf_stats import Meter

__all__ = ["check_plot", "histogram", "write_plot"]

_WIDTH: Final = 960
_PANEL: Final = 260
_LEFT: Final = 80
_RIGHT: Final = 30
_TOP: Final = 50
_BETWEEN: Final = 90
_BUCKETS: Final = 60
_SHARES: Final = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9"))


def check_plot(path: Path) -> None:
    """Raises ConfigFault when such a file cannot be drawn; asked before a long measurement, not after."""
    kind = path.suffix.lower()
    if kind == ".png":
        try:
            import matplotlib  # type: ignore[import-not-found,unused-ignore]  # optional  # noqa: F401 -- a probe
        except ImportError as error:
            raise ConfigFault(
                f"{path}: drawing a PNG needs matplotlib, which is not installed; "
                "`pip install matplotlib`, or name a file that ends in .svg"
            ) from error
    elif kind != ".svg":
        raise ConfigFault(f"{path}: a plot is a file that ends in .svg or .png")
    if not path.absolute().parent.is_dir():
        raise ConfigFault(f"{path}: there is no such folder")


def histogram(samples: Iterable[float], buckets: int = _BUCKETS) -> list[tuple[float, float, int]]:
    """Buckets as (from, to, count), each wider than the one before by the same factor; 0 counts as 0.001."""
    values = [max(value, 0.001) for value in samples]
    if not values:
        return []
    low, high = min(values), max(values)
    if high <= low:
        return [(low, low, len(values))]
    step = math.log(high / low) / buckets
    counts = [0] * buckets
    for value in values:
        counts[min(int(math.log(value / low) / step), buckets - 1)] += 1
    return [
        (low * math.exp(step * number), low * math.exp(step * (number + 1)), count)
        for number, count in enumerate(counts)
    ]


def write_plot(path: Path, title: str, meter: "Meter", *, what: str) -> None:
    """Draws a finished meter; `what` names the time that was measured.  Raises ConfigFault."""
    try:
        if path.suffix.lower() == ".png":
            _write_png(path, title, meter, what)
        else:
            path.write_text(_svg(title, meter, what), encoding="utf-8")
    except OSError as error:
        raise ConfigFault(f"{path}: {error.strerror}") from error


def _svg(title: str, meter: "Meter", what: str) -> str:
    height = _TOP + 2 * _PANEL + _BETWEEN + 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="16" font-weight="bold">{_escaped(title)}</text>',
        *_latency_panel(meter, what, _TOP),
        *_throughput_panel(meter, _TOP + _PANEL + _BETWEEN),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _latency_panel(meter: "Meter", what: str, top: int) -> list[str]:
    bars = histogram(meter.samples)
    parts = _frame(top, f"{what} (ms, logarithmic)", "samples")
    if not bars:
        return parts
    low, high = bars[0][0], max(bars[-1][1], bars[0][0] * 1.01)
    tallest = max(count for _, _, count in bars)
    span = math.log(high / low)

    def x(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * math.log(max(value, low) / low) / span

    for start, end, count in bars:
        tall = _PANEL * count / tallest
        width = max(x(end) - x(start) - 1, 1)
        parts.append(
            f'<rect x="{x(start):.1f}" y="{top + _PANEL - tall:.1f}" width="{width:.1f}" height="{tall:.1f}" '
            'fill="#4c78a8"/>'
        )
    parts += _y_labels(top, tallest)
    for value in _decades(low, high):
        parts.append(_label(x(value), top + _PANEL + 16, f"{value:g}", "middle"))
    values = meter.percentiles(*(share for share, _ in _SHARES))
    for number, ((_, name), value) in enumerate(zip(_SHARES, values, strict=True)):
        at = min(x(value), _WIDTH - _RIGHT)
        parts.append(
            f'<line x1="{at:.1f}" y1="{top}" x2="{at:.1f}" y2="{top + _PANEL}" stroke="#e45756" '
            'stroke-dasharray="4 3"/>'
        )
        anchor = "end" if at > _WIDTH * 0.8 else "start"
        parts.append(
            _label(
                at + (-4 if anchor == "end" else 4), top + 14 + 14 * number, f"{name} {value:.2f} ms", anchor
            )
        )
    return parts


def _throughput_panel(meter: "Meter", top: int) -> list[str]:
    parts = _frame(top, "seconds since the start", "records/s")
    points = _rates(meter)
    if not points:
        return parts
    last = points[-1][0]
    tallest = max(rate for _, rate in points) or 1.0

    def x(seconds: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * seconds / last

    drawn = " ".join(f"{x(at):.1f},{top + _PANEL * (1 - rate / tallest):.1f}" for at, rate in points)
    parts.append(f'<polyline points="{drawn}" fill="none" stroke="#54a24b" stroke-width="2"/>')
    parts += _y_labels(top, tallest)
    parts += [
        _label(x(last * share), top + _PANEL + 16, f"{last * share:.1f}", "middle")
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    average = f"average {meter.records_per_s:,.0f} records/s, {meter.mb_per_s:.1f} MB/s"
    parts.append(_label(_WIDTH - _RIGHT, top - 8, average, "end"))
    return parts


def _rates(meter: "Meter") -> list[tuple[float, float]]:
    points = []
    before = 0.0
    for part in meter.slices:
        if part.seconds > before:
            points.append((part.seconds, part.records / (part.seconds - before)))
        before = part.seconds
    return points


def _decades(low: float, high: float) -> Sequence[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    marks = [factor * 10.0**power for power in range(first, last + 1) for factor in (1, 2, 5)]
    return [mark for mark in marks if low <= mark <= high]


def _frame(top: int, x_title: str, y_title: str) -> list[str]:
    right, bottom = _WIDTH - _RIGHT, top + _PANEL
    return [
        f'<path d="M{_LEFT} {top}V{bottom}H{right}" fill="none" stroke="#444"/>',
        _label((_LEFT + right) / 2, bottom + 36, x_title, "middle"),
        _label(_LEFT, top - 8, y_title, "middle"),
    ]


def _y_labels(top: int, tallest: float) -> list[str]:
    return [
        _label(_LEFT - 6, top + _PANEL * (1 - share) + 4, f"{tallest * share:,.0f}", "end")
        for share in (0.0, 0.5, 1.0)
    ]


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#222">{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _write_png(path: Path, title: str, meter: "Meter", what: str) -> None:
    import matplotlib  # type: ignore[import-not-found,unused-ignore]  # optional

    matplotlib.use("Agg")
    from matplotlib import pyplot  # type: ignore[import-not-found,unused-ignore]  # optional

    figure, (above, below) = pyplot.subplots(2, 1, figsize=(9.6, 7.0))
    figure.suptitle(title)
    bars = histogram(meter.samples)
    above.bar([b[0] for b in bars], [b[2] for b in bars], width=[b[1] - b[0] for b in bars], align="edge")
    above.set_xscale("log")
    above.set_xlabel(f"{what} (ms, logarithmic)")
    for (_, name), value in zip(_SHARES, meter.percentiles(*(s for s, _ in _SHARES)), strict=True):
        above.axvline(value, linestyle="--", color="tab:red", label=f"{name} {value:.2f} ms")
    above.legend()
    points = _rates(meter)
    below.plot([at for at, _ in points], [rate for _, rate in points], color="tab:green")
    below.set_xlabel("seconds since the start")
    below.set_ylabel("records/s")
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
