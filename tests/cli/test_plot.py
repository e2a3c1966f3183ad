"""barnabas.cli.plot: pictures of a measurement."""

import importlib.util
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import ConfigFault
from barnabas.cli.perf_stats import Meter
from barnabas.cli.plot import check_plot, histogram, write_plot

SVG = "{http://www.w3.org/2000/svg}"


def measured(times: list[float]) -> Meter:
    clock = iter(100 + n / 10 for n in range(1000))
    meter = Meter(100, now=lambda: next(clock))
    for time_ms in times:
        meter.add(1, 100, [time_ms])
    meter.finish()
    return meter


def test_an_svg_is_sound_and_shows_percentiles_and_rates(tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    write_plot(path, "5 < 6 & more", measured([0.5, 1, 2, 4, 8, 900]), what="time to acknowledgement")
    root = ElementTree.fromstring(path.read_text())
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert "5 < 6 & more" in texts
    assert any(text.startswith("p99.9 ") for text in texts)
    assert any(text.startswith("average ") for text in texts)
    assert len(list(root.iter(f"{SVG}polyline"))) == 1
    assert len(list(root.iter(f"{SVG}rect"))) > 30


@pytest.mark.parametrize("times", [[], [3.0], [3.0, 3.0], [0.0, 0.0]])
def test_little_to_draw_is_no_fault(tmp_path: Path, times: list[float]) -> None:
    path = tmp_path / "out.svg"
    write_plot(path, "t", measured(times), what="x")
    ElementTree.fromstring(path.read_text())


@given(st.lists(st.floats(0, 1e6), max_size=50))
def test_every_sample_is_in_one_bucket(samples: list[float]) -> None:
    bars = histogram(samples)
    assert sum(count for _, _, count in bars) == len(samples)


def test_a_plot_that_cannot_be_drawn_is_refused_before_the_run(tmp_path: Path) -> None:
    check_plot(tmp_path / "x.SVG")
    with pytest.raises(ConfigFault, match=r"a plot is a file that ends in \.svg or \.png"):
        check_plot(tmp_path / "x.gif")
    with pytest.raises(ConfigFault, match="there is no such folder"):
        check_plot(tmp_path / "none" / "x.svg")
    if importlib.util.find_spec("matplotlib") is None:
        with pytest.raises(ConfigFault, match="drawing a PNG needs matplotlib, which is not installed"):
            check_plot(tmp_path / "x.png")


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_a_png_is_drawn_by_matplotlib(tmp_path: Path) -> None:
    path = tmp_path / "out.png"
    write_plot(path, "t", measured([1, 2, 3]), what="x")
    assert path.read_bytes()[:4] == b"\x89PNG"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "folder.svg"
    folder.mkdir()
    with pytest.raises(ConfigFault, match="Is a directory"):
        write_plot(folder, "t", measured([1]), what="x")
